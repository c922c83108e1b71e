package plan

import (
	"math"
	"testing"

	"github.com/spillway/spillway/internal/layout/layouttest"
	"github.com/spillway/spillway/internal/machine"
)

func alike(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

func TestRoofline(t *testing.T) {
	m := Machine{Drive: 1e9, Memory: 10e9, Flops: 1, FloatPeak: 100e9, IntegerPeak: 200e9}
	for name, c := range map[string]struct {
		work Work
		want Roofline
	}{
		"drive": {
			Work{Required: 2e9, Read: 2.5e9, Active: 4e9, Floats: 10e9, Seconds: 4},
			Roofline{Limit: "drive", Fraction: 0.5, DriveFraction: 0.625, PolicyFraction: 0.8},
		},
		"memory": {
			Work{Active: 10e9, Floats: 10e9, Seconds: 2},
			Roofline{Limit: "memory", Fraction: 0.5, DriveFraction: 0.5, PolicyFraction: 1},
		},
		"compute": {
			Work{Active: 1e9, Floats: 100e9, Seconds: 1.25},
			Roofline{Limit: "compute", Fraction: 0.8, DriveFraction: 0.8, PolicyFraction: 1},
		},
		"compute of both kinds": {
			Work{Active: 1e9, Floats: 25e9, Integers: 100e9, Seconds: 1.25},
			Roofline{Limit: "compute", Fraction: 0.6, DriveFraction: 0.6, PolicyFraction: 1},
		},
		"reads that no policy needs": {
			Work{Required: 0, Read: 3e9, Active: 10e9, Seconds: 4},
			Roofline{Limit: "memory", Fraction: 0.25, DriveFraction: 0.75, PolicyFraction: 0},
		},
		"read ahead before the run": {
			Work{Required: 2e9, Read: 1.9e9, Active: 2e9, Seconds: 2},
			Roofline{Limit: "drive", Fraction: 1, DriveFraction: 0.95, PolicyFraction: 1},
		},
		"no time": {Work{Required: 1}, Roofline{Limit: "drive", PolicyFraction: 1}},
	} {
		got := RooflineOf(c.work, m)
		w := c.want
		if got.Limit != w.Limit || !alike(got.Fraction, w.Fraction) || !alike(got.DriveFraction, w.DriveFraction) || !alike(got.PolicyFraction, w.PolicyFraction) {
			t.Errorf("%s: %+v, want %+v", name, got, w)
		}
		// The fraction is the drive's part times the policy's part where the drive is the limit.
		if got.Limit == "drive" && c.work.Read >= c.work.Required && !alike(got.Fraction, got.DriveFraction*got.PolicyFraction) {
			t.Errorf("%s: %+v is not a product", name, got)
		}
	}
}

func TestRequiredBytes(t *testing.T) {
	for _, c := range []struct{ active, budget, least, want int64 }{
		{100, 50, 50, 100}, {100, 90, 50, 60}, {100, 150, 50, 0}, {100, 1000, 50, 0}, {100, 10, 50, 100},
	} {
		if got := RequiredBytes(c.active, c.budget, c.least); got != c.want {
			t.Errorf("active %d at %d, least %d: %d required, want %d", c.active, c.budget, c.least, got, c.want)
		}
	}
}

func TestPredict(t *testing.T) {
	m := layouttest.TinyLlama.Model()
	machineSpeed := Machine{Drive: 1.5e9, Memory: 17e9, Flops: 130e9}
	r := requestFor(m, machine.GiB)
	p, err := Make(r)
	if err != nil {
		t.Fatal(err)
	}
	got := p.Predict(Case{Machine: machineSpeed})
	if want := 1.5e9 / float64(p.ReadBytes); got.Limit != "drive" || !alike(got.Decode, want) {
		t.Errorf("%+v, want %.3f tokens/s by the drive", got, want)
	}
	if want := 130e9 / float64(m.FlopsPerToken); !alike(got.Prefill, want) {
		t.Errorf("prefill %.1f tokens/s, want %.1f: chunks of %d rows hide the drive", got.Prefill, want, p.Chunk)
	}
	r.Budget = 8 * machine.GiB
	if p, err = Make(r); err != nil {
		t.Fatal(err)
	}
	got = p.Predict(Case{Machine: machineSpeed})
	if want := 17e9 / float64(layouttest.SweptBytes(m)); got.Limit != "memory" || !alike(got.Decode, want) {
		t.Errorf("%+v, want %.3f tokens/s by memory", got, want)
	}
	if none := p.Predict(Case{}); none.Decode != 0 || none.Prefill != 0 {
		t.Errorf("a prediction for an unknown machine: %+v", none)
	}
}
