package skew

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Experts are distinct and in range, and follow from seed, layer and step alone.
func TestExperts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := Skew{Experts: rapid.IntRange(1, 300).Draw(rt, "experts")}
		s.Used = rapid.IntRange(1, min(s.Experts, 10)).Draw(rt, "used")
		s.Zipf = rapid.Float64Range(0, 8).Draw(rt, "zipf")
		s.Head = rapid.Float64Range(0, 2).Draw(rt, "head")
		s.Keep = rapid.Float64Range(0, 1).Draw(rt, "keep")
		s.Seed = rapid.Uint64().Draw(rt, "seed")
		layer, step := rapid.IntRange(0, 99).Draw(rt, "layer"), rapid.IntRange(0, 9999).Draw(rt, "step")
		got := New(s).Experts([]int32{7}, layer, step)
		if again := New(s).Experts([]int32{7}, layer, step); !slices.Equal(got, again) || got[0] != 7 {
			rt.Fatalf("%v, then %v", got, again)
		}
		got = got[1:]
		if slices.Sort(got); len(got) != s.Used || len(slices.Compact(got)) != s.Used || got[0] < 0 || int(got[len(got)-1]) >= s.Experts {
			rt.Fatalf("%v", got)
		}
	})
}

// measured draws many steps of one layer: the share of the busiest eighth, and how many of a token's experts the one before had.
func measured(s Skew, layer int) (busiest, kept float64) {
	const steps = 4000
	r := New(s)
	counts := make([]int, s.Experts)
	var before []int32
	same := 0
	for step := range steps {
		now := r.Experts(nil, layer, step)
		for _, e := range now {
			counts[e]++
			if slices.Contains(before, e) {
				same++
			}
		}
		before = now
	}
	slices.Sort(counts)
	sum := 0
	for _, n := range counts[s.Experts-s.Experts/8:] {
		sum += n
	}
	return float64(sum) / float64(steps*s.Used), float64(same) / float64(steps*s.Used)
}

func TestSkew(t *testing.T) {
	for _, c := range []struct {
		name                             string
		s                                Skew
		busiestLow, busiestHigh, low, up float64
	}{
		{"uniform", Skew{Experts: 64, Used: 8}, 0.12, 0.15, 0.11, 0.14},
		{"zipf", Skew{Experts: 64, Used: 8, Zipf: 1}, 0.45, 0.65, 0.25, 0.45},
		{"keeps", Skew{Experts: 64, Used: 8, Keep: 0.5}, 0.12, 0.16, 0.50, 0.62},
		{"both", Skew{Experts: 64, Used: 8, Zipf: 1, Keep: 0.5}, 0.40, 0.65, 0.55, 0.75},
	} {
		busiest, kept := measured(c.s, 1)
		if busiest < c.busiestLow || busiest > c.busiestHigh || kept < c.low || kept > c.up {
			t.Errorf("%s: the busiest eighth has %.3f, %.3f are kept", c.name, busiest, kept)
		}
	}
}

// Layers have busy experts of their own.
func TestLayersDiffer(t *testing.T) {
	r := New(Skew{Experts: 64, Used: 8, Zipf: 4})
	a, b := r.Experts(nil, 0, 0), r.Experts(nil, 1, 0)
	slices.Sort(a)
	slices.Sort(b)
	if slices.Equal(a, b) {
		t.Errorf("both layers use %v", a)
	}
}

// Figures that are out of range do no harm.
func TestOutOfRange(t *testing.T) {
	for _, s := range []Skew{{}, {Experts: 3, Used: 9, Keep: 7, Head: -1}, {Experts: -1, Used: -1, Keep: -1}} {
		if got := New(s).Experts(nil, 0, 100_000); len(got) < 1 {
			t.Errorf("%+v: %v", s, got)
		}
	}
}
