package policy

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// demandsOf are demands for some experts.
func demandsOf(experts ...int32) (v Visit) {
	for _, e := range experts {
		v.Demands = append(v.Demands, Demand{Expert: e, Decode: 1})
	}
	return v
}

func TestLog(t *testing.T) {
	l := NewLog(make([]uint16, 12))
	if l.End() != 0 || len(l.Steps(0, l.End())) != 0 {
		t.Errorf("an empty log ends at %d", l.End())
	}
	l.Add(0, demandsOf(3, 1))
	middle := l.End()
	l.Add(1, demandsOf(2))
	l.Add(2, demandsOf())
	end := l.End()
	if n := LogBytes(3, 3); int(n) != 2*end {
		t.Errorf("%d bytes for %d words", n, end)
	}
	want := []Step{{0, []uint16{3, 1}}, {1, []uint16{2}}, {2, []uint16{}}}
	same := func(a, b Step) bool { return a.Layer == b.Layer && slices.Equal(a.Experts, b.Experts) }
	if got := l.Steps(0, end); !slices.EqualFunc(got, want, same) {
		t.Errorf("steps %v, want %v", got, want)
	}
	if got := l.Steps(middle, end); !slices.EqualFunc(got, want[1:], same) {
		t.Errorf("from %d on: %v", middle, got)
	}
	if v, d := l.Count(middle, end); v != 2 || d != 1 {
		t.Errorf("%d visits, %d demands", v, d)
	}
	l.Add(3, demandsOf(1, 2, 3)) // one word too much
	if l.End() != -1 {
		t.Errorf("a full log ends at %d", l.End())
	}
	if l.Add(3, demandsOf()); l.End() != -1 { // what follows a gap is no use, even if it would fit
		t.Errorf("a log with a gap ends at %d", l.End())
	}
	if got := l.Steps(0, end); !slices.EqualFunc(got, want, same) {
		t.Errorf("what was there before: %v", got)
	}
}

// By hand: experts 0 and 1 of layer 0, 10 bytes each, and expert 0 of layer 1, with 25; two slots.
func TestLeastBytes(t *testing.T) {
	s := Shape{2, 2}
	steps := []Step{{0, []uint16{0, 1}}, {1, []uint16{0}}, {0, []uint16{0, 1}}, {1, []uint16{0}}, {0, []uint16{0}}}
	f := NewFuture(s, steps)
	// Cold, three experts are read once. Of two slots layer 0 has both first, one passes to the other layer or not: one of the second
	// uses misses, then expert 0 is there still.
	for _, c := range []struct {
		sizes []int64
		slots int
		warm  bool
		want  int64
	}{
		{[]int64{10, 10}, 2, false, 40},
		{[]int64{10, 10}, 3, false, 30},
		{[]int64{10, 10}, 0, false, 70},
		{[]int64{10, 10}, 3, true, 0},
		{[]int64{10, 10}, 2, true, 20},
		{[]int64{10, 10}, 0, true, 70},
		// Layer 1 alone needs its expert once: 4 misses at 10 bytes, one of them at 15 more.
		{[]int64{10, 25}, 2, false, 40 + 15},
		{[]int64{25, 10}, 2, false, 40 + 2*15},
		{[]int64{10, 25}, 3, false, 30 + 15},
		{[]int64{10, 25}, 0, false, 70 + 2*15},
		{[]int64{10, 25}, 1, true, 40}, // a bound: the slot cannot hold expert 0 for the smaller size and layer 1 for the larger one; the best reads 50
	} {
		if got := f.LeastBytes(c.sizes, c.slots, c.warm); got != c.want {
			t.Errorf("sizes %v, %d slots, warm %v: %d bytes, want %d", c.sizes, c.slots, c.warm, got, c.want)
		}
	}
}

func bestMisses(s Shape, steps []Step, slots int, warm bool) int64 {
	n := int64(0)
	for _, step := range steps {
		n += int64(len(step.Experts))
	}
	return n - best(s, steps, slots, warm, func(int32) int64 { return 1 })
}

// LeastBytes is what the best of all decisions reads if sizes are equal, and never more than that.
func TestLeastBytesIsLeast(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := Shape{rapid.IntRange(1, 3).Draw(rt, "layers"), 3}
		steps := drawSteps(rt, s, 8)
		slots := rapid.IntRange(0, 4).Draw(rt, "slots")
		warm := rapid.Bool().Draw(rt, "warm")
		sizes := rapid.SliceOfN(rapid.SampledFrom([]int64{4, 5, 9}), s.Layers, s.Layers).Draw(rt, "sizes")
		all, demands := int64(0), int64(0)
		for _, step := range steps {
			all += sizes[step.Layer] * int64(len(step.Experts))
			demands += int64(len(step.Experts))
		}
		f := NewFuture(s, steps)
		got := f.LeastBytes(sizes, slots, warm)
		want := all - best(s, steps, slots, warm, func(layer int32) int64 { return sizes[layer] })
		if got > want || got < slices.Min(sizes)*bestMisses(s, steps, slots, warm) {
			rt.Fatalf("%d bytes, the best reads %d", got, want)
		}
		if slices.Min(sizes) == slices.Max(sizes) && got != want {
			rt.Fatalf("%d bytes of equal sizes, the best reads %d", got, want)
		}
		if hits := f.OptimumWarm(slots); hits != demands-bestMisses(s, steps, slots, true) {
			rt.Fatalf("%d hits with slots that were full", hits)
		}
	})
}
