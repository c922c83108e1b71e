package repack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

// maxGap is what is read along between two strips, as that takes less time than a request.
const maxGap = 32 << 10

// strip is a part of a tensor that is read as a matrix: of rows s0 to s1, the bytes b0 to b0 + n.
type strip struct {
	t      *Tensor
	base   int64 // offset of row 0 in the tensor
	stride int64 // bytes of a row
	s0, s1 int
	b0, n  int64
	unit   int // rows that must be visited together; 0 is 1
}

// rowsOf is whole rows of a tensor.
func rowsOf(t *Tensor, stride int64, s0, s1 int) strip {
	return strip{t: t, stride: stride, s0: s0, s1: s1, n: stride}
}

// visit reads a strip piece by piece: count rows from s on, row i of them at b[i·pitch:], each n bytes.
func (j *job) visit(x strip, do func(s, count int, b []byte, pitch int) error) error {
	unit := max(x.unit, 1)
	read := j.readStrips
	if x.stride-x.n <= maxGap {
		read = j.readWhole
	}
	for s := x.s0; s < x.s1; {
		b, count, pitch, err := read(x, s, unit)
		if err != nil {
			return fmt.Errorf("tensor %s: %w", container.Name(x.t.Name), err)
		}
		if err := do(s, count, b, pitch); err != nil {
			return err
		}
		s += count
	}
	return nil
}

var errSmall = errors.New("internal error: too little scratch for repacking")

// fitting is how many whole units of rows fit.
func fitting(rows int64, left, unit int) (int, error) {
	n := min(rows, int64(left))
	if n < int64(left) {
		n -= n % int64(unit)
	}
	if n < 1 {
		return 0, errSmall
	}
	return int(n), nil
}

// readWhole reads as many rows as fit with what lies between their strips.
func (j *job) readWhole(x strip, s, unit int) (b []byte, count, pitch int, err error) {
	align := int64(j.f.files[x.t.File].Align())
	buf := mem.AlignUp(j.scratch, int(align))
	room := int64(len(buf)) - 2*align
	if count, err = fitting((room-x.n)/x.stride+1, x.s1-s, unit); err != nil || room < x.n {
		return nil, 0, 0, errSmall
	}
	b, err = j.readAt(x.t, x.base+int64(s)*x.stride+x.b0, int64(count-1)*x.stride+x.n, buf)
	return b, count, int(x.stride), err
}

// readStrips reads each strip by a request of its own.
func (j *job) readStrips(x strip, s, unit int) (b []byte, count, pitch int, err error) {
	align := j.f.files[x.t.File].Align()
	buf := mem.AlignUp(j.scratch, align)
	one := int64(vfs.SpanSize(int(x.n), align))
	if count, err = fitting((int64(len(buf))-one)/x.n, x.s1-s, unit); err != nil {
		return nil, 0, 0, err
	}
	together := buf[one:]
	for i := range count {
		part, err := j.readAt(x.t, x.base+int64(s+i)*x.stride+x.b0, x.n, buf[:one])
		if err != nil {
			return nil, 0, 0, err
		}
		copy(together[int64(i)*x.n:], part)
	}
	return together, count, int(x.n), nil
}

// readAt reads n bytes of a tensor through buf, which is aligned.
func (j *job) readAt(t *Tensor, off, n int64, buf []byte) ([]byte, error) {
	if off < 0 || off > t.Bytes-n { // the sizes were checked when the matrix was added
		return nil, fmt.Errorf("internal error: bytes %d + %d of %d", off, n, t.Bytes)
	}
	file := j.f.files[t.File]
	at, there := t.At(off)
	if n > there {
		return nil, fmt.Errorf("bytes %d + %d lie apart", off, n)
	}
	start, size := vfs.Span(at, int(n), file.Align())
	got, err := file.ReadAt(buf[:size], start)
	lead := int(at - start)
	switch {
	case got >= lead+int(n):
		return buf[lead : lead+int(n)], nil
	case err == nil || errors.Is(err, io.EOF):
		err = fmt.Errorf("the file ends at %d: %w", start+int64(got), io.ErrUnexpectedEOF)
	}
	return nil, fmt.Errorf("%s: %d bytes at %d: %w", file.Name(), n, at, err)
}

// load reads n bytes of a tensor into memory that stays for the job.
func (j *job) load(t *Tensor, off, n int64) ([]byte, error) {
	if n+64 > int64(len(j.scratch)/2) {
		return nil, errSmall
	}
	kept := j.take(int(n))
	err := j.visit(strip{t: t, base: off, stride: 1, s1: int(n), n: 1}, func(s, count int, b []byte, _ int) error {
		copy(kept[s:], b[:count])
		return nil
	})
	return kept[:n], err
}

// number is a type of the values that scales have.
type number struct {
	bytes int
	f32   func(b []byte) float32
}

// numberOf returns how values of a tensor are read; false if they are no numbers that scales can have.
func numberOf(t *Tensor) (number, bool) {
	switch {
	case t.Type == quant.F32:
		return number{4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }}, true
	case t.Type == quant.F16:
		return number{2, func(b []byte) float32 { return quant.F16ToF32(binary.LittleEndian.Uint16(b)) }}, true
	case t.Type == quant.BF16:
		return number{2, func(b []byte) float32 { return quant.BF16ToF32(binary.LittleEndian.Uint16(b)) }}, true
	case t.DType == "F8_E8M0", t.DType == "U8": // a power of two, as OCP MX has it
		return number{1, func(b []byte) float32 { return powerOfTwo(b[0]) }}, true
	}
	return number{}, false
}

// powerOfTwo is an E8M0 number: 2^(e−127), NaN for 255.
func powerOfTwo(e uint8) float32 {
	switch e {
	case 255:
		return math.Float32frombits(0x7fc00000)
	case 0:
		return 0x1p-127
	}
	return math.Float32frombits(uint32(e) << 23)
}

func setF32(b []byte, v float32) { binary.LittleEndian.PutUint32(b, math.Float32bits(v)) }
