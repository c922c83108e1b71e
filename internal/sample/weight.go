package sample

import "math"

// whole is the weight of the likeliest token.
const whole = 1 << 40

// weight returns exp((v - max) / temperature) in units of 2^-40, rounded down.
func (s *Sampler) weight(v float32) uint64 { return weight((v - s.max) / s.params.Temperature) }

// weight returns e^x in units of 2^-40, rounded down, for x ≤ 0; the relative error is below 1e-8,
// plus one unit. It stands beside kernel.Exp because a sampler meets the whole vocabulary one by
// one: float64 needs no emulated fused multiply-add and takes a quarter of the time. No product
// here can be fused with a sum, so the bits are the same everywhere.
func weight(x float32) uint64 {
	const (
		magic = 3 << 51 // adding it rounds to a whole number
		log2e = 1.4426950408889634
		ln2   = 0.6931471805599453
	)
	if x < -28 { // below one unit
		return 0
	}
	t := float64(float64(x) * log2e)
	n := t + magic - magic
	r := float64((t - n) * ln2) // |r| ≤ ln 2 / 2: seven terms of the series
	p := float64(r*(1.0/5040)) + 1.0/720
	p = float64(p*r) + 1.0/120
	p = float64(p*r) + 1.0/24
	p = float64(p*r) + 1.0/6
	p = float64(p*r) + 0.5
	p = float64(p*r) + 1
	p = float64(p*r) + 1
	return uint64(p * math.Float64frombits(uint64(1023+40+int64(n))<<52))
}
