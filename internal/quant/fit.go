package quant

// The encoders' searches. All minimise the plain squared error: scales are least-squares fits to
// the levels that a few trial scales give. They are simple and fast rather than the best there is.

// least collects the sums of a least-squares fit x ≈ s·q.
type least struct{ xq, qq float32 }

func (l *least) add(x, q float32) {
	l.xq += float32(x * q)
	l.qq += float32(q * q)
}

// gain is by how much the fit lowers the squared error below Σx².
func (l *least) gain() float32 {
	if l.qq == 0 {
		return 0
	}
	return l.xq * l.xq / l.qq
}

func (l *least) scale() float32 {
	if l.qq == 0 {
		return 0
	}
	return l.xq / l.qq
}

// nearest rounds to an integer in low…high, ties away from zero.
func nearest(x float32, low, high int) int {
	if x < 0 {
		return max(int(x-0.5), low)
	}
	return min(int(x+0.5), high)
}

// fitLevels returns the scale s of x ≈ s·q for integers q in low…high, low < 0. The value with the
// largest magnitude goes to low first, and then beyond it by each of the factors.
func fitLevels(x []float32, low, high int, factors []float32) float32 {
	inv := inverse(peak(x))
	var best least
	for _, f := range factors {
		try := inv * float32(low) * f
		var fit least
		for _, v := range x {
			fit.add(v, float32(nearest(float32(v*try), low, high)))
		}
		if fit.gain() > best.gain() {
			best = fit
		}
	}
	return best.scale()
}

// affine collects the sums of a least-squares fit x ≈ s·q − m.
type affine struct{ n, x, q, xq, qq float32 }

func (a *affine) add(x, q float32) {
	a.x += x
	a.q += q
	a.xq += float32(x * q)
	a.qq += float32(q * q)
}

// solve returns s and m ≥ 0.
func (a *affine) solve() (s, m float32) {
	det := float32(a.n*a.qq) - float32(a.q*a.q)
	switch {
	case a.qq == 0:
		return 0, max(-a.x/a.n, 0)
	case det <= 0: // all levels are equal
		return a.xq / a.qq, 0
	}
	s = (float32(a.n*a.xq) - float32(a.x*a.q)) / det
	m = (float32(a.q*a.xq) - float32(a.qq*a.x)) / det
	if m < 0 {
		return a.xq / a.qq, 0
	}
	return s, m
}

// loss is the squared error of s and m, less Σx².
func (a *affine) loss(s, m float32) float32 {
	quad := float32(float32(s*s)*a.qq) + float32(float32(m*m)*a.n)
	cross := float32(float32(s*m)*a.q) + float32(s*a.xq) - float32(m*a.x)
	return quad - float32(2*cross)
}

// affineFactors stretch the range of levels in fitAffine.
var affineFactors = [...]float32{1, 0.93, 1.07, 1.15, 1.25}

// fitAffine returns scale and minimum of x ≈ s·q − m for integers q in 0…top, with s, m ≥ 0.
func fitAffine(x []float32, top int) (s, m float32) {
	low, high := extremes(x)
	low = min(low, 0)
	if !(high > low) {
		return 0, -low
	}
	inv := float32(top) * inverse(high-low)
	lossBest := float32(0)
	for i, f := range affineFactors {
		// Stretched about the middle, so that both ends are cut.
		try := inv * f
		shift := 0.5 - float32(low*try) - float32((f-1)*float32(top)/2)
		fit := affine{n: float32(len(x))}
		for _, v := range x {
			fit.add(v, float32(level(float32(v*try)+shift, top)))
		}
		s1, m1 := fit.solve()
		if l := fit.loss(s1, m1); s1 >= 0 && (i == 0 || l < lossBest) {
			s, m, lossBest = s1, m1, l
		}
	}
	return s, m
}

// most returns the largest of values that are not negative, and 0 if there is none.
func most(x []float32) float32 {
	var m float32
	for _, v := range x {
		m = max(m, v)
	}
	return m
}

// roundHalf is what a scale is after it was stored as a half.
func roundHalf(x float32) float32 { return F16ToF32(F32ToF16(x)) }
