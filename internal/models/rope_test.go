package models

import (
	"math"
	"testing"

	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/nn"
)

// Frequencies of each scaling against the formulas of their papers in float64; NUMERICS rounds them to
// f32, so that the last bit may differ where the double's own error meets a tie.
func TestScalings(t *testing.T) {
	const dim, base, trained = 64, 1e4, 256
	plain := func(i int) float64 { return math.Pow(base, -2*float64(i)/dim) }
	llama := kernel.Llama3Rope{Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalLength: trained}
	ramp := func(i int) float64 { // of YaRN, with the bounds rounded outwards
		at := func(rotations float64) float64 {
			return dim * math.Log(trained/(rotations*2*math.Pi)) / (2 * math.Log(base))
		}
		low, high := math.Max(math.Floor(at(32)), 0), math.Min(math.Ceil(at(1)), dim-1)
		return math.Min(math.Max((float64(i)-low)/(high-low), 0), 1)
	}
	for _, c := range []struct {
		name    string
		scaling nn.Scaling
		length  int
		want    func(i int) float64
		factor  float64
	}{
		{"linear", linearRope(4), 0, func(i int) float64 { return plain(i) / 4 }, 1},
		{"llama3", llama3Rope(llama), 0, func(i int) float64 {
			f := plain(i)
			wave := 2 * math.Pi / f
			if wave > trained {
				return f / 8
			} else if wave < trained/4.0 {
				return f
			}
			smooth := (trained/wave - 1) / 3
			return (1-smooth)*f/8 + smooth*f
		}, 1},
		{"dynamic, short", dynamicRope{2, trained}, trained, plain, 1},
		{"dynamic, long", dynamicRope{2, trained}, 3 * trained, func(i int) float64 {
			return math.Pow(base*math.Pow(2*3-1, dim/(dim-2.0)), -2*float64(i)/dim)
		}, 1},
		{"yarn", yarnRope(kernel.YaRN{Factor: 4, OriginalLength: trained}), 0, func(i int) float64 {
			return plain(i)/4*ramp(i) + plain(i)*(1-ramp(i))
		}, 0.1*math.Log(4) + 1},
		{"yarn with a factor", yarnRope(kernel.YaRN{Factor: 4, OriginalLength: trained, AttentionFactor: 1.5}), 0, func(i int) float64 {
			return plain(i)/4*ramp(i) + plain(i)*(1-ramp(i))
		}, 1.5},
	} {
		got, factor := c.scaling.Frequencies(dim, base, c.length)
		if len(got) != dim/2 || math.Abs(float64(factor)-c.factor) > 1e-7 {
			t.Errorf("%s: %d frequencies, factor %v, expected %v", c.name, len(got), factor, c.factor)
		}
		for i, f := range got {
			if want := c.want(i); math.Abs(float64(f)-want) > 3e-7*want {
				t.Errorf("%s: frequency %d is %v, expected %v", c.name, i, f, want)
			}
		}
	}
}

// Only lengths beyond the trained one rotate otherwise, and only under dynamic NTK.
func TestScalingLengths(t *testing.T) {
	d := dynamicRope{2, 100}
	if d.Length(5) != d.Length(100) || d.Length(101) == d.Length(100) || d.Length(101) == d.Length(102) {
		t.Errorf("dynamic: lengths 5, 100, 101, 102 map to %d, %d, %d, %d", d.Length(5), d.Length(100), d.Length(101), d.Length(102))
	}
	if s := linearRope(4); s.Length(5) != s.Length(1<<20) {
		t.Error("linear scaling depends on the length")
	}
}
