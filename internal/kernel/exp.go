package kernel

import "math"

// The constants of Exp, see docs/numerics.md. ln 2 is expHi + expLo.
const (
	expLeast = -87.33      // below it Exp is +0
	expMost  = 88.72283172 // above it Exp is +Inf
	expLog2E = 1.44269502  // 1 / ln 2
	expHi    = 0.693147182464599609375
	expLo    = -1.904654212e-09
	expMagic = 12582912 // 1.5 · 2^23: adding it rounds to an integer in the low bits
	expC2    = 0.49999994
	expC3    = 0.16666517
	expC4    = 0.041668102
	expC5    = 0.0083691925
	expC6    = 0.0013838902
)

// Exp returns e^x with an error of at most 1 ulp: +0 below −87.33 (no subnormal results), +Inf above
// 88.72283, NaN for NaN.
func Exp(x float32) float32 {
	switch {
	case x < expLeast:
		return 0
	case x > expMost:
		return float32(math.Inf(1))
	case x != x:
		return x
	}
	t := fma32(x, expLog2E, expMagic)
	n := t - expMagic
	r := fma32(n, -expHi, x)
	r = fma32(n, -expLo, r)
	p := fma32(expC6, r, expC5)
	p = fma32(p, r, expC4)
	p = fma32(p, r, expC3)
	p = fma32(p, r, expC2)
	p = fma32(p, r, 1)
	p = fma32(p, r, 1)
	return math.Float32frombits(math.Float32bits(p) + math.Float32bits(t)<<23)
}
