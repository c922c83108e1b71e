package kernel

import "testing"

// Every set has both loops but the pure Go one, and they measure something.
func TestPeak(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	for _, isa := range ISAs() {
		restore := Force(isa)
		float, integer := Peak(p)
		if (float > 0) != (isa != "go") || (integer > 0) != (isa != "go") {
			t.Errorf("%s: %g operations/s on floats, %g on integers", isa, float, integer)
		}
		t.Logf("%s: %.1f Gop/s on floats, %.1f on integers", isa, float/1e9, integer/1e9)
		restore()
	}
}
