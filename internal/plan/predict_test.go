package plan

import (
	"math"
	"testing"

	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/layout/layouttest"
	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/quant"
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

// A request of a size that the profile knows is as fast as there, in parts of what the drive gives now.
func TestDriveCells(t *testing.T) {
	m := Machine{Drive: 3e9, Cells: []Cell{{64 << 10, 1, 1e8}, {64 << 10, 16, 5e8}, {1 << 20, 1, 8e8}, {1 << 20, 16, 2e9}}}
	for _, c := range []struct {
		size  int64
		depth float64
		want  float64
	}{{1 << 20, 16, 3e9}, {64 << 10, 16, 0.75e9}, {64 << 10, 1, 0.15e9}, {900_000, 12, 3e9}, {70_000, 1.2, 0.15e9}, {100 << 20, 100, 3e9}} {
		if got := m.speed(c.size, c.depth); !alike(got, c.want) {
			t.Errorf("%d bytes, %v in flight: %g, want %g", c.size, c.depth, got, c.want)
		}
	}
	if got := (&Machine{Drive: 3e9}).speed(1, 1); got != 3e9 {
		t.Errorf("without a profile: %g", got)
	}
}

// What was measured of products counts in place of what memory and processor could do.
func TestPredictCosts(t *testing.T) {
	r := requestFor(layouttest.TinyLlama.Model(), 8*machine.GiB)
	r.Context = 512
	p, err := Make(r)
	if err != nil {
		t.Fatal(err)
	}
	c := Case{Machine: Machine{Drive: 1e9, Memory: 17e9}, Costs: Costs{Row: 0.09, HeadRow: 0.01, ChunkRow: 0.004}, Prompt: 100}
	got := p.Predict(c)
	if !alike(got.Decode, 10) || !alike(got.Prefill, 100/0.41) || got.Limit == "drive" {
		t.Errorf("%+v", got)
	}
	r.Budget = machine.GiB
	if p, err = Make(r); err != nil {
		t.Fatal(err)
	}
	got = p.Predict(c)
	if want := 1 / (float64(p.ReadBytes)/1e9 + 0.01); got.Limit != "drive" || !alike(got.Decode, want) {
		t.Errorf("streamed: %+v, want %g", got, want)
	}
}

// Reads of one row's experts overlap with all computing; without slots, and for the rows of a prompt, what comes last computes alone.
func TestPredictOverlap(t *testing.T) {
	compute, read := expertTimes{compute: 0.04, last: 0.005}, expertTimes{compute: 0.04, read: 0.2, last: 0.005}
	if compute.alone() != 0 || !alike(read.alone(), 0.205) {
		t.Errorf("%g, %g", compute.alone(), read.alone())
	}
	m := layouttest.Shape{Layers: 4, Hidden: 256, FFN: 256, KVDim: 128, Vocab: 256}.Model()
	for i := range m.Layers {
		stack := layout.Stack{Name: "up", Type: quant.F16, Rows: 256, Cols: 256, At: make([]layout.Place, 16)}
		m.Experts = append(m.Experts, layout.ExpertLayer{Layer: i, Used: 2, Stacks: []layout.Stack{stack}})
	}
	each := int64(256 * 256 * 2)
	p := &Plan{model: m, Placement: &layout.Placement{Align: 512, Readers: 3, Experts: layout.ExpertPlacement{Slots: 32, SlotBytes: each, Request: each}}}
	p.Experts = &Experts{Layers: 4, Count: 16, Used: 2, Bytes: 64 * each, Slots: 32}
	c := &Case{Machine: Machine{Drive: 1e9}, Costs: Costs{Row: 0.01, ChunkRow: 0.01, Expert: 0.001, ExpertRow: 0.001}}
	reads := float64(4*each) / 1e9 // half of what a row uses is in memory
	if got, limit := p.pass(c, 1); !alike(got, 0.01+4*0.002) || limit == "drive" {
		t.Errorf("%g, %s", got, limit)
	}
	c.Drive = 1e7
	if got, limit := p.pass(c, 1); !alike(got, 100*reads) || limit != "drive" {
		t.Errorf("%g, %s; reads take %g", got, limit, 100*reads)
	}
	p.Experts.Slots = 0
	p.Placement.Experts = layout.ExpertPlacement{Tiles: 2, TileBytes: each}
	if got, _ := p.pass(c, 1); !alike(got, 0.01+2*100*reads+4*0.001) {
		t.Errorf("without slots %g; reads take %g", got, 200*reads)
	}
}

// Experts that are known to be in memory need no reads; those of a layer are read one layer after the other.
func TestPredictExperts(t *testing.T) {
	e := &Experts{Layers: 10, Count: 64, Used: 8, Bytes: 640 << 20, Slots: 320}
	for _, c := range []struct {
		r    Routing
		want float64
	}{{Routing{}, 0.5}, {Routing{Known: true, Hits: 0.9}, 0.1}, {Routing{Known: true}, 1}} {
		if got := e.missed(c.r, 1); !alike(got, c.want) {
			t.Errorf("%+v: %g is missed, want %g", c.r, got, c.want)
		}
	}
	if got := (&Experts{Layers: 10, Count: 64, Slots: 640}).missed(Routing{Known: true}, 1); got != 0 {
		t.Errorf("all have slots, and %g is missed", got)
	}
	even := Routing{Rates: []float64{0.125, 0.125, 0.125, 0.125}}
	if got, want := even.touched(e, 16), e.touched(16); !alike(got, want) {
		t.Errorf("16 rows touch %g, want %g", got, want)
	}
	if uneven := (&Routing{Rates: []float64{0.5, 0, 0, 0}}).touched(e, 16); uneven > 0.26 {
		t.Errorf("16 rows of one expert touch %g", uneven)
	}
}
