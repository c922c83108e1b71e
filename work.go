package spillway

import (
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/plan"
)

// AddMatrices adds to w the operations of the model's matrices for so many rows, some of which reach the head.
func (m *Model) AddMatrices(w *plan.Work, rows, headRows int) {
	for _, b := range m.Layout().Bundles {
		n := float64(rows)
		switch b.Kind {
		case layout.Embedding:
			continue
		case layout.Head:
			n = float64(headRows)
		}
		for _, x := range b.Matrices {
			operations := 2 * n * float64(x.Rows) * float64(x.Cols)
			if kernel.Integer(x.Type, m.options.Exact) {
				w.Integers += operations
			} else {
				w.Floats += operations
			}
		}
	}
	m.addExperts(w, rows)
}

// addExperts adds those of the experts that so many rows use.
func (m *Model) addExperts(w *plan.Work, rows int) {
	for i := range m.Layout().Experts {
		l := &m.Layout().Experts[i]
		for k := range l.Stacks {
			x := &l.Stacks[k]
			operations := 2 * float64(rows) * float64(l.Used) * float64(x.Rows) * float64(x.Cols)
			if kernel.Integer(x.Type, m.options.Exact) {
				w.Integers += operations
			} else {
				w.Floats += operations
			}
		}
	}
}

// AddAttention adds to w what attention costs for a sequence's rows from to to-1, and the bytes of the cache that
// they read at least: once for all of them if they come together, as a prompt's do, else once for each.
func (m *Model) AddAttention(w *plan.Work, from, to int, together bool) {
	t, err := m.options.cacheType()
	if err != nil { // no model has such options
		return
	}
	const block = 32 // values; every type has as many in whole bytes
	step := 1
	if together {
		step = max(to-from, 1)
	}
	for at := from; at < to; at += step {
		operations, values := m.Layout().AttentionWork(at, at+step)
		w.Floats += operations
		w.Active += values * int64(t.RowBytes(block)) / block
	}
}
