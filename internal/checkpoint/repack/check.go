package repack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/quant"
)

// Matrix is where a matrix lies in a File.
type Matrix struct {
	Type   quant.Type
	Offset int64
	// Order is the offset of Cols f32 numbers, or −1: column k of the matrix meets activation Order[k].
	Order int64
}

// wants checks a tensor's type and shape.
func wants(t *Tensor, dtypes string, shape ...int) error {
	if !slices.Contains(strings.Fields(dtypes), t.DType) {
		return fmt.Errorf("tensor %s has the type %s, expected %s", container.Name(t.Name), t.DType, strings.ReplaceAll(dtypes, " ", " or "))
	}
	if !slices.Equal(t.Shape, shape) {
		return fmt.Errorf("tensor %s has shape %v, expected %v", container.Name(t.Name), t.Shape, shape)
	}
	return nil
}

// grid is scales of which each belongs to br × bc values of a matrix.
type grid struct {
	t      *Tensor
	number number
	br, bc int
	cols   int // of the grid
}

// gridOf finds out what a scale tensor's shape means: one value, one for each row, one for bc columns
// of a row, or one for each block of br × bc.
func gridOf(t *Tensor, rows, cols int, block [2]int) (grid, error) {
	n, ok := numberOf(t)
	if !ok {
		return grid{}, fmt.Errorf("tensor %s has the type %s, which scales cannot have", container.Name(t.Name), t.DType)
	}
	g := grid{t: t, number: n, br: rows, bc: cols, cols: 1}
	switch {
	case t.Elements() == 1:
		return g, nil
	case slices.Equal(t.Shape, []int{rows}), slices.Equal(t.Shape, []int{rows, 1}):
		g.br = 1
		return g, nil
	case len(t.Shape) == 2 && block[0] > 0 && block[1] > 0 && t.Shape[0] == ceil(rows, block[0]) && t.Shape[1] == ceil(cols, block[1]):
		g.br, g.bc, g.cols = block[0], block[1], t.Shape[1]
		return g, nil
	}
	return grid{}, fmt.Errorf("tensor %s has shape %v, which does not go with %d × %d weights in blocks of %d × %d",
		container.Name(t.Name), t.Shape, rows, cols, block[0], block[1])
}

func ceil(a, b int) int { return (a + b - 1) / b }

// scales writes the scales of the job's rows into the heads of their blocks.
func (g *grid) scales(j *job, m matrix) error {
	values, size := m.values, m.size
	w := g.number.bytes
	return j.visit(rowsOf(g.t, int64(g.cols*w), j.r0/g.br, ceil(j.r1, g.br)), func(s, count int, b []byte, pitch int) error {
		for i := range count {
			src := b[i*pitch:]
			for r := max(j.r0, (s+i)*g.br); r < min(j.r1, (s+i+1)*g.br); r++ {
				row := j.row(r)
				for k := 0; k < m.cols; k += values {
					setF32(row[k/values*size:], g.number.f32(src[k/g.bc*w:]))
				}
			}
		}
		return nil
	})
}

// addMatrix appends a matrix that is filled by passes, each of which writes a part of its blocks.
func (f *File) addMatrix(m matrix, extra int, passes ...func(j *job) error) Matrix {
	offset := f.add(m.rows, m.typ.RowBytes(m.cols), extra, func(j *job) error {
		for _, pass := range passes {
			if err := pass(j); err != nil {
				return err
			}
		}
		return nil
	})
	return Matrix{Type: m.typ, Offset: offset, Order: -1}
}

// constZero is the pass for a zero point that is the same everywhere.
func constZero(m matrix, zero uint8) func(j *job) error {
	return func(j *job) error {
		for r := j.r0; r < j.r1; r++ {
			row := j.row(r)
			for at := 4; at < len(row); at += m.size {
				row[at] = zero
			}
		}
		return nil
	}
}

// oddColumns says that a matrix cannot be stored in whole blocks.
func oddColumns(t *Tensor, cols, share int) error {
	return fmt.Errorf("tensor %s: %d columns with a scale for every %d are no whole blocks of 32", container.Name(t.Name), cols, min(share, cols))
}
