// Package policy decides which experts of a mixture-of-experts model stay in memory. It only decides:
// no I/O, no locks, no goroutines, no floats and no allocation in a decision, so that the same demands
// give the same decisions on every machine, in the pager as in a replayed trace.
//
// A Rule says how much each expert is worth; a Table knows which slot holds whom and finds slots for
// what is missing; Distribute cuts slots into shares of the layers; Optimum is Belady's bound on them all.
package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Shape is a model's experts: layers that have some, and experts in each. Both are at least 1. Layers
// count from 0 among those that have experts.
type Shape struct{ Layers, Experts int }

func (s Shape) all() int { return s.Layers * s.Experts }

// Demand is an expert that one step needs in one layer, with how many rows chose it: rows of running
// answers, and rows of prompts.
type Demand struct {
	Expert          int32
	Decode, Prefill int32
}

// Visit is one step's pass through one layer: how many rows pass, and the distinct experts that they
// chose, each with Decode + Prefill ≥ 1, those that matter most first.
type Visit struct {
	Decode, Prefill int32
	Demands         []Demand
}

// A Rule ranks experts. Layers and experts lie within the shape that it was made for.
type Rule interface {
	// Observe learns from a visit to a layer; once for each, before its experts are looked for.
	Observe(layer int, v Visit)
	// Worth of an expert in memory: the least goes first. Figures of one layer compare, and change with its visits alone.
	Worth(layer, expert int) int64
}

// acrossLayers marks rules whose figures compare across layers: as probabilities do, and ages do not.
type acrossLayers interface{ acrossLayers() }

// Default is the name of the rule that measures best: see docs/experts.md.
const Default = "adaptive"

// Names of the rules that New makes.
func Names() []string { return []string{"static", "lru", "lfu", "adaptive"} }

// New returns the rule of that name. Only static looks at profile: how often each expert was chosen, by
// layer × Shape.Experts + expert; it is kept.
func New(name string, s Shape, profile []int64) (Rule, error) {
	switch name {
	case "static":
		if len(profile) != s.all() {
			return nil, fmt.Errorf("policy static needs a profile of %d layers with %d experts, not of %d figures", s.Layers, s.Experts, len(profile))
		}
		return &static{s, profile}, nil
	case "lru":
		return newLRU(s), nil
	case "lfu":
		return newLFU(s), nil
	case "adaptive":
		return newAdaptive(s), nil
	}
	return nil, fmt.Errorf("there is no policy %q; there are %s", name, strings.Join(Names(), ", "))
}

// static keeps the experts that a profile says are busiest, whatever happens.
type static struct {
	shape   Shape
	profile []int64
}

func (*static) Observe(int, Visit) {}
func (*static) acrossLayers()      {}

func (r *static) Worth(layer, expert int) int64 { return r.profile[layer*r.shape.Experts+expert] }

// lru keeps what was needed last. Within a visit, what matters most counts as needed last.
type lru struct {
	shape Shape
	clock int64
	last  []int64
}

func newLRU(s Shape) *lru { return &lru{shape: s, last: make([]int64, s.all())} }

func (r *lru) Observe(layer int, v Visit) {
	last := r.last[layer*r.shape.Experts:][:r.shape.Experts]
	for _, d := range slices.Backward(v.Demands) {
		r.clock++
		last[d.Expert] = r.clock
	}
}

func (r *lru) Worth(layer, expert int) int64 { return r.last[layer*r.shape.Experts+expert] }

// lfuPeriod is after how many visits a layer's counts are halved.
const lfuPeriod = 128

// lfu keeps what was needed most often, with ageing: counts are halved every lfuPeriod visits. Equal
// counts go by who was needed last.
type lfu struct {
	lru
	count  []int32
	visits []int32 // by layer, since the last halving
}

func newLFU(s Shape) *lfu {
	return &lfu{*newLRU(s), make([]int32, s.all()), make([]int32, s.Layers)}
}

func (r *lfu) Observe(layer int, v Visit) {
	r.lru.Observe(layer, v)
	count := r.count[layer*r.shape.Experts:][:r.shape.Experts]
	if r.visits[layer]++; r.visits[layer] > lfuPeriod {
		r.visits[layer] = 1
		for i := range count {
			count[i] >>= 1
		}
	}
	for _, d := range v.Demands {
		count[d.Expert] += lfuOne
	}
}

// lfuOne leaves room for six halvings below one demand.
const lfuOne = 64

func (r *lfu) Worth(layer, expert int) int64 {
	const stamps = 40 // bits
	return int64(r.count[layer*r.shape.Experts+expert])<<stamps | r.lru.Worth(layer, expert)&(1<<stamps-1)
}
