package kernel

// Softmax replaces x by exp(x − max) / Σ exp(x − max), with the sum in eight running sums.
func Softmax(x []float32) {
	if len(x) == 0 {
		return
	}
	most := x[ArgMax(x)]
	var s [8]float32
	for i, v := range x {
		x[i] = Exp(v - most)
		s[i&7] += x[i]
	}
	sum := total(&s)
	for i, v := range x {
		x[i] = v / sum
	}
}

// Unit divides x by its sum, which is kept in eight running sums.
func Unit(x []float32) {
	var s [8]float32
	for i, v := range x {
		s[i&7] += v
	}
	sum := total(&s)
	for i, v := range x {
		x[i] = v / sum
	}
}

// Sigmoid is 1 / (1 + exp(−x)).
func Sigmoid(x float32) float32 { return 1 / (1 + Exp(-x)) }

// TopK writes the indices of the largest values of x to ids, the largest first, the lowest index first on
// ties. NaN comes last. x has at least as many values as there are ids.
func TopK(ids []int32, x []float32) {
	n := 0
	for i, v := range x {
		if n == len(ids) && !above(v, x[ids[n-1]]) {
			continue
		}
		if n < len(ids) {
			n++
		}
		k := n - 1
		for ; k > 0 && above(v, x[ids[k-1]]); k-- {
			ids[k] = ids[k-1]
		}
		ids[k] = int32(i)
	}
}

// above is a > b where NaN is below everything else.
func above(a, b float32) bool { return a > b || b != b && a == a }

// ClampedSwiGLU writes (up + 1) · gate·sigmoid(alpha·gate) to dst, with gate at most limit and up within
// ±limit (the feed-forward activation of gpt-oss). The three have the same length; dst may be gate or up.
func ClampedSwiGLU(dst, gate, up []float32, alpha, limit float32) {
	for i, g := range gate {
		g, u := least(g, limit), least(up[i], limit)
		if u < -limit {
			u = -limit
		}
		dst[i] = float32(g/(1+Exp(-float32(alpha*g)))) * (u + 1)
	}
}

// least is the smaller of x and limit; NaN stays.
func least(x, limit float32) float32 {
	if x > limit {
		return limit
	}
	return x
}

// Alternate copies the even values of x to even and the odd ones to odd.
func Alternate(even, odd, x []float32) {
	for i := range even {
		even[i], odd[i] = x[2*i], x[2*i+1]
	}
}
