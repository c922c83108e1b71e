package nn

import (
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/layout"
)

// ordered is the rows of in as m's columns are ordered, before they are rounded: values that share a
// block of 16-bit activations then meet weights of one group.
func (r *run) ordered(m *layout.Matrix, in *kernel.Acts) *kernel.Acts {
	form := kernel.Integer(m.Type, r.env.Exact)
	x := r.floats(in.Rows * m.Cols)
	a := r.input(kernel.MakeActs(r.bytes(kernel.ActsBytes(in.Rows, m.Cols, form)), in.Rows, m.Cols, form))
	r.tasks.ordering = ordering{x, r.env.Pager.Vector(m.Order), in, m.Cols}
	r.each(m.Cols, &r.tasks.ordering)
	a.SetRows(r.env.Pool, x, m.Cols)
	return a
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
