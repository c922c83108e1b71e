package repack

import (
	"encoding/binary"
	"fmt"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/quant"
)

// NVFP4 is E2M1 codes, two a byte, an E4M3 scale for every 16 of them, and a scale of the tensor by
// which those are divided.
type NVFP4 struct {
	Codes, Scale *Tensor
	Tensor       *Tensor // one F32
}

// AddNVFP4 adds a matrix whose values are e2m1(code)·(f32(scale)/tensor).
func (f *File) AddNVFP4(x NVFP4, rows, cols int) (Matrix, error) {
	t, ok := pick(cols, cols, quant.TensorNVFP4x128, quant.TensorNVFP4x32)
	if !ok {
		return Matrix{}, oddColumns(x.Codes, cols, 16)
	}
	if err := wants(x.Codes, "U8", rows, cols/2); err != nil {
		return Matrix{}, err
	}
	if err := wants(x.Scale, "F8_E4M3", rows, cols/16); err != nil {
		return Matrix{}, err
	}
	if x.Tensor.Type != quant.F32 || x.Tensor.Elements() != 1 {
		return Matrix{}, fmt.Errorf("tensor %s has shape %v of %s, expected one F32", container.Name(x.Tensor.Name), x.Tensor.Shape, x.Tensor.DType)
	}
	m := matrixOf(t, rows, cols)
	return f.addMatrix(m, 0, copyHalves(x.Codes, m), x.scales(m), x.tensor(m)), nil
}

func (x *NVFP4) scales(m matrix) func(j *job) error {
	runs, size := m.values/16, m.size
	return func(j *job) error {
		return j.visit(rowsOf(x.Scale, int64(m.cols/16), j.r0, j.r1), func(s, count int, b []byte, pitch int) error {
			for i := range count {
				row, src := j.row(s+i), b[i*pitch:]
				for at := 4; at < len(row); at, src = at+size, src[runs:] {
					copy(row[at:at+runs], src)
				}
			}
			return nil
		})
	}
}

func (x *NVFP4) tensor(m matrix) func(j *job) error {
	return func(j *job) error {
		b, err := j.load(x.Tensor, 0, 4)
		if err != nil {
			return err
		}
		for r := j.r0; r < j.r1; r++ {
			row := j.row(r)
			for at := 0; at < len(row); at += m.size {
				copy(row[at:], b)
			}
		}
		return nil
	}
}

// MXFP4 is E2M1 codes, two a byte, the low half first, with an E8M0 scale for every 32 of them.
type MXFP4 struct {
	Codes, Scale *Tensor // [rows, cols/2] or [rows, cols/32, 16], and [rows, cols/32]
	// Expert chooses a matrix of a stack, whose tensors have a first dimension more; −1 is none.
	Expert int
}

// AddMXFP4 adds a matrix in blocks of GGUF's MXFP4.
func (f *File) AddMXFP4(x MXFP4, rows, cols int) (Matrix, error) {
	if cols%32 != 0 {
		return Matrix{}, oddColumns(x.Codes, cols, 32)
	}
	codes, scales := []int{rows, cols / 2}, []int{rows, cols / 32}
	if n := len(x.Codes.Shape); n > 0 && x.Codes.Shape[n-1] == 16 && n > 2 {
		codes = []int{rows, cols / 32, 16}
	}
	expert := int64(max(x.Expert, 0))
	if x.Expert >= 0 {
		if len(x.Codes.Shape) == 0 || x.Expert >= x.Codes.Shape[0] {
			return Matrix{}, fmt.Errorf("tensor %s has shape %v, it has no expert %d", container.Name(x.Codes.Name), x.Codes.Shape, x.Expert)
		}
		codes, scales = append([]int{x.Codes.Shape[0]}, codes...), append([]int{x.Codes.Shape[0]}, scales...)
	}
	if err := wants(x.Codes, "U8", codes...); err != nil {
		return Matrix{}, err
	}
	if err := wants(x.Scale, "U8 F8_E8M0", scales...); err != nil {
		return Matrix{}, err
	}
	m := matrixOf(quant.MXFP4, rows, cols)
	per := int64(rows) * int64(cols/32)
	return f.addMatrix(m, 0, x.codes(m, expert*per*16), x.scales(m, expert*per)), nil
}

// mxBytes of a block are its scale and 16 bytes of codes.
const mxBytes = 17

func (x *MXFP4) codes(m matrix, base int64) func(j *job) error {
	return func(j *job) error {
		s := rowsOf(x.Codes, int64(m.cols/2), j.r0, j.r1)
		s.base = base
		return j.visit(s, func(s, count int, b []byte, pitch int) error {
			for i := range count {
				row, src := j.row(s+i), b[i*pitch:]
				for at := 1; at < len(row); at, src = at+mxBytes, src[16:] {
					splitHalves(row[at:at+16], src)
				}
			}
			return nil
		})
	}
}

// splitHalves reorders 32 codes of four bits: from two neighbours a byte to values i and i + 16.
func splitHalves(dst, src []byte) {
	lo, hi := binary.LittleEndian.Uint64(src), binary.LittleEndian.Uint64(src[8:])
	setHalves(dst, uint32(lo), uint32(lo>>32), uint32(hi), uint32(hi>>32))
}

// setHalves writes 32 codes that come in order, eight in each word.
func setHalves(dst []byte, a, b, c, d uint32) {
	binary.LittleEndian.PutUint64(dst, bytesOf(a)|bytesOf(c)<<4)
	binary.LittleEndian.PutUint64(dst[8:], bytesOf(b)|bytesOf(d)<<4)
}

// bytesOf puts eight codes of four bits into a byte each.
func bytesOf(w uint32) uint64 {
	x := uint64(w)
	x = (x | x<<16) & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	return (x | x<<4) & 0x0f0f0f0f0f0f0f0f
}

func (x *MXFP4) scales(m matrix, base int64) func(j *job) error {
	return func(j *job) error {
		s := rowsOf(x.Scale, int64(m.cols/32), j.r0, j.r1)
		s.base = base
		return j.visit(s, func(s, count int, b []byte, pitch int) error {
			for i := range count {
				row := j.row(s + i)
				for k, v := range b[i*pitch:][:m.cols/32] {
					row[k*mxBytes] = v
				}
			}
			return nil
		})
	}
}
