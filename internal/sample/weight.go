package sample

import "math"

// whole is the weight of the likeliest token.
const whole = 1 << 40

// leastX is where weights begin: e^x is below one unit of 2^-40 at smaller x.
const leastX = -28

// weight returns e^x in units of 2^-40, rounded down, for x ≤ 0; the relative error is below 1e-8,
// plus one unit. It stands beside kernel.Exp because a sampler meets the whole vocabulary one by
// one: float64 needs no emulated fused multiply-add and takes a quarter of the time. No product
// here can be fused with a sum, so the bits are the same everywhere.
func weight(x float32) uint64 {
	if x < leastX {
		return 0
	}
	return exp40(float64(x))
}

// exp40 is weight for leastX ≤ x ≤ 0.
func exp40(x float64) uint64 {
	r, n := reduce(x)
	return scale(series(r), n)
}

// exp40s sets out [len(x)] to exp40 of each x. It takes a quarter of the time of single calls, which wait for each
// other: conversions from float32 keep half of a register, and so depend on what was in it before.
func exp40s(out []uint64, x []float64) {
	out = out[:len(x)]
	for i, v := range x {
		r, n := reduce(v)
		out[i] = scale(series(r), n)
	}
}

// reduce returns r and n with x = (n + r/ln 2)·ln 2, |r| ≤ ln 2 / 2.
func reduce(x float64) (r, n float64) {
	const (
		magic = 3 << 51 // adding it rounds to a whole number
		log2e = 1.4426950408889634
		ln2   = 0.6931471805599453
	)
	t := float64(x * log2e)
	n = t + magic - magic
	return float64((t - n) * ln2), n
}

// series is seven terms of e^r.
func series(r float64) float64 {
	p := float64(r*(1.0/5040)) + 1.0/720
	p = float64(p*r) + 1.0/120
	p = float64(p*r) + 1.0/24
	p = float64(p*r) + 1.0/6
	p = float64(p*r) + 0.5
	p = float64(p*r) + 1
	return float64(p*r) + 1
}

// scale is p·2^n in units of 2^-40, rounded down.
func scale(p, n float64) uint64 {
	return uint64(int64(p * math.Float64frombits(uint64(1023+40+int64(n))<<52)))
}

// ln returns the natural logarithm of a positive normal x, with a relative error below 1e-15 plus an
// absolute one below 1e-15 near 1: the series of 2·artanh((m-1)/(m+1)) for √½ ≤ m ≤ √2.
func ln(x float64) float64 {
	const (
		ln2Hi = 0x1.62e42fefp-01 // n·ln2Hi is exact
		ln2Lo = 0x1.473de6af278edp-34
	)
	bits := math.Float64bits(x)
	n := float64(int64(bits>>52) - 1023)
	m := math.Float64frombits(bits&(1<<52-1) | 1023<<52)
	if m > math.Sqrt2 {
		m /= 2
		n++
	}
	s := (m - 1) / (m + 1)
	z := float64(s * s)
	p := 1.0 / 21
	for d := 19.0; d >= 3; d -= 2 {
		p = float64(p*z) + 1/d
	}
	t := float64(2 * (s + float64(float64(s*z)*p)))
	return float64(n*ln2Hi) + (float64(n*ln2Lo) + t)
}

// exp2 returns 2^x for |x| ≤ 1000, with a relative error below 1e-14.
func exp2(x float64) float64 {
	n := math.RoundToEven(x)
	r := float64((x - n) * math.Ln2)
	p := 1.0
	for d := 13.0; d >= 1; d-- { // the series, innermost term first
		p = float64(p*(r/d)) + 1
	}
	return p * math.Float64frombits(uint64(1023+int64(n))<<52)
}
