package nn

import (
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/pager"
)

// single computes experts for the only row of a batch, in two goes: all that have its input, then what follows.
func (f *moe) single(r *run, t *routing, some []pager.Expert, in *kernel.Acts, y []float32) error {
	mark := r.env.Arena.Mark()
	defer r.env.Arena.Reset(mark)
	w := f.desc.Width
	r.together = r.together[:0]
	mids := r.floats(4 * w * len(some)) // of each: gate and up, and both in turn if they are merged
	for i, e := range some {
		if e.Err != nil {
			t.lose(r, y, e.Demand, f.hidden, e.Err)
			continue
		}
		for k := range f.down() {
			if err := f.join(r, e, k, nil, f.entered(mids[4*w*i:][:4*w], k)); err != nil {
				return err
			}
		}
	}
	kernel.MatMulAll(r.env.Pool, r.kernScratch, in, r.env.Exact, r.together)
	r.together = r.together[:0]
	for i, e := range some {
		if e.Err != nil {
			continue
		}
		id := int(t.visit.Demands[e.Demand].Expert)
		mid := r.actsOf(1, f.middle(r, id, mids[4*w*i:][:4*w]), w, f.stacks[f.down()])
		if err := f.join(r, e, f.down(), mid, f.rowOf(t, e, y)); err != nil {
			return err
		}
	}
	kernel.MatMulAll(r.env.Pool, r.kernScratch, in, r.env.Exact, r.together)
	for _, e := range some {
		if e.Err == nil {
			f.correct(r, f.down(), int(t.visit.Demands[e.Demand].Expert), f.rowOf(t, e, y))
		}
	}
	return nil
}

// rowOf is where an expert's output for the only row belongs.
func (f *moe) rowOf(t *routing, e pager.Expert, y []float32) []float32 {
	return y[int(t.places(e.Demand)[0])*f.hidden:][:f.hidden]
}

// entered is where the products of a stack before the last one go.
func (f *moe) entered(mid []float32, stack int) []float32 {
	w := f.desc.Width
	if f.down() == 1 {
		return mid[2*w:]
	}
	return mid[stack*w:][:w]
}

// middle is the activation for one row, from products.
func (f *moe) middle(r *run, id int, mid []float32) []float32 {
	w := f.desc.Width
	for k := range f.down() {
		f.correct(r, k, id, f.entered(mid, k))
	}
	if f.down() == 1 {
		kernel.Alternate(mid[:w], mid[w:2*w], mid[2*w:])
	}
	f.activate(mid[:w], mid[w:2*w])
	return mid[:w]
}

// join adds an expert's matrix to what is multiplied next.
func (f *moe) join(r *run, e pager.Expert, stack int, in *kernel.Acts, out []float32) error {
	m := f.stacks[stack]
	for tile, err := range e.Tiles(stack) {
		if err != nil {
			return err
		}
		w := kernel.Weights{Type: m.Type, Rows: tile.Rows, Cols: m.Cols, Data: tile.Bytes()}
		r.together = append(r.together, kernel.Output{A: in, W: w, Out: out[tile.Row0:], Stride: m.Rows})
	}
	return nil
}
