// Package container holds what the checkpoint formats have in common: a bounded reader, metadata
// values, tensor descriptions, and the error of a damaged file.
package container

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/spillway/spillway/internal/quant"
)

// Error says that a file is damaged or not supported: not that reading it failed.
type Error struct {
	Path  string // the file
	Where string // what in it, such as `tensor "output.weight"`; may be empty
	What  string // what is wrong
	Hint  string // what would work; may be empty
}

// Error returns one line.
func (e *Error) Error() string {
	var b strings.Builder
	for _, part := range []string{e.Path, e.Where} {
		if part != "" {
			b.WriteString(part)
			b.WriteString(": ")
		}
	}
	b.WriteString(e.What)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// NoType is the Type of a tensor whose dtype is not one of quant's formats.
const NoType quant.Type = math.MaxUint32

// Tensor describes a tensor that lies wholly within its file and overlaps no other.
type Tensor struct {
	Name   string
	Type   quant.Type // NoType if quant has no such format
	DType  string     // the format's name as the file's own format spells it
	Shape  []int      // outermost first; empty for a scalar
	File   int        // index into the catalog's files
	Offset int64      // of its first byte, from the start of the file
	Bytes  int64
	// Slice is 0, or the bytes of parts that lie apart, Stride from one's start to the next one's: a stack
	// whose matrices are packed with others.
	Slice, Stride int64
}

// At returns where byte off of the tensor lies in its file, and how many bytes of it lie there in a row.
func (t *Tensor) At(off int64) (pos, n int64) {
	if t.Slice == 0 {
		return t.Offset + off, t.Bytes - off
	}
	return t.Offset + off/t.Slice*t.Stride + off%t.Slice, t.Slice - off%t.Slice
}

// Elements returns the number of values.
func (t *Tensor) Elements() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= int64(d)
	}
	return n
}

// Header is what one file says about itself. No weight was read for it.
type Header struct {
	Version   int   // of the format; 0 where it has none
	Alignment int64 // of tensor data; 1 where the format asks for none
	MetaEnd   int64 // offset of the first byte after the metadata; 0 where it is not one part
	DataStart int64 // offset of the first byte after header and padding
	Meta      *Table
	Tensors   []Tensor // in the order of the header
}

// Product multiplies dimensions and reports whether it stays below 2^63.
func Product(dims []int) (int64, bool) {
	n := uint64(1)
	for _, d := range dims {
		if d < 0 {
			return 0, false
		}
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > math.MaxInt64 {
			return 0, false
		}
		n = lo
	}
	return int64(n), true
}

// Name quotes a name from a file for an error: one line, and not too long.
func Name(s string) string {
	const most = 80
	if len(s) > most {
		return fmt.Sprintf("%.*q… (%d bytes)", most, s, len(s))
	}
	return fmt.Sprintf("%q", s)
}

// ByName returns the indices of n items in the order of their names, then of their positions.
func ByName(n int, name func(int) string) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		if c := strings.Compare(name(int(a)), name(int(b))); c != 0 {
			return c
		}
		return int(a - b)
	})
	return order
}

// Duplicate returns the second of two items with the same name, or -1.
func Duplicate(order []int32, name func(int) string) int {
	for i := 1; i < len(order); i++ {
		if name(int(order[i])) == name(int(order[i-1])) {
			return int(order[i])
		}
	}
	return -1
}

// Search returns the first item with that name in an order made by ByName, or -1.
func Search(order []int32, name func(int) string, want string) int {
	i, ok := slices.BinarySearchFunc(order, want, func(at int32, want string) int {
		return strings.Compare(name(int(at)), want)
	})
	if !ok {
		return -1
	}
	return int(order[i])
}

// ByOffset returns the indices of the tensors that have bytes, in the order of their data.
func ByOffset(tensors []Tensor) []int32 {
	order := make([]int32, 0, len(tensors))
	for i := range tensors {
		if tensors[i].Bytes > 0 {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &tensors[a], &tensors[b]
		switch {
		case x.Offset < y.Offset:
			return -1
		case x.Offset > y.Offset:
			return 1
		}
		return int(a - b)
	})
	return order
}
