package kernel

import "math"

// The float64 functions behind rope. They use only additions, multiplications and divisions, so that
// every machine gives the same bits; package math does not promise that.

// π/2 in three parts: the first two have 27 bits each, so that n·part is exact for |n| < 2^26.
const (
	halfPi1  = 0x1.921fb54p+00
	halfPi2  = 0x1.10b4600p-30
	halfPi3  = 0x1.1a62633145c07p-54
	twoByPi  = 0x1.45f306dc9c883p-01
	sinLimit = 1 << 26 // beyond it sinCos is NaN
	ln2Hi    = 0x1.62e42fefp-01
	ln2Lo    = 0x1.473de6af278edp-34
)

// Taylor coefficients, lowest first; the compiler rounds the exact quotients.
var (
	sinTerms = [...]float64{-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800,
		1.0 / 6227020800, -1.0 / 1307674368000}
	cosTerms = [...]float64{-1.0 / 2, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800,
		1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000}
	expTerms = [...]float64{1, 1, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
		1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800}
	logTerms = [...]float64{1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17,
		1.0 / 19, 1.0 / 21, 1.0 / 23}
)

// horner is terms[0] + x·(terms[1] + x·(…)), every product and sum rounded.
func horner(terms []float64, x float64) float64 {
	var s float64
	for i := len(terms) - 1; i >= 0; i-- {
		s = terms[i] + float64(x*s)
	}
	return s
}

// sinCos returns sine and cosine with an error below 1e-15, for |x| ≤ 2^26; NaN outside.
func sinCos(x float64) (sin, cos float64) {
	if !(math.Abs(x) <= sinLimit) {
		return math.NaN(), math.NaN()
	}
	n := math.RoundToEven(x * twoByPi)
	r := x - float64(n*halfPi1)
	r -= float64(n * halfPi2)
	r -= float64(n * halfPi3)
	z := r * r
	s := r + float64(float64(r*z)*horner(sinTerms[:], z))
	c := 1 + float64(z*horner(cosTerms[:], z))
	switch int64(n) & 3 {
	case 0:
		return s, c
	case 1:
		return c, -s
	case 2:
		return -s, -c
	}
	return -c, s
}

// ln returns the natural logarithm of a positive normal x.
func ln(x float64) float64 {
	bits := math.Float64bits(x)
	e := int64(bits>>52) - 1023
	m := math.Float64frombits(bits&(1<<52-1) | 1023<<52)
	if m > math.Sqrt2 {
		m /= 2
		e++
	}
	s := (m - 1) / (m + 1)
	z := s * s
	t := float64(2 * (s + float64(float64(s*z)*horner(logTerms[:], z))))
	n := float64(e)
	return float64(n*ln2Hi) + (float64(n*ln2Lo) + t)
}

// exp64 returns e^x, for |x| < 700.
func exp64(x float64) float64 {
	n := math.RoundToEven(x / math.Ln2)
	r := (x - float64(n*ln2Hi)) - float64(n*ln2Lo)
	return horner(expTerms[:], r) * math.Float64frombits(uint64(1023+int64(n))<<52)
}

// pow64 returns base^y for a positive base.
func pow64(base, y float64) float64 { return exp64(float64(y * ln(base))) }
