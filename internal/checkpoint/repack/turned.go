package repack

import (
	"fmt"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/quant"
)

// AddTurned adds matrix number expert of a stack [experts, cols, rows] of floats: outputs and inputs are
// exchanged.
func (f *File) AddTurned(t *Tensor, expert, rows, cols int) (Matrix, error) {
	if t.Type != quant.F32 && t.Type != quant.F16 && t.Type != quant.BF16 {
		return Matrix{}, fmt.Errorf("tensor %s has the type %s, expected F32, F16 or BF16", container.Name(t.Name), t.DType)
	}
	if len(t.Shape) != 3 || expert < 0 || expert >= t.Shape[0] || t.Shape[1] != cols || t.Shape[2] != rows {
		return Matrix{}, fmt.Errorf("tensor %s has shape %v, expected more than %d × %d × %d", container.Name(t.Name), t.Shape, expert, cols, rows)
	}
	f.exchanged = true
	w := t.Type.RowBytes(1)
	base := int64(expert) * int64(rows) * int64(cols) * int64(w)
	offset := f.add(rows, cols*w, 0, func(j *job) error { return j.turn(t, base, w, rows, cols) })
	return Matrix{Type: t.Type, Offset: offset, Order: -1}, nil
}

// turn fills the job's rows from columns of w-byte values.
func (j *job) turn(t *Tensor, base int64, w, rows, cols int) error {
	return j.columns(w, 1, func(lo, hi int) error {
		s := strip{t: t, base: base, stride: int64(rows * w), s1: cols, b0: int64(lo * w), n: int64((hi - lo) * w)}
		return j.visit(s, func(k, count int, b []byte, pitch int) error {
			for r := lo; r < hi; r++ {
				row := j.row(r)[k*w:]
				for i := range count {
					copy(row[i*w:(i+1)*w], b[i*pitch+(r-lo)*w:])
				}
			}
			return nil
		})
	})
}
