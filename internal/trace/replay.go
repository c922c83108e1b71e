package trace

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/spillway/spillway/internal/policy"
)

// Setting is what a replay simulates.
type Setting struct {
	Policies []string
	Slots    []int   // of all layers together, at least 1
	Profile  []int64 // for the policy static, see policy.New; nil: this trace's own heat, which is hindsight
	// Equal gives each layer the same share for good; else shares follow measured use.
	Equal   bool
	Threads int // at least 1
}

// Outcome is how one policy did with so many slots.
type Outcome struct {
	Policy      string
	Slots       int
	Demands     int64 // experts that steps needed
	Hits        int64 // that were in memory
	Answers     int64 // demands of steps with rows of answers
	AnswerHits  int64
	DemandBytes int64 // 0 if sizes are not known
	ReadBytes   int64
	// Optimal is the hits of Belady's optimum with as many slots over all layers, OptimalByLayer those with equal shares of the
	// layers. They count demands: sizes that differ between layers do not enter.
	Optimal, OptimalByLayer int64
}

// HitRate is hits ÷ demands.
func (o Outcome) HitRate() float64 { return ratio(o.Hits, o.Demands) }

// AnswerHitRate is the same over steps with rows of answers.
func (o Outcome) AnswerHitRate() float64 { return ratio(o.AnswerHits, o.Answers) }

// OptimalHitRate is the hit rate of Belady's optimum over all layers.
func (o Outcome) OptimalHitRate() float64 { return ratio(o.Optimal, o.Demands) }

// OptimalByLayerHitRate is the hit rate of Belady's optimum with equal shares of the layers.
func (o Outcome) OptimalByLayerHitRate() float64 { return ratio(o.OptimalByLayer, o.Demands) }

// PolicyFraction is the least that any policy must read ÷ what this one read, 1 if neither reads.
func (o Outcome) PolicyFraction() float64 {
	if o.Hits == o.Demands {
		return 1
	}
	return ratio(o.Demands-o.Optimal, o.Demands-o.Hits)
}

func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// rebalanceSteps is how many steps lie between two looks at the layers' shares.
const rebalanceSteps = 64

// Replay simulates every policy with every number of slots. Outcomes are by number of slots, then policy, as
// they stand in the setting, the same for any number of threads.
func (t *Trace) Replay(ctx context.Context, s Setting) ([]Outcome, error) {
	if s.Profile == nil {
		s.Profile = t.Heat()
	}
	for _, n := range s.Slots {
		if n < 1 {
			return nil, fmt.Errorf("%d slots; give at least 1", n)
		}
	}
	for _, name := range s.Policies {
		if _, err := policy.New(name, t.Shape(), s.Profile); err != nil {
			return nil, err
		}
	}
	out := make([]Outcome, len(s.Slots)*len(s.Policies))
	bounds := make([]bound, len(s.Slots))
	t.inParallel(ctx, s, out, bounds)
	for i := range out {
		b := bounds[i/len(s.Policies)]
		out[i].Optimal, out[i].OptimalByLayer = b.all, b.layers
	}
	return out, ctx.Err()
}

// bound is Belady's hits with some number of slots.
type bound struct{ all, layers int64 }

// inParallel fills outcomes and bounds, each a task of its own.
func (t *Trace) inParallel(ctx context.Context, s Setting, out []Outcome, bounds []bound) {
	var wait sync.WaitGroup
	var next atomic.Int64
	future := policy.NewFuture(t.Shape(), t.steps)
	for range max(s.Threads, 1) {
		wait.Go(func() {
			for ctx.Err() == nil {
				switch i := int(next.Add(1)) - 1; {
				case i < len(bounds):
					bounds[i] = bound{
						future.Optimum(s.Slots[i]),
						future.OptimumByLayer(s.Slots[i] / t.Header.Layers),
					}
				case i < len(bounds)+len(out):
					i -= len(bounds)
					out[i] = t.run(ctx, s.Policies[i%len(s.Policies)], s.Slots[i/len(s.Policies)], s)
				default:
					return
				}
			}
		})
	}
	wait.Wait()
}

// player is one simulation.
type player struct {
	table   *policy.Table
	demands []policy.Demand
	slots   []int32
	using   []int // slots in use, in the order in which they will be released
}

// run simulates one policy; its name is right.
func (t *Trace) run(ctx context.Context, name string, slots int, s Setting) Outcome {
	shape, used := t.Shape(), t.Header.Used
	rule, _ := policy.New(name, shape, s.Profile)
	p := player{table: policy.NewTable(shape, rule), demands: make([]policy.Demand, shape.Experts), slots: make([]int32, shape.Experts)}
	p.table.Window = used
	for i := range min(slots, shape.Layers*shape.Experts) {
		p.table.Give(i)
	}
	transit := policy.Transit(shape, used, slots)
	p.table.SetQuotas(policy.Equal(shape, slots-transit))
	o := Outcome{Policy: name, Slots: slots}
	passes := 0
	for i, step := range t.steps {
		if step.Layer == 0 {
			if passes++; passes%rebalanceSteps == 0 {
				if ctx.Err() != nil {
					break
				}
				if !s.Equal {
					p.table.Rebalance(transit)
				}
			}
		}
		layer := int(step.Layer)
		v := t.visit(i, p.demands)
		o.count(v, p.visit(layer, v), t.ExpertBytes(layer))
	}
	return o
}

func (o *Outcome) count(v policy.Visit, hits int, bytes int64) {
	n := int64(len(v.Demands))
	o.Demands += n
	o.Hits += int64(hits)
	if v.Decode > 0 {
		o.Answers += n
		o.AnswerHits += int64(hits)
	}
	o.DemandBytes += n * bytes
	o.ReadBytes += (n - int64(hits)) * bytes
}

// visit runs a layer as the pager does: hits compute first, misses as their slots allow.
func (p *player) visit(layer int, v policy.Visit) (hits int) {
	hits = p.table.Visit(layer, v, p.slots)
	p.using = p.using[:0]
	for i := range v.Demands {
		if p.slots[i] >= 0 {
			p.using = append(p.using, int(p.slots[i]))
		}
	}
	for i, d := range v.Demands {
		if p.slots[i] >= 0 {
			continue
		}
		slot, ok := p.table.Load(layer, int(d.Expert))
		for !ok { // something in use must end first
			p.table.Release(p.using[0])
			p.using = p.using[1:]
			slot, ok = p.table.Load(layer, int(d.Expert))
		}
		p.using = append(p.using, slot)
	}
	for _, s := range p.using {
		p.table.Release(s)
	}
	return hits
}
