package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// ulps is the distance of got from want in units of the last place of a float32 near want.
func ulps(got float32, want float64) float64 {
	e := math.Ilogb(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e, -126)-23)
}

func TestExpError(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	worst, at := 0.0, float32(0)
	check := func(x float32) {
		if e := ulps(Exp(x), math.Exp(float64(x))); e > worst {
			worst, at = e, x
		}
	}
	for e := uint32(1); e < 134; e++ { // every exponent up to 2^6, both signs
		for range 3000 {
			x := fromBits(e<<23 | r.Uint32N(1<<23))
			if x <= expMost {
				check(x)
			}
			if -x >= expLeast {
				check(-x)
			}
		}
	}
	for range 400000 {
		check(r.Float32()*(expMost-expLeast) + expLeast)
	}
	t.Logf("largest error %.3f ulp at %g", worst, at)
	if worst > 1 {
		t.Errorf("error of %.3f ulp at %g; 1 is promised", worst, at)
	}
}

func TestExpEdges(t *testing.T) {
	inf := float32(math.Inf(1))
	least, most := float32(expLeast), float32(expMost)
	for _, c := range []struct{ x, want float32 }{
		{0, 1}, {fromBits(0x80000000), 1}, {-inf, 0}, {inf, inf}, {float32(math.NaN()), float32(math.NaN())},
		{math.Nextafter32(least, -inf), 0}, {-1e30, 0}, {-100, 0}, {math.Nextafter32(most, inf), inf},
		{89, inf}, {1e30, inf}, {0x1p-149, 1}, {-0x1p-149, 1},
	} {
		if got := Exp(c.x); !same(got, c.want) {
			t.Errorf("Exp(%g) = %g (%08x), want %g", c.x, got, bits(got), c.want)
		}
	}
	for _, x := range []float32{least, most} {
		if e := ulps(Exp(x), math.Exp(float64(x))); e > 1 || math.IsInf(float64(Exp(x)), 0) {
			t.Errorf("Exp(%g) = %g is %.1f ulp off", x, Exp(x), e)
		}
	}
}
