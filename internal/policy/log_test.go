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

// By hand: experts 0 and 1 of layer 0, and expert 0 of layer 1, which may be of another size.
func TestLeastBytes(t *testing.T) {
	s := Shape{2, 2}
	steps := []Step{{0, []uint16{0, 1}}, {1, []uint16{0}}, {0, []uint16{0, 1}}, {1, []uint16{0}}, {0, []uint16{0}}}
	f := NewFuture(s, steps)
	// Cold, three experts are read once. Of two slots layer 0 has both first, one passes to the other layer or not: one of the second
	// uses misses, then expert 0 is there still.
	for _, c := range []struct {
		read, held []int64
		memory     int64
		warm       bool
		want       int64
	}{
		{[]int64{10, 10}, []int64{10, 10}, 20, false, 40},
		{[]int64{10, 10}, []int64{10, 10}, 29, false, 40},
		{[]int64{10, 10}, []int64{10, 10}, 30, false, 30},
		{[]int64{10, 10}, []int64{12, 12}, 30, false, 40},
		{[]int64{10, 10}, []int64{12, 12}, 36, false, 30},
		{[]int64{10, 10}, []int64{10, 10}, 0, false, 70},
		{[]int64{10, 10}, []int64{10, 10}, 30, true, 0},
		{[]int64{10, 10}, []int64{10, 10}, 20, true, 20},
		{[]int64{10, 10}, []int64{10, 10}, 9, true, 70},
		// Layer 1 alone needs its expert once: 4 misses at 10 bytes, one of them at 15 more.
		{[]int64{10, 25}, []int64{10, 25}, 25, false, 40 + 15},
		{[]int64{10, 25}, []int64{10, 25}, 24, false, 40 + 2*15}, // no room for the larger one, whatever the slots
		{[]int64{10, 25}, []int64{25, 25}, 49, false, 50 + 15},   // slots that are all as large
		{[]int64{25, 10}, []int64{25, 10}, 25, false, 40 + 3*15}, // a bound: one of layer 0, or two of the smaller size
		{[]int64{10, 25}, []int64{10, 25}, 30, false, 30 + 15},
		{[]int64{10, 25}, []int64{10, 25}, 0, false, 70 + 2*15},
	} {
		if got := f.LeastBytes(Sizes{c.read, c.held}, c.memory, c.warm); got != c.want {
			t.Errorf("%+v: %d bytes", c, got)
		}
	}
}

func bestMisses(s Shape, steps []Step, slots int, warm bool) int64 {
	n := int64(0)
	for _, step := range steps {
		n += int64(len(step.Experts))
	}
	return n - best(s, steps, within(slots), warm, func(int32) int64 { return 1 })
}

// LeastBytes is what the best of all decisions reads if sizes are equal, and never more than that, wherever experts lie.
func TestLeastBytesIsLeast(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := Shape{rapid.IntRange(1, 3).Draw(rt, "layers"), 3}
		steps := drawSteps(rt, s, 8)
		memory := rapid.Int64Range(0, 40).Draw(rt, "memory")
		warm := rapid.Bool().Draw(rt, "warm")
		sizes := Sizes{Read: rapid.SliceOfN(rapid.SampledFrom([]int64{4, 5, 9}), s.Layers, s.Layers).Draw(rt, "read")}
		for _, n := range sizes.Read {
			sizes.Held = append(sizes.Held, n+rapid.Int64Range(0, 2).Draw(rt, "padding"))
		}
		all, demands := int64(0), int64(0)
		for _, step := range steps {
			all += sizes.Read[step.Layer] * int64(len(step.Experts))
			demands += int64(len(step.Experts))
		}
		fits := func(set uint32) bool {
			n := int64(0)
			for l := range s.Layers {
				n += sizes.Held[l] * int64(ones(set>>(l*s.Experts)&(1<<s.Experts-1)))
			}
			return n <= memory
		}
		f := NewFuture(s, steps)
		got := f.LeastBytes(sizes, memory, warm)
		want := all - best(s, steps, fits, warm, func(layer int32) int64 { return sizes.Read[layer] })
		most := int(memory / slices.Min(sizes.Held)) // as if all were as small
		if got > want || got < slices.Min(sizes.Read)*bestMisses(s, steps, most, warm) {
			rt.Fatalf("%d bytes, the best reads %d", got, want)
		}
		if equal(sizes.Read) && equal(sizes.Held) && got != want {
			rt.Fatalf("%d bytes of equal sizes, the best reads %d", got, want)
		}
		if hits := f.optimum(1, together, most, true); hits != demands-bestMisses(s, steps, most, true) {
			rt.Fatalf("%d hits with slots that were full", hits)
		}
	})
}

func equal(sizes []int64) bool { return slices.Min(sizes) == slices.Max(sizes) }
