// Package repack presents the quantized tensors of a safetensors checkpoint as rows of blocks. The
// checkpoint keeps codes, scales and zero points of a matrix in separate tensors, and some exchange
// outputs and inputs; a File reads any bytes of the rows from there, so that who reads rows need not
// know. Nothing is kept: every read goes to the drive and is put together in the reader's scratch.
package repack

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

// Tensor is a tensor of the checkpoint.
type Tensor = container.Tensor

// File is a file that exists only while it is read. It implements vfs.File, but must be read with
// scratch memory of the caller's.
type File struct {
	name    string
	files   []vfs.File // by Tensor.File
	regions []region   // by offset
	size    int64
	fixed   int // bytes of scratch apart from what is read at once

	exchanged bool // there are matrices whose tensors hold inputs × outputs
}

// region is a matrix, or the order of one's inputs as f32 numbers.
type region struct {
	offset   int64
	rows     int
	rowBytes int
	fill     func(j *job) error
}

func (r *region) end() int64 { return r.offset + int64(r.rows)*int64(r.rowBytes) }

// regionAlign is where regions begin, so that who reads a region in whole pages reads no other.
const regionAlign = 64 << 10

// New makes an empty file. Files are those that the tensors name; they stay the caller's.
func New(name string, files []vfs.File) *File { return &File{name: name, files: files} }

// add appends a region and returns its offset.
func (f *File) add(rows, rowBytes, extra int, fill func(j *job) error) int64 {
	r := region{offset: (f.size + regionAlign - 1) &^ (regionAlign - 1), rows: rows, rowBytes: rowBytes, fill: fill}
	f.regions = append(f.regions, r)
	f.size = r.end()
	f.fixed = max(f.fixed, 2*rowBytes+extra)
	return r.offset
}

// ScratchBytes is the least scratch that every read of the file needs; 0 if it is empty. More makes
// larger requests: as much again as the longest read does well.
func (f *File) ScratchBytes() int {
	if len(f.regions) == 0 {
		return 0
	}
	return f.fixed + leastRead + 4*f.align()
}

// Exchanged reports whether tensors hold inputs × outputs: a few rows are then read with many others.
func (f *File) Exchanged() bool { return f.exchanged }

const leastRead = 64 << 10

func (f *File) align() int {
	n := 1
	for _, x := range f.files {
		n = max(n, x.Align())
	}
	return n
}

// ReadWith is ReadAt with memory that nothing else uses meanwhile, of at least ScratchBytes bytes.
func (f *File) ReadWith(p []byte, off int64, scratch []byte) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read %s at %d: negative offset", f.name, off)
	}
	n := int(min(int64(len(p)), max(f.size-off, 0)))
	i := sort.Search(len(f.regions), func(i int) bool { return f.regions[i].end() > off })
	at := 0
	for ; i < len(f.regions) && f.regions[i].offset < off+int64(n); i++ {
		r := &f.regions[i]
		from, to := max(r.offset, off), min(r.end(), off+int64(n))
		clear(p[at : from-off]) // between regions
		if err := f.readRegion(r, p[from-off:to-off], from-r.offset, scratch); err != nil {
			return at, err
		}
		at = int(to - off)
	}
	if n < len(p) {
		return n, io.EOF
	}
	clear(p[at:n])
	return n, nil
}

// readRegion fills p with the region's bytes from off on.
func (f *File) readRegion(r *region, p []byte, off int64, scratch []byte) error {
	size := int64(r.rowBytes)
	j := &job{f: f, rowBytes: r.rowBytes, dst: p, off: off, r0: int(off / size), r1: int((off + int64(len(p)) + size - 1) / size)}
	j.first, scratch = scratch[:size], scratch[size:]
	j.last, j.scratch = scratch[:size], scratch[size:]
	if err := r.fill(j); err != nil {
		return err
	}
	j.edge(j.r0, j.first)
	if j.r1-1 > j.r0 {
		j.edge(j.r1-1, j.last)
	}
	return nil
}

var errScratch = errors.New("a repacked tensor is read without scratch memory")

// ReadAt fails: see ReadWith.
func (f *File) ReadAt([]byte, int64) (int, error) { return 0, errScratch }

// Size is the bytes of all rows and the gaps between them.
func (f *File) Size() int64 { return f.size }

// Align is 1: any bytes can be read.
func (f *File) Align() int { return 1 }

// Direct reports whether the checkpoint's files are read past the page cache.
func (f *File) Direct() bool {
	return !slices.ContainsFunc(f.files, func(x vfs.File) bool { return !x.Direct() })
}

// Why is that of the first file that is not direct.
func (f *File) Why() string {
	for _, x := range f.files {
		if w := x.Why(); w != "" {
			return w
		}
	}
	return ""
}

// Name is the checkpoint's.
func (f *File) Name() string { return f.name }

// ID is zero: the file is no file of the system.
func (f *File) ID() vfs.ID { return vfs.ID{} }

// Close does nothing.
func (f *File) Close() error { return nil }

// job is one read of some rows of a region.
type job struct {
	f           *File
	rowBytes    int
	dst         []byte
	off         int64  // of dst in the region
	r0, r1      int    // rows that dst touches
	first, last []byte // r0 and r1-1, where dst has only a part of them
	scratch     []byte
}

// row returns the memory of row r.
func (j *job) row(r int) []byte {
	from := int64(r)*int64(j.rowBytes) - j.off
	switch to := from + int64(j.rowBytes); {
	case from >= 0 && to <= int64(len(j.dst)):
		return j.dst[from:to:to]
	case r == j.r0:
		return j.first
	default:
		return j.last
	}
}

// edge copies from a row's own memory what dst has of it.
func (j *job) edge(r int, row []byte) {
	from := int64(r)*int64(j.rowBytes) - j.off
	to := from + int64(j.rowBytes)
	if from >= 0 && to <= int64(len(j.dst)) {
		return
	}
	copy(j.dst[max(from, 0):], row[max(-from, 0):min(to, int64(len(j.dst)))-from])
}

// take cuts n bytes off the scratch, for values of up to 8 bytes.
func (j *job) take(n int) []byte {
	n = (n + 7) &^ 7
	j.scratch = mem.AlignUp(j.scratch, 8)
	b := j.scratch[:n:n]
	j.scratch = j.scratch[n:]
	return b
}

// matrix is what a region of a matrix holds: rows × cols values of a row format or a block format, with
// the geometry of its blocks.
type matrix struct {
	typ        quant.Type
	rows, cols int

	values, size int // of a block
	head, bits   int // where its codes begin, and bits of a code; 0 for block formats
}

func matrixOf(t quant.Type, rows, cols int) matrix {
	head, bits := t.Codes()
	return matrix{t, rows, cols, t.BlockValues(), t.BlockBytes(), head, bits}
}

// place is the offset in a row of the codes of columns k to k + 31.
func (m *matrix) place(k int) int { return k/m.values*m.size + m.head + k%m.values*m.bits/8 }

// spot is where the code of column p lies: twice its offset in a row, and one more for the high half of
// a byte.
func (m *matrix) spot(p int) int32 {
	at := m.place(p &^ 31)
	if m.bits == 8 {
		return int32(at+p%32) * 2
	}
	return int32(at+p%16)*2 + int32(p%32/16)
}

// set writes the code at a spot.
func (m *matrix) set(row []byte, spot int32, c uint8) {
	b := &row[spot/2]
	switch {
	case m.bits == 8:
		*b = c
	case spot%2 == 0:
		*b = *b&0xf0 | c
	default:
		*b = *b&0x0f | c<<4
	}
}

// pick returns the first format whose blocks divide the columns, and the columns that share a scale if
// those are fewer.
func pick(cols, share int, types ...quant.Type) (quant.Type, bool) {
	for _, t := range types {
		if n := t.BlockValues(); cols%n == 0 && (share >= cols || share%n == 0) {
			return t, true
		}
	}
	return 0, false
}
