package policy

// A Step is one visit of a trace: which distinct experts of a layer are needed.
type Step struct {
	Layer   int32
	Experts []uint16
}

// Future is a trace with what it needs next, for every demand. Its methods may run at the same time.
type Future struct {
	shape Shape
	steps []Step
	next  []int32 // by demand: the number (from 1) of the step that needs the expert next, 0 for never
	first []int32 // by layer × Experts + expert: the step that needs it first
}

// NewFuture looks through a trace backwards. It takes 4 bytes for each demand, and keeps steps; see FutureBytes.
func NewFuture(s Shape, steps []Step) *Future {
	n := 0
	for _, step := range steps {
		n += len(step.Experts)
	}
	f := &Future{s, steps, make([]int32, n), make([]int32, s.all())}
	last := f.first // seen from the end
	for i := len(steps) - 1; i >= 0; i-- {
		step := steps[i]
		n -= len(step.Experts)
		for j, e := range step.Experts {
			at := int(step.Layer)*s.Experts + int(e)
			f.next[n+j], last[at] = last[at], int32(i+1)
		}
	}
	return f
}

// Optimum is how many demands find their expert in memory if one has slots slots over all layers and
// knows the future (Belady 1966): no policy hits more. An expert that is read may pass through without
// staying, so that it bounds tables with slots in transit too.
//
// What stays is what is needed soonest again; that is optimal because reading any expert costs the same.
func (f *Future) Optimum(slots int) (hits int64) {
	return f.optimum(1, together, slots, false)
}

func together(int32) int32 { return 0 }

// OptimumByLayer is the same if every layer has slots slots of its own.
func (f *Future) OptimumByLayer(slots int) (hits int64) {
	return f.optimum(f.shape.Layers, func(layer int32) int32 { return layer }, slots, false)
}

// leftOut is the set of layers that do not count.
const leftOut = -1

// optimum is the hits of the optimum with so many slots for each of some sets of layers. Warm: slots may hold any experts to begin with.
func (f *Future) optimum(sets int, setOf func(layer int32) int32, slots int, warm bool) (hits int64) {
	return f.search(make([]farthest, sets), f.newUses(), setOf, slots, warm)
}

func (f *Future) newUses() uses {
	return uses{make([]int32, f.shape.all()), make([]int32, f.shape.all())}
}

// search is optimum in memory that an earlier search may have used.
func (f *Future) search(kept []farthest, use uses, setOf func(layer int32) int32, slots int, warm bool) (hits int64) {
	clear(use.next)
	clear(use.place)
	for i := range kept {
		kept[i] = kept[i][:0]
	}
	if warm {
		f.warm(kept, use, setOf, slots)
	}
	demand := 0
	for _, step := range f.steps {
		of := setOf(step.Layer)
		if of == leftOut {
			demand += len(step.Experts)
			continue
		}
		set := &kept[of]
		for _, e := range step.Experts {
			at := step.Layer*int32(f.shape.Experts) + int32(e)
			if use.place[at] > 0 {
				hits++
				set.remove(use, at)
			}
			if use.next[at] = f.next[demand]; use.next[at] > 0 {
				set.add(use, at)
			}
			demand++
		}
		for len(*set) > slots {
			set.remove(use, (*set)[0])
		}
	}
	return hits
}

// warm fills the slots with what is needed first.
func (f *Future) warm(kept []farthest, use uses, setOf func(layer int32) int32, slots int) {
	for at, first := range f.first {
		of := setOf(int32(at / f.shape.Experts))
		if first == 0 || of == leftOut {
			continue
		}
		use.next[at] = first
		set := &kept[of]
		if set.add(use, int32(at)); len(*set) > slots {
			set.remove(use, (*set)[0])
		}
	}
}

// uses says when an expert is needed next, and its place (from 1) in a heap, 0 for none.
type uses struct{ next, place []int32 }

// farthest is a heap of experts, the one that is needed last on top.
type farthest []int32

func (h *farthest) add(u uses, expert int32) {
	*h = append(*h, expert)
	u.place[expert] = int32(len(*h))
	h.up(u, len(*h)-1)
}

func (h *farthest) remove(u uses, expert int32) {
	at, last := int(u.place[expert])-1, len(*h)-1
	h.swap(u, at, last)
	*h = (*h)[:last]
	u.place[expert] = 0
	if at < last {
		h.up(u, at)
		h.down(u, at)
	}
}

func (h *farthest) up(u uses, i int) {
	for i > 0 && u.next[(*h)[i]] > u.next[(*h)[(i-1)/2]] {
		h.swap(u, i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (h *farthest) down(u uses, i int) {
	for {
		child := 2*i + 1
		if child+1 < len(*h) && u.next[(*h)[child+1]] > u.next[(*h)[child]] {
			child++
		}
		if child >= len(*h) || u.next[(*h)[child]] <= u.next[(*h)[i]] {
			return
		}
		h.swap(u, i, child)
		i = child
	}
}

func (h *farthest) swap(u uses, i, j int) {
	a := *h
	a[i], a[j] = a[j], a[i]
	u.place[a[i]], u.place[a[j]] = int32(i+1), int32(j+1)
}
