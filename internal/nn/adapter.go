package nn

import (
	"fmt"

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

const (
	// MaxRank is the largest rank of an update that every pass has scratch for.
	MaxRank = 256

	adapterRows = 8   // of a batch that are updated at once,
	adapterOuts = 256 // and outputs of each
)

// Check returns an error if an update does not fit its matrix. Forward relies on it.
func (a *Adapter) Check() error {
	for m, p := range a.Parts {
		if p.Rank < 1 || p.Rank > MaxRank {
			return fmt.Errorf("adapter %d: the update of %s has rank %d, expected 1 to %d", a.ID, m.Name, p.Rank, MaxRank)
		}
		if len(p.A) != p.Rank*m.Cols || len(p.B) != m.Rows*p.Rank {
			return fmt.Errorf("adapter %d: the update of %s has %d and %d values, rank %d on %d × %d needs %d and %d",
				a.ID, m.Name, len(p.A), len(p.B), p.Rank, m.Rows, m.Cols, p.Rank*m.Cols, m.Rows*p.Rank)
		}
	}
	return nil
}

// adapterScratch adds what adapt takes from the arena.
func adapterScratch(s *sizes) {
	s.floats(adapterRows * MaxRank)
	s.bytes(kernel.ActsBytes(adapterRows, MaxRank, false))
	s.floats(adapterRows * adapterOuts)
}

// adapt adds the updates of the segments that have an adapter for m.
func (r *run) adapt(m *layout.Matrix, in *kernel.Acts, out []float32) {
	row := 0
	for _, s := range r.batch.Segments {
		first := row
		row += r.rowsOf(s)
		if s.Adapter == nil {
			continue
		}
		part, ok := s.Adapter.Parts[m]
		for ; ok && first < row; first += adapterRows {
			n := min(adapterRows, row-first)
			inputs := len(r.inputs)
			x := r.input(kernel.Acts{Rows: n, Cols: in.Cols, Stride: in.Stride, F32: in.F32[first*in.Stride:][:n*in.Stride]})
			part.add(r, s.Adapter.Scale, x, out[first*m.Rows:][:n*m.Rows])
			r.inputs = r.inputs[:inputs]
		}
	}
}

// add adds the update of x to y, x.Rows × outputs.
func (p LowRank) add(r *run, scale float32, x *kernel.Acts, y []float32) {
	mark := r.env.Arena.Mark()
	defer r.env.Arena.Reset(mark)
	outs := len(y) / x.Rows
	low := r.floats(x.Rows * p.Rank)
	r.float(p.A, p.Rank, x, low)
	mid := r.input(kernel.MakeActs(r.bytes(kernel.ActsBytes(x.Rows, p.Rank, false)), x.Rows, p.Rank, false))
	mid.SetRows(r.env.Pool, low, p.Rank)
	part := r.floats(x.Rows * min(outs, adapterOuts))
	for at := 0; at < outs; at += adapterOuts {
		n := min(adapterOuts, outs-at)
		r.float(p.B[at*p.Rank:][:n*p.Rank], n, mid, part)
		for i := range x.Rows {
			kernel.AddScaled(y[i*outs+at:][:n], scale, part[i*n:][:n])
		}
	}
}

// float writes the product of f32 weights in memory, rows × x.Cols, to out, x.Rows × rows.
func (r *run) float(w []float32, rows int, x *kernel.Acts, out []float32) {
	weights := kernel.Weights{Type: quant.F32, Rows: rows, Cols: x.Cols, Data: mem.FromFloat32s(w)}
	kernel.MatMul(r.env.Pool, r.kernScratch, weights, x, out, rows, false)
}
