package nn

import (
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/quant"
)

// Adapter is a set of low-rank updates (LoRA, Hu et al. 2021): y = W·x + Scale · B·(A·x). They are
// added after the bias and never merged into weights.
type Adapter struct {
	ID    int
	Scale float32
	Parts map[*layout.Matrix]LowRank
}

// LowRank is one matrix's update: A is [Rank × in], B is [out × Rank].
type LowRank struct {
	Rank int
	A, B []float32
}

// adapt adds the updates of the segments that have an adapter for l.
func (r *run) adapt(l linear, x, out []float32) {
	row := 0
	for _, s := range r.batch.Segments {
		first := row
		row += s.Rows()
		if s.Adapter == nil || x == nil {
			continue
		}
		part, ok := s.Adapter.Parts[l.m]
		if !ok {
			continue
		}
		mark := r.env.Arena.Mark()
		for i := first; i < row; i++ {
			part.add(r, s.Adapter.Scale, x[i*l.m.Cols:][:l.m.Cols], out[i*l.m.Rows:][:l.m.Rows])
		}
		r.env.Arena.Reset(mark)
	}
}

// add adds one row's update to y.
func (p LowRank) add(r *run, scale float32, x, y []float32) {
	mark := r.env.Arena.Mark()
	defer r.env.Arena.Reset(mark)
	low := p.product(r, p.A, p.Rank, x)
	kernel.AddScaled(y, scale, p.product(r, p.B, len(y), low))
}

func (p LowRank) product(r *run, w []float32, rows int, x []float32) []float32 {
	in := kernel.MakeActs(r.bytes(kernel.ActsBytes(1, len(x), false)), 1, len(x), false)
	in.SetRow(0, x)
	out := r.floats(rows)
	weights := kernel.Weights{Type: quant.F32, Rows: rows, Cols: len(x), Data: mem.FromFloat32s(w)}
	kernel.MatMul(r.env.Pool, r.kernScratch, weights, &in, out, rows, false)
	return out
}
