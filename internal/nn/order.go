package nn

import (
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/layout"
)

// ordered is the rows of in as m's columns are ordered, before they are rounded: values that share a
// block of 16-bit activations then meet weights of one group.
func (r *run) ordered(m *layout.Matrix, in *kernel.Acts) *kernel.Acts {
	order := r.env.Pager.Vector(m.Order)
	form := kernel.Integer(m.Type, r.env.Exact)
	x := r.floats(in.Rows * m.Cols)
	a := kernel.MakeActs(r.bytes(kernel.ActsBytes(in.Rows, m.Cols, form)), in.Rows, m.Cols, form)
	r.each(m.Cols, func(row int) {
		dst, src := x[row*m.Cols:][:m.Cols], in.F32[row*in.Stride:][:m.Cols]
		for k, from := range order {
			dst[k] = src[int(from)]
		}
	})
	a.SetRows(r.env.Pool, x, m.Cols)
	return &a
}

// orderScratch adds what ordered takes from the arena for n rows of the widest of the matrices.
func orderScratch(s *sizes, n int, ms []*layout.Matrix) {
	mark := s.mark()
	for _, m := range ms {
		if m.Order != nil {
			s.reset(mark)
			s.floats(n * m.Cols)
			s.acts(n, m.Cols, m)
		}
	}
	s.reset(mark)
}
