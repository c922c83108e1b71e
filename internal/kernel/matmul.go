package kernel

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/spillway/spillway/internal/quant"
)

// Weights is a run of rows of a weight matrix in memory.
type Weights struct {
	Type       quant.Type
	Rows, Cols int
	Data       []byte // Rows × Type.RowBytes(Cols) bytes, at any alignment
}

func (w *Weights) rowBytes() int { return w.Type.RowBytes(w.Cols) }

// row returns row i's bytes.
func (w *Weights) row(i int) []byte {
	n := w.rowBytes()
	return w.Data[i*n : (i+1)*n : (i+1)*n]
}

// Supported reports whether MatMul takes weights of type t without exact. With exact it takes every
// type that quant.CanDecode names.
func Supported(t quant.Type) bool {
	_, ok := intFormats[t]
	return ok || t.IsFloat()
}

// Integer reports whether products with weights of type t read the 16-bit form of activations.
func Integer(t quant.Type, exact bool) bool { return !exact && !t.IsFloat() }

const (
	panelTarget = 256 << 10 // bytes of unpacked weights that a worker keeps, in its second-level cache
	panelMax    = 16        // and the most rows of them
	tailBytes   = 16 << 10  // a worker's copies of the rows' ends
)

// panelRows returns how many unpacked rows of cols values a worker works on at a time: 4 to 16.
func panelRows(cols int) int {
	n := panelTarget / (4 * PaddedCols(cols))
	return min(max(n, 4), panelMax) &^ 3
}

func workerScratch(cols int) int {
	return panelRows(cols)*4*PaddedCols(cols) + tailBytes
}

// ScratchBytes returns the bytes that MatMul's scratch must have for a pool of that many threads and
// weights of up to maxCols columns.
func ScratchBytes(threads, maxCols int) int {
	most := 0
	for cols := groupValues; cols < maxCols+groupValues; cols += groupValues {
		most = max(most, workerScratch(cols)) // not monotonic in cols
	}
	return threads*most + actAlign
}

// MatMul writes out[r*outStride+i] = row i of w · row r of a, for all rows of both. out may start at
// a tile's first output. Quantized weights meet the 16-bit form of a; with exact they are decoded to
// f32 and meet the f32 form, as float weights always do. scratch has ScratchBytes bytes.
//
// Every output has the value that docs/numerics.md defines, whatever the tile, the batch, the number
// of threads or the instruction set.
func MatMul(p *Pool, scratch []byte, w Weights, a *Acts, out []float32, outStride int, exact bool) {
	if w.Rows == 0 || a.Rows == 0 {
		return
	}
	checkProduct(p, scratch, &w, a, out, outStride, exact)
	j := products.Get().(*product)
	j.w, j.a, j.out, j.outStride = w, a, out, outStride
	j.scratch, j.perWorker = scratch, workerScratch(w.Cols)
	j.plan(exact)
	p.Run((w.Rows+j.chunk-1)/j.chunk, j.run)
	j.w, j.a, j.out, j.scratch = Weights{}, nil, nil, nil
	products.Put(j)
}

func checkProduct(p *Pool, scratch []byte, w *Weights, a *Acts, out []float32, outStride int, exact bool) {
	switch {
	case w.Cols != a.Cols:
		panic(fmt.Sprintf("kernel: weights of %d columns meet activations of %d", w.Cols, a.Cols))
	case w.Cols%w.Type.BlockValues() != 0 || len(w.Data) < w.Rows*w.rowBytes():
		panic(fmt.Sprintf("kernel: %d bytes for %d × %d weights of %v", len(w.Data), w.Rows, w.Cols, w.Type))
	case len(out) < (a.Rows-1)*outStride+w.Rows:
		panic(fmt.Sprintf("kernel: %d outputs for %d × %d", len(out), a.Rows, w.Rows))
	case len(scratch) < p.Threads()*workerScratch(w.Cols)+actAlign:
		panic(fmt.Sprintf("kernel: %d bytes of scratch for %d columns", len(scratch), w.Cols))
	case exact && !quant.CanDecode(w.Type) || !exact && !Supported(w.Type):
		panic(fmt.Sprintf("kernel: no product with %v (exact: %t)", w.Type, exact))
	case Integer(w.Type, exact) && !a.Integer():
		panic(fmt.Sprintf("kernel: %v meets activations without their 16-bit form", w.Type))
	}
}

// product is one MatMul on its way through the pool.
type product struct {
	w         Weights
	a         *Acts
	out       []float32
	outStride int
	scratch   []byte
	perWorker int

	chunk int // rows of weights a task
	part  func(j *product, s workspace, lo, hi int)
	run   func(worker, task int)
}

var products = sync.Pool{New: func() any {
	j := new(product)
	j.run = j.task // once, so that MatMul allocates nothing
	return j
}}

// chunkBytes is about how many bytes of weights a task reads when it only streams them: long enough
// to hide the hand-out, short enough to share evenly and to stay far below 100 µs.
const chunkBytes = 96 << 10

// plan chooses the loop: directly over the packed weights for one row of activations, else over
// panels of unpacked weights that all rows share. Both give the same bits.
func (j *product) plan(exact bool) {
	m := &active.matmul
	j.chunk = panelRows(j.w.Cols)
	switch {
	case Integer(j.w.Type, exact):
		j.part = intPanels
		if m.intRows[j.w.Type] != nil && j.a.Rows == 1 {
			j.part, j.chunk = intDirect, j.directChunk()
		}
	default:
		j.part = floatPanels
		if m.floatRows[j.w.Type] != nil && j.a.Rows == 1 {
			j.part, j.chunk = floatDirect, j.directChunk()
		}
	}
}

func (j *product) directChunk() int {
	return max(chunkBytes/j.w.rowBytes(), 8) &^ 7
}

func (j *product) task(worker, task int) {
	lo := task * j.chunk
	base := alignUp(unsafe.Pointer(unsafe.SliceData(j.scratch)), actAlign)
	at := uintptr(base) - uintptr(unsafe.Pointer(unsafe.SliceData(j.scratch))) + uintptr(worker*j.perWorker)
	s := workspace{j.scratch[at:][:j.perWorker]}
	j.part(j, s, lo, min(lo+j.chunk, j.w.Rows))
}

// workspace is one worker's part of the scratch, 64-byte aligned: panel rows, then tails.
type workspace struct{ mem []byte }

// floats returns n panel rows of stride values each.
func (s workspace) floats(n, stride int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&s.mem[:n*stride*4][0])), n*stride)
}

// groups returns n panel rows of the given number of groups each.
func (s workspace) groups(n, groups int) []panelGroup {
	size := n * groups * int(unsafe.Sizeof(panelGroup{}))
	return unsafe.Slice((*panelGroup)(unsafe.Pointer(&s.mem[:size][0])), n*groups)
}

func (s workspace) tail() []byte { return s.mem[len(s.mem)-tailBytes:] }
