package nn

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/policy"
)

// routing is which experts the rows of a batch chose.
type routing struct {
	used    int
	ids     []int32   // rows × used, the highest score first
	weights []float32 // likewise
	visit   policy.Visit
	order   []int32 // row·used + rank, by expert, rising
	from    []int32 // by expert, where it begins in order
	count   []int32
}

// places are where a demand's outputs belong: row·used + rank, in rising order.
func (t *routing) places(demand int) []int32 {
	e := t.visit.Demands[demand].Expert
	return t.order[t.from[e]:][:t.count[e]]
}

// route chooses the experts of every row.
func (f *moe) route(r *run, in *kernel.Acts) (routing, error) {
	d := &f.desc
	scores := r.floats(r.rows * d.Experts)
	t := routing{used: d.Used, weights: r.floats(r.rows * d.Used), ids: r.ints(r.rows * d.Used)}
	t.order = r.ints(r.rows * d.Used)
	table := r.ints(2 * d.Experts)
	t.from, t.count = table[:d.Experts], table[d.Experts:]
	if err := r.linear(f.router, in, scores); err != nil {
		return t, err
	}
	r.tasks.choosing = choosing{&f.desc, t.ids, t.weights, scores}
	r.each(d.Experts, &r.tasks.choosing)
	f.tapRouting(r, &t)
	t.group(r, d.Experts)
	if r.env.Routing != nil {
		r.env.Routing(f.index, t.visit, t.answersFirst(r))
	}
	return t, nil
}

// answersFirst is the ids of the rows of answers, then those of prompts.
func (t *routing) answersFirst(r *run) []int32 {
	if t.visit.Decode == 0 || t.visit.Prefill == 0 {
		return t.ids
	}
	r.sorted = r.sorted[:0]
	for _, prompt := range []bool{false, true} {
		row := 0
		for _, s := range r.batch.Segments {
			if n := s.Rows(); s.Prompt == prompt {
				r.sorted = append(r.sorted, t.ids[row*t.used:][:n*t.used]...)
			}
			row += s.Rows()
		}
	}
	return r.sorted
}

// choose finds the experts of one row by its scores, which it overwrites.
func (d *MoE) choose(ids []int32, weights, scores []float32) {
	kernel.TopK(ids, scores)
	if d.Weights != SoftmaxChosen {
		kernel.Softmax(scores)
	}
	for i, e := range ids {
		weights[i] = scores[e]
	}
	switch d.Weights {
	case SoftmaxUnit:
		kernel.Unit(weights)
	case SoftmaxChosen:
		kernel.Softmax(weights)
	}
}

// group lists the rows of each expert, and the experts as demands: those of most answer rows first, then those
// of most prompt rows, and among equals by rank and row.
func (t *routing) group(r *run, experts int) {
	clear(t.count)
	for _, e := range t.ids {
		t.count[e]++
	}
	at := int32(0)
	for e, n := range t.count {
		t.from[e] = at
		at += n
		t.count[e] = 0
	}
	for i, e := range t.ids {
		t.order[t.from[e]+t.count[e]] = int32(i)
		t.count[e]++
	}
	t.demand(r, experts)
}

// demand makes the visit's demands, in memory of the run.
func (t *routing) demand(r *run, experts int) {
	r.demands = slices.Grow(r.demands[:0], experts)
	r.indices = append(r.indices[:0], make([]int32, experts)...)
	for rank := range t.used {
		row := 0
		for _, s := range r.batch.Segments {
			for range s.Rows() {
				e := t.ids[row*t.used+rank]
				if r.indices[e] == 0 {
					r.demands = append(r.demands, policy.Demand{Expert: e})
					r.indices[e] = int32(len(r.demands))
				}
				d := &r.demands[r.indices[e]-1]
				if s.Prompt {
					d.Prefill++
				} else {
					d.Decode++
				}
				row++
			}
		}
	}
	for _, s := range r.batch.Segments {
		if s.Prompt {
			t.visit.Prefill += int32(s.Rows())
		} else {
			t.visit.Decode += int32(s.Rows())
		}
	}
	slices.SortStableFunc(r.demands, func(a, b policy.Demand) int {
		return cmp.Or(cmp.Compare(b.Decode, a.Decode), cmp.Compare(b.Prefill, a.Prefill))
	})
	t.visit.Demands = r.demands
}

// lose ends the segments that need an expert which could not be read.
func (t *routing) lose(r *run, y []float32, demand, hidden int, err error) {
	for _, at := range t.places(demand) {
		clear(y[int(at)*hidden:][:hidden])
		row := int(at) / t.used
		for _, s := range r.batch.Segments {
			if row < s.Rows() {
				if s.Err == nil {
					s.Err = err
				}
				break
			}
			row -= s.Rows()
		}
	}
}

func (f *moe) tapRouting(r *run, t *routing) {
	if r.batch.Tap == nil {
		return
	}
	ids := r.floats(len(t.ids))
	for i, e := range t.ids {
		ids[i] = float32(e)
	}
	r.tap(fmt.Sprintf("layer.%d.router.experts", f.layer), t.used, ids)
	r.tap(fmt.Sprintf("layer.%d.router.weights", f.layer), t.used, t.weights)
}

func (r *run) ints(n int) []int32 { return mem.As[int32](r.bytes(4 * n)) }
