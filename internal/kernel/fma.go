package kernel

import "math"

// fma32 returns a·b + c rounded once to float32: what VFMADD231SS and FMADD (scalar, single) give.
//
// float32(math.FMA(…)) rounds twice and is wrong on ties. Here the exact sum is rounded to odd in
// float64 first, which has enough spare bits that the second rounding is the only one that counts.
func fma32(a, b, c float32) float32 {
	p := float64(a) * float64(b) // exact: 48 bits
	z := float64(c)
	s := float64(p) + z
	t := s - p
	e := (p - (s - t)) + (z - t) // TwoSum: s + e is the exact sum
	if bits := math.Float64bits(s); e != 0 && bits&1 == 0 && s-s == 0 {
		if (e > 0) == (s > 0) {
			bits++
		} else {
			bits--
		}
		s = math.Float64frombits(bits)
	}
	return float32(s)
}
