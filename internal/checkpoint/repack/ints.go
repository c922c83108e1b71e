package repack

import (
	"encoding/binary"
	"fmt"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/quant"
)

func int32s(b []byte) []int32 { return mem.As[int32](b) }

// Ints is integer weights with a scale for each group of columns: (code − zero)·scale.
type Ints struct {
	Codes  *Tensor
	Scales *Tensor
	Zeros  *Tensor // nil: the middle of the codes
	Order  *Tensor // nil, or the group of each column
	Bits   int
	Group  int // columns that share a scale; 0 or less: all
	// Ordered says that Order is to be followed; else it may only repeat the order of the columns.
	Ordered bool
	// ZeroPlus is added to stored zero points: 1 in GPTQ's first format.
	ZeroPlus int
	// Over127 divides values by 127: bitsandbytes' int8.
	Over127 bool
}

// add finishes a matrix: format, order, and the passes that every packing has.
func (f *File) addInts(x Ints, rows, cols int, passes func(m matrix, o *order) []func(j *job) error) (Matrix, error) {
	group := x.group(cols)
	t, ok := pick(cols, group, x.types()...)
	if !ok {
		return Matrix{}, oddColumns(x.Codes, cols, group)
	}
	m, extra := matrixOf(t, rows, cols), 4*cols+64
	var o *order
	if x.Order != nil {
		if err := wants(x.Order, "I32", cols); err != nil {
			return Matrix{}, err
		}
		if o = (&order{x.Order, cols, group}); x.Ordered {
			extra = o.bytes()
		}
	} else if x.Ordered && group < cols {
		return Matrix{}, fmt.Errorf("tensor %s: the configuration says that columns were reordered, but there is no g_idx", container.Name(x.Codes.Name))
	}
	if cols > 1<<24 && x.Ordered { // numbers of columns are kept as f32
		return Matrix{}, fmt.Errorf("tensor %s: %d columns cannot be reordered", container.Name(x.Codes.Name), cols)
	}
	all := passes(m, x.follow(o, group, cols))
	if o != nil && !x.Ordered {
		all = append(all, o.check)
	}
	at := f.addMatrix(m, extra, all...)
	if x.follow(o, group, cols) != nil {
		at.Order = o.add(f)
	}
	return at, nil
}

// follow is the order if it is to be followed: with one group there is nothing to reorder.
func (x *Ints) follow(o *order, group, cols int) *order {
	if x.Ordered && group < cols {
		return o
	}
	return nil
}

func (x *Ints) group(cols int) int {
	if x.Group < 1 || x.Group > cols {
		return cols
	}
	return x.Group
}

func (x *Ints) types() []quant.Type {
	switch {
	case x.Over127:
		return []quant.Type{quant.LLMInt8x128, quant.LLMInt8x32}
	case x.Bits == 8:
		return []quant.Type{quant.Int8x128, quant.Int8x32}
	}
	return []quant.Type{quant.Int4x128, quant.Int4x64, quant.Int4x32}
}

// bits checks the width of codes.
func (x *Ints) bits(can ...int) error {
	for _, b := range can {
		if x.Bits == b {
			return nil
		}
	}
	return fmt.Errorf("tensor %s: weights of %d bits are not supported: %v are", container.Name(x.Codes.Name), x.Bits, can)
}

// spots returns where the code of each column goes.
func (o *order) spots(j *job, m *matrix) ([]int32, error) {
	if o == nil {
		all := int32s(j.take(4 * m.cols))
		for k := range all {
			all[k] = m.spot(k)
		}
		return all, nil
	}
	all, err := o.sorted(j)
	for k, p := range all {
		all[k] = m.spot(int(p))
	}
	return all, err
}

// AddInt8 adds a matrix of signed bytes [rows, cols] with scales [1], [rows], [rows, 1] or [rows, groups]
// and zero points of the same shape.
func (f *File) AddInt8(x Ints, rows, cols int) (Matrix, error) {
	if err := wants(x.Codes, "I8", rows, cols); err != nil {
		return Matrix{}, err
	}
	x.Bits = 8
	g, err := gridOf(x.Scales, rows, cols, [2]int{1, x.group(cols)})
	if err != nil {
		return Matrix{}, err
	}
	if g.bc == cols {
		x.Group = cols
	}
	if x.Zeros != nil {
		if err := wants(x.Zeros, "I8", x.Scales.Shape...); err != nil {
			return Matrix{}, err
		}
	}
	return f.addInts(x, rows, cols, func(m matrix, o *order) []func(j *job) error {
		zeros := constZero(m, 128)
		if x.Zeros != nil {
			zeros = byteZeros(x.Zeros, g, m, 128)
		}
		return []func(j *job) error{x.rowCodes(m, o, 0x80), func(j *job) error { return g.scales(j, m) }, zeros}
	})
}

// byteZeros is the pass for zero points that are signed bytes in the shape of the scales; middle is the
// code that means 0.
func byteZeros(t *Tensor, g grid, m matrix, middle uint8) func(j *job) error {
	values, size := m.values, m.size
	return func(j *job) error {
		return j.visit(rowsOf(t, int64(g.cols), j.r0/g.br, ceil(j.r1, g.br)), func(s, count int, b []byte, pitch int) error {
			for i := range count {
				for r := max(j.r0, (s+i)*g.br); r < min(j.r1, (s+i+1)*g.br); r++ {
					row := j.row(r)
					for k := 0; k < m.cols; k += values {
						row[k/values*size+4] = b[i*pitch+k/g.bc] + middle
					}
				}
			}
			return nil
		})
	}
}

// AddPacked adds a matrix of compressed-tensors' pack-quantized: codes [rows, cols·bits/32] in 32-bit
// words along a row, zero points [rows·bits/32, groups] along a column, both stored with half of their
// range added; or zero points as signed bytes.
func (f *File) AddPacked(x Ints, rows, cols int) (Matrix, error) {
	if err := x.bits(2, 4, 8); err != nil {
		return Matrix{}, err
	}
	if err := wants(x.Codes, "I32", rows, ceil(cols*x.Bits, 32)); err != nil {
		return Matrix{}, err
	}
	g, err := gridOf(x.Scales, rows, cols, [2]int{1, x.group(cols)})
	if err != nil {
		return Matrix{}, err
	}
	if g.bc == cols {
		x.Group = cols
	}
	bytes := x.Zeros != nil && x.Zeros.DType == "I8" // as older files have them
	switch {
	case bytes:
		err = wants(x.Zeros, "I8", x.Scales.Shape...)
	case x.Zeros != nil && g.br > 1:
		err = fmt.Errorf("tensor %s: zero points for a scale of the whole tensor are not supported", container.Name(x.Zeros.Name))
	case x.Zeros != nil:
		err = wants(x.Zeros, "I32", ceil(rows*x.Bits, 32), g.cols)
	}
	if err != nil {
		return Matrix{}, err
	}
	return f.addInts(x, rows, cols, func(m matrix, o *order) []func(j *job) error {
		zeros := constZero(m, 1<<(x.Bits-1))
		switch {
		case bytes:
			zeros = byteZeros(x.Zeros, g, m, 1<<(x.Bits-1))
		case x.Zeros != nil:
			zeros = x.columnZeros(g, m)
		}
		return []func(j *job) error{x.rowCodes(m, o, 0), func(j *job) error { return g.scales(j, m) }, zeros}
	})
}

// rowCodes is the pass for codes that lie row by row, without gaps; flip is applied to every code.
func (x *Ints) rowCodes(m matrix, o *order, flip uint8) func(j *job) error {
	switch {
	case x.Bits == 4 && o == nil:
		return copyHalves(x.Codes, m)
	case x.Bits == 8 && o == nil:
		return copyCodes(x.Codes, m, flip)
	}
	return func(j *job) error {
		spots, err := o.spots(j, &m)
		if err != nil {
			return err
		}
		stride := x.Codes.Bytes / int64(m.rows)
		mask := uint8(1<<x.Bits - 1)
		return j.visit(rowsOf(x.Codes, stride, j.r0, j.r1), func(s, count int, b []byte, pitch int) error {
			for i := range count {
				row, src := j.row(s+i), b[i*pitch:]
				for k, spot := range spots {
					bit := k * x.Bits
					m.set(row, spot, src[bit/8]>>(bit%8)&mask^flip)
				}
			}
			return nil
		})
	}
}

// columnZeros is the pass for zero points that are packed along the rows.
func (x *Ints) columnZeros(g grid, m matrix) func(j *job) error {
	values, size, per := m.values, m.size, 32/x.Bits
	return func(j *job) error {
		return j.visit(rowsOf(x.Zeros, int64(4*g.cols), j.r0/per, ceil(j.r1, per)), func(s, count int, b []byte, pitch int) error {
			for i := range count {
				for r := max(j.r0, (s+i)*per); r < min(j.r1, (s+i+1)*per); r++ {
					row, shift := j.row(r), r%per*x.Bits
					for k := 0; k < m.cols; k += values {
						w := binary.LittleEndian.Uint32(b[i*pitch+k/g.bc*4:])
						row[k/values*size+4] = uint8(w>>shift) & (1<<x.Bits - 1)
					}
				}
			}
			return nil
		})
	}
}
