package policy

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawSteps makes up a small trace.
func drawSteps(rt *rapid.T, s Shape, most int) []Step {
	steps := make([]Step, rapid.IntRange(1, most).Draw(rt, "steps"))
	for i := range steps {
		steps[i].Layer = int32(i % s.Layers)
		for _, e := range rapid.SliceOfNDistinct(rapid.IntRange(0, s.Experts-1), 1, 3, rapid.ID).Draw(rt, "experts") {
			steps[i].Experts = append(steps[i].Experts, uint16(e))
		}
	}
	return steps
}

// bestHits is the most that a cache of some slots can hit.
func bestHits(s Shape, steps []Step, slots int) int64 {
	return best(s, steps, within(slots), false, func(int32) int64 { return 1 })
}

// within holds what takes so many slots at most.
func within(slots int) func(set uint32) bool {
	return func(set uint32) bool { return ones(set) <= slots }
}

// best tries everything that memory can keep after each step, a set of experts as bits that fits: the most that can be hit, where a hit counts worth.
func best(s Shape, steps []Step, fits func(set uint32) bool, warm bool, worth func(layer int32) int64) int64 {
	states := map[uint32]int64{0: 0}
	if warm {
		for set := range uint32(1) << s.all() {
			if fits(set) {
				states[set] = 0
			}
		}
	}
	for _, step := range steps {
		var needed uint32
		for _, e := range step.Experts {
			needed |= 1 << (int(step.Layer)*s.Experts + int(e))
		}
		next := map[uint32]int64{}
		for kept, value := range states {
			value += worth(step.Layer) * int64(ones(kept&needed))
			for sub := kept | needed; ; sub = (sub - 1) & (kept | needed) {
				if fits(sub) {
					next[sub] = max(next[sub], value)
				}
				if sub == 0 {
					break
				}
			}
		}
		states = next
	}
	most := int64(0)
	for _, v := range states {
		most = max(most, v)
	}
	return most
}

func ones(x uint32) (n int) {
	for ; x != 0; x &= x - 1 {
		n++
	}
	return n
}

func TestOptimumIsOptimal(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := Shape{rapid.IntRange(1, 2).Draw(rt, "layers"), rapid.IntRange(3, 4).Draw(rt, "experts")}
		steps := drawSteps(rt, s, 9)
		slots := rapid.IntRange(0, 5).Draw(rt, "slots")
		f := NewFuture(s, steps)
		if got, want := f.Optimum(slots), bestHits(s, steps, slots); got != want {
			rt.Fatalf("%d hits, %d are possible with %d slots in %v", got, want, slots, steps)
		}
		var want int64
		for l := range s.Layers {
			own := slices.DeleteFunc(slices.Clone(steps), func(x Step) bool { return int(x.Layer) != l })
			want += bestHits(s, own, slots)
		}
		if got := f.OptimumByLayer(slots); got != want {
			rt.Fatalf("%d hits by layer, %d are possible with %d slots each in %v", got, want, slots, steps)
		}
	})
}

// No rule beats the optimum, whatever the quotas; layer by layer no more than the optimum over all hits.
func TestOptimumBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := Shape{rapid.IntRange(1, 3).Draw(rt, "layers"), rapid.IntRange(3, 12).Draw(rt, "experts")}
		steps := drawSteps(rt, s, 120)
		slots := rapid.IntRange(1, s.all()).Draw(rt, "slots")
		f := NewFuture(s, steps)
		best := f.Optimum(slots)
		if layered := f.OptimumByLayer(slots / s.Layers); layered > best {
			rt.Fatalf("%d hits by layer, %d over all", layered, best)
		}
		rule, err := New(rapid.SampledFrom(Names()).Draw(rt, "rule"), s, make([]int64, s.all()))
		if err != nil {
			rt.Fatal(err)
		}
		table := NewTable(s, rule)
		table.Window = rapid.IntRange(0, 3).Draw(rt, "window")
		for i := range slots {
			table.Give(i)
		}
		table.SetQuotas(Equal(s, slots-Transit(s, 2, slots)))
		hits := int64(0)
		for i, step := range steps {
			experts := make([]int, len(step.Experts))
			for j, e := range step.Experts {
				experts[j] = int(e)
			}
			hits += int64(playVisit(table, int(step.Layer), visitOf(experts, i%7 == 0)))
		}
		if hits > best {
			rt.Fatalf("%d hits, the optimum is %d", hits, best)
		}
	})
}

// On a cycle that is one expert too long for the memory, recency hits nothing and the optimum all but one.
func TestOptimumOnCycle(t *testing.T) {
	s := Shape{1, 5}
	var steps []Step
	for i := range 100 {
		steps = append(steps, Step{0, []uint16{uint16(i % 5)}})
	}
	if got := NewFuture(s, steps).Optimum(4); got < 75 {
		t.Errorf("%d hits", got)
	}
	table := NewTable(s, newLRU(s))
	for i := range 4 {
		table.Give(i)
	}
	for _, step := range steps {
		if playVisit(table, 0, visitOf([]int{int(step.Experts[0])}, false)) != 0 {
			t.Fatal("a hit")
		}
	}
}
