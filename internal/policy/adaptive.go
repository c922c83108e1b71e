package policy

import "math/bits"

const (
	one        = 1 << 24 // a probability of 1
	slowShift  = 7       // use is averaged over 2^slowShift visits
	learnShift = 7       // so is what is learnt about ages
	ages       = 13      // classes of ages: 1 in two halves, 2–3, 4–7 … visits
	prior      = 20      // opportunities that a class needs before it is believed
	priorSlope = 5 * one // squares of shares that a slope needs before it is believed
	leastSlope = one / 8
	early      = 16 // visits that the first ones are averaged with
)

// adaptive estimates for each expert how probable it is that the next answer row needs it, from how often it was
// needed in the long run and from its age (visits since an answer needed it; of those that the last one needed, whether it was among the better
// half). What an age adds, and how much a long-run share still says beside it, is learnt layer by layer: the regression of what is needed
// on shares within classes of ages. So it is LFU where routing has no memory, leans to LRU as far as routing has one, and says
// so in one scale.
//
// Prompts are no uses: they move the long-run share by the share of their rows, and no age. A chunk that
// touches everything therefore displaces nothing that answers need more.
type adaptive struct {
	shape  Shape
	share  []int32 // long-run probability, in one-ths
	used   []int32 // visit of the layer at which an answer needed it last, 0 never
	worse  []bool  // it was in the worse half of what that visit needed
	visits []int32 // by layer
	clock  []int32 // by layer, visits with answer rows
	learnt []learnt
}

// learnt is what a layer knows of the ages. All is in one-ths; sums fade.
type learnt struct {
	chances, shares, needed [ages]int64 // by age: opportunities, the sum of their long-run shares, and how many were needed
	squares, products       int64       // sums of squares of shares, and of shares of what was needed
	slope                   int64       // what a share counts
	bonus                   [ages]int64 // what an age adds
}

func newAdaptive(s Shape) *adaptive {
	r := &adaptive{
		shape: s, share: make([]int32, s.all()), used: make([]int32, s.all()), worse: make([]bool, s.all()),
		visits: make([]int32, s.Layers), clock: make([]int32, s.Layers), learnt: make([]learnt, s.Layers),
	}
	for i := range r.learnt {
		r.learnt[i].slope = one
	}
	return r
}

// ageClass of an expert that was last needed at visit used, as seen at visit now.
func ageClass(now, used int32, worse bool) int {
	switch {
	case used == 0:
		return ages - 1
	case now-used > 1:
		return min(bits.Len32(uint32(now-used)), ages-1)
	case worse:
		return 1
	}
	return 0
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
	l.fade()
	shares, used, worse := r.share[base:][:r.shape.Experts], r.used[base:][:r.shape.Experts], r.worse[base:][:r.shape.Experts]
	for i, u := range used {
		a, share := ageClass(now, u, worse[i]), int64(shares[i])
		l.chances[a] += one
		l.shares[a] += share
		l.squares += share * share / one
	}
	for i, d := range v.Demands {
		if d.Decode == 0 {
			continue
		}
		e := d.Expert
		l.needed[ageClass(now, used[e], worse[e])] += one
		l.products += int64(shares[e])
		used[e], worse[e] = now, 2*i >= len(v.Demands)
	}
	l.fit()
}

// fade makes what was learnt count less.
func (l *learnt) fade() {
	for a := range ages {
		l.chances[a] -= l.chances[a] >> learnShift
		l.shares[a] -= l.shares[a] >> learnShift
		l.needed[a] -= l.needed[a] >> learnShift
	}
	l.squares -= l.squares >> learnShift
	l.products -= l.products >> learnShift
}

// fit is a regression with one slope for all ages: experts that the last tokens kept have large shares for that alone, so that beside their
// ages shares count less.
func (l *learnt) fit() {
	with, within := l.products, l.squares // about the means of each age
	for a := range ages {
		if l.chances[a] > 0 {
			with -= scale(l.shares[a], l.needed[a], l.chances[a])
			within -= scale(l.shares[a], l.shares[a], l.chances[a])
		}
	}
	with, within = max(with+priorSlope, 0), max(within, 0)+priorSlope
	l.slope = one
	if with < within {
		l.slope = max(scale(with, one, within), leastSlope)
	}
	for a := range ages {
		l.bonus[a] = (l.needed[a] - scale(l.shares[a], l.slope, one)) / (l.chances[a]/one + prior)
	}
}

// scale is x × part ÷ whole, for figures that are not negative, part at most whole and whole above 0.
func scale(x, part, whole int64) int64 {
	hi, lo := bits.Mul64(uint64(x), uint64(part))
	q, _ := bits.Div64(hi, lo, uint64(whole))
	return int64(q)
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
	at, l := layer*r.shape.Experts+expert, &r.learnt[layer]
	return int64(r.share[at])*l.slope/one + l.bonus[ageClass(r.clock[layer]+1, r.used[at], r.worse[at])]
}
