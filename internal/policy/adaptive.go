package policy

import "math/bits"

const (
	one        = 1 << 24 // a probability of 1
	slowShift  = 7       // use is averaged over 2^slowShift visits
	learnShift = 7       // so is what is learnt about ages
	ages       = 12      // classes of ages: 1, 2–3, 4–7 … visits
	prior      = 20      // opportunities that a class needs before it is believed
	early      = 16      // visits that the first ones are averaged with
)

// adaptive estimates for each expert how probable it is that the next answer row needs it: how often it was
// needed in the long run, and what its age (visits since an answer needed it) adds to that. What an age adds is learnt
// layer by layer, from how often experts of that age were needed beyond their long-run share. So it is
// LFU where routing has no memory, leans to LRU as far as routing has one, and says so in one scale.
//
// Prompts are no uses: they move the long-run share by the share of their rows, and no age. A chunk that
// touches everything therefore displaces nothing that answers need more.
type adaptive struct {
	shape  Shape
	share  []int32 // long-run probability, in one-ths
	used   []int32 // visit of the layer at which an answer needed it last, 0 never
	visits []int32 // by layer
	clock  []int32 // by layer, visits with answer rows
	learnt []learnt
}

// learnt is what a layer knows of the ages: opportunities, and the sum of demands less long-run shares,
// both in one-ths, fading.
type learnt struct{ chances, excess [ages]int64 }

func newAdaptive(s Shape) *adaptive {
	return &adaptive{
		shape: s, share: make([]int32, s.all()), used: make([]int32, s.all()),
		visits: make([]int32, s.Layers), clock: make([]int32, s.Layers), learnt: make([]learnt, s.Layers),
	}
}

// ageClass of an expert that was last needed at visit used, as seen at visit now.
func ageClass(now, used int32) int {
	if used == 0 {
		return ages - 1
	}
	return min(bits.Len32(uint32(now-used)), ages-1)
}

func (r *adaptive) Observe(layer int, v Visit) {
	if v.Decode > 0 {
		r.clock[layer]++
		r.learn(layer, v)
	}
	r.average(layer, v)
}

// learn compares what was needed with the long-run shares, age by age, then sets the ages of what was.
func (r *adaptive) learn(layer int, v Visit) {
	base, now, l := layer*r.shape.Experts, r.clock[layer], &r.learnt[layer]
	for a := range ages {
		l.chances[a] -= l.chances[a] >> learnShift
		l.excess[a] -= l.excess[a] / (1 << learnShift)
	}
	share, used := r.share[base:][:r.shape.Experts], r.used[base:][:r.shape.Experts]
	for i, u := range used {
		a := ageClass(now, u)
		l.chances[a] += one
		l.excess[a] -= int64(share[i])
	}
	for _, d := range v.Demands {
		if d.Decode > 0 {
			l.excess[ageClass(now, used[d.Expert])] += one
			used[d.Expert] = now
		}
	}
}

// average moves the long-run shares towards this visit, faster during the first ones.
func (r *adaptive) average(layer int, v Visit) {
	weight := min(r.visits[layer]+early, 1<<slowShift)
	r.visits[layer] = weight - early + 1
	share := r.share[layer*r.shape.Experts:][:r.shape.Experts]
	for i, s := range share {
		share[i] = s - s/weight
	}
	for _, d := range v.Demands {
		x := int64(one)
		if d.Decode == 0 {
			x = int64(d.Prefill) * one / int64(v.Prefill)
		}
		share[d.Expert] += int32(x / int64(weight))
	}
}

func (*adaptive) acrossLayers() {}

// Worth is the probability in one-ths; it compares across layers too.
func (r *adaptive) Worth(layer, expert int) int64 {
	i, l := layer*r.shape.Experts+expert, &r.learnt[layer]
	a := ageClass(r.clock[layer]+1, r.used[i])
	return int64(r.share[i]) + l.excess[a]/(l.chances[a]/one+prior)
}
