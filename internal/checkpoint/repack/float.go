package repack

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/quant"
)

// FP8 is weights of eight bits, rows × cols, with scales: one, one for each row, or one for each block.
type FP8 struct {
	Codes *Tensor
	Scale *Tensor // nil: 1
	Block [2]int  // rows and columns that share a scale, where it has two dimensions
}

// AddFP8 adds a matrix whose values are f32(code)·scale.
func (f *File) AddFP8(x FP8, rows, cols int) (Matrix, error) {
	if err := wants(x.Codes, "F8_E4M3 F8_E5M2", rows, cols); err != nil {
		return Matrix{}, err
	}
	g := grid{bc: cols}
	if x.Scale != nil {
		var err error
		if g, err = gridOf(x.Scale, rows, cols, x.Block); err != nil {
			return Matrix{}, err
		}
	}
	types := []quant.Type{quant.E4M3x128, quant.E4M3x32}
	if x.Codes.DType == "F8_E5M2" {
		types = []quant.Type{quant.E5M2x128, quant.E5M2x32}
	}
	t, ok := pick(cols, g.bc, types...)
	if !ok {
		return Matrix{}, oddColumns(x.Codes, cols, g.bc)
	}
	m := matrixOf(t, rows, cols)
	scales := func(j *job) error { return g.scales(j, m) }
	if x.Scale == nil {
		scales = func(j *job) error { j.sameScale(m, 1); return nil }
	}
	return f.addMatrix(m, 0, copyCodes(x.Codes, m, 0), scales), nil
}

func (j *job) sameScale(m matrix, scale float32) {
	for r := j.r0; r < j.r1; r++ {
		row := j.row(r)
		for at := 0; at < len(row); at += m.size {
			setF32(row[at:], scale)
		}
	}
}

// copyCodes is the pass that copies codes which lie row by row, in the order of the blocks; flip is
// applied to every byte.
func copyCodes(t *Tensor, m matrix, flip uint8) func(j *job) error {
	return eachBlock(t, m, func(dst, src []byte) {
		copy(dst, src)
		if flip != 0 {
			for k := range dst {
				dst[k] ^= flip
			}
		}
	})
}

// copyHalves is the pass for codes of four bits that lie row by row, the low half of a byte first.
func copyHalves(t *Tensor, m matrix) func(j *job) error {
	return eachBlock(t, m, func(dst, src []byte) {
		for ; len(dst) > 0; dst, src = dst[16:], src[16:] {
			splitHalves(dst, src)
		}
	})
}

// eachBlock is a pass over codes that lie row by row: f writes those of a block.
func eachBlock(t *Tensor, m matrix, f func(dst, src []byte)) func(j *job) error {
	head, size := m.head, m.size
	n := size - head
	stride := int64(m.cols * m.bits / 8)
	return func(j *job) error {
		return j.visit(rowsOf(t, stride, j.r0, j.r1), func(s, count int, b []byte, pitch int) error {
			for i := range count {
				row, src := j.row(s+i), b[i*pitch:][:stride]
				for at := head; at < len(row); at, src = at+size, src[n:] {
					f(row[at:at+n], src[:n])
				}
			}
			return nil
		})
	}
}

// NF4 is weights of bitsandbytes in four bits: one scale for every Block values, rows not minded.
type NF4 struct {
	Codes  *Tensor // two values a byte, whatever its type is called
	AbsMax *Tensor // F32, or U8 where it is quantized as well:
	Map    *Tensor // its 256 levels,
	Nested *Tensor // one scale for every NestedBlock of its values,
	Offset float32 // and what is added
	Block  int
	// NestedBlock is 256 as a rule.
	NestedBlock int
	FP4         bool // the levels are those of FP4
}

// AddNF4 adds a matrix whose values are level[code]·absmax.
func (f *File) AddNF4(x NF4, rows, cols int) (Matrix, error) {
	if n := x.Codes.Bytes; cols%2 != 0 || n != int64(rows)*int64(cols/2) {
		return Matrix{}, fmt.Errorf("tensor %s has %d bytes, expected %d × %d weights of four bits", container.Name(x.Codes.Name), n, rows, cols)
	}
	if x.Block < 32 || x.Block > 1<<20 || x.Block%32 != 0 {
		return Matrix{}, fmt.Errorf("tensor %s: a block of %d values", container.Name(x.Codes.Name), x.Block)
	}
	if err := x.check(int64(rows) * int64(cols)); err != nil {
		return Matrix{}, err
	}
	types := []quant.Type{quant.NF4x64, quant.NF4x32}
	if x.FP4 {
		types = []quant.Type{quant.FP4x64, quant.FP4x32}
	}
	share := x.Block
	if share%64 != 0 {
		types = types[1:]
	}
	t, ok := pick(cols, share, types...)
	if !ok {
		return Matrix{}, oddColumns(x.Codes, cols, share)
	}
	m := matrixOf(t, rows, cols)
	return f.addMatrix(m, 0, copyCodes(x.Codes, m, 0), func(j *job) error { return x.scales(j, m) }), nil
}

// leastNested keeps what scales loads for a read small beside the scratch; files have 256.
const leastNested = 16

// check checks the scales of so many values.
func (x *NF4) check(values int64) error {
	blocks := int((values + int64(x.Block) - 1) / int64(x.Block))
	if x.Nested == nil {
		return wants(x.AbsMax, "F32", blocks)
	}
	if x.NestedBlock < leastNested || x.NestedBlock > 1<<20 || x.Map == nil {
		return fmt.Errorf("tensor %s: a nested block of %d values, or no map", container.Name(x.AbsMax.Name), x.NestedBlock)
	}
	if err := wants(x.AbsMax, "U8", blocks); err != nil {
		return err
	}
	if err := wants(x.Map, "F32", 256); err != nil {
		return err
	}
	return wants(x.Nested, "F32", ceil(blocks, x.NestedBlock))
}

// scales writes the absmax of every block.
func (x *NF4) scales(j *job, m matrix) error {
	first := int64(j.r0) * int64(m.cols) / int64(x.Block)
	last := (int64(j.r1)*int64(m.cols) - 1) / int64(x.Block)
	width := int64(4)
	scale := func(_ int64, b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
	if x.Nested != nil {
		from, to := first/int64(x.NestedBlock), last/int64(x.NestedBlock)
		levels, err := j.load(x.Map, 0, 1024)
		if err != nil {
			return err
		}
		nested, err := j.load(x.Nested, from*4, (to-from+1)*4)
		if err != nil {
			return err
		}
		width = 1
		scale = func(e int64, b []byte) float32 {
			n := math.Float32frombits(binary.LittleEndian.Uint32(nested[(e/int64(x.NestedBlock)-from)*4:]))
			return float32(math.Float32frombits(binary.LittleEndian.Uint32(levels[int(b[0])*4:]))*n) + x.Offset
		}
	}
	return j.visit(rowsOf(x.AbsMax, width, int(first), int(last+1)), func(s, count int, b []byte, pitch int) error {
		for i := range count {
			e := int64(s + i)
			x.setBlock(j, m, e, scale(e, b[i*pitch:]))
		}
		return nil
	})
}

// setBlock writes the scale of the values from e·Block on.
func (x *NF4) setBlock(j *job, m matrix, e int64, scale float32) {
	values, size := m.values, m.size
	for v := e * int64(x.Block); v < (e+1)*int64(x.Block); v += int64(values) {
		r, k := int(v/int64(m.cols)), int(v%int64(m.cols))
		if r >= j.r0 && r < j.r1 {
			setF32(j.row(r)[k/values*size:], scale)
		}
	}
}
