package kernel

import (
	"fmt"
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

// Supported reports whether MatMul takes weights of type t without exact. With exact it takes every
// type that quant.CanDecode names.
func Supported(t quant.Type) bool {
	_, ok := intFormats[t]
	return ok || t.IsFloat()
}

// Integer reports whether products with weights of type t read the 16-bit form of activations.
func Integer(t quant.Type, exact bool) bool { return !exact && !t.IsFloat() }

// Unpacked weights lie in panels of up to 32 rows, which the second-level cache holds. Wide matrices
// are taken in blocks of columns; the running sums of every output are kept from block to block, so
// that the split changes no bit.
const (
	panelRows = 32
	panelMax  = 256 << 10 // bytes
	blockRows = 252       // rows of activations whose running sums are kept
	tailBytes = 16 << 10  // a worker's copies of the rows' ends
	rowRoom   = 16 << 10  // a panel row, before it joins a pair

	floatGroup = 4 * groupValues // bytes of a group of 256 in panels
	actSize    = int(unsafe.Sizeof(actGroup{}))
	intGroup   = int(unsafe.Sizeof(panelGroup{}))
)

// panelCols returns how many columns a panel holds.
func panelCols(group int) int { return panelMax / (panelRows * group) * groupValues }

type sums [8]float32

// workerScratch returns the bytes that a worker needs: panel, running sums, tail.
func workerScratch(cols int) int {
	rows := actBlock
	if cols > panelCols(floatGroup) { // the wider, integer panels need the sums less often
		rows = blockRows
	}
	return panelBytes(cols) + rows*panelRows*int(unsafe.Sizeof(sums{})) + rowRoom + tailBytes
}

// panelBytes returns the bytes of the larger kind of panel, that of f32.
func panelBytes(cols int) int { return min(panelRows*4*PaddedCols(cols), panelMax) }

// ScratchBytes returns the bytes that MatMul's scratch must have for a pool of that many threads and
// weights of up to maxCols columns.
func ScratchBytes(threads, maxCols int) int {
	return threads*workerScratch(maxCols) + actAlign
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
	j := begin(p, scratch, w, a, out, outStride, exact)
	p.Run(j.tasks(), j.run)
	j.end()
}

// begin checks a product and plans it.
func begin(p *Pool, scratch []byte, w Weights, a *Acts, out []float32, outStride int, exact bool) *product {
	checkProduct(p, scratch, &w, a, out, outStride, exact)
	j := products.get()
	j.w, j.a, j.out, j.outStride, j.rowBytes = w, a, out, outStride, w.rowBytes()
	j.scratch, j.perWorker = scratch, workerScratch(w.Cols)
	j.threads = p.Threads()
	for len(j.tiles) < j.threads {
		j.tiles = append(j.tiles, new(tiles))
	}
	j.edges = j.edges[:0]
	j.plan(exact)
	return j
}

func (j *product) tasks() int {
	if len(j.edges) > 0 {
		return len(j.edges) - 1
	}
	return (j.w.Rows + j.chunk - 1) / j.chunk
}

// end lets go of the product's memory.
func (j *product) end() {
	j.w, j.a, j.out, j.scratch = Weights{}, nil, nil, nil
	products.put(j)
}

func checkProduct(p *Pool, scratch []byte, w *Weights, a *Acts, out []float32, outStride int, exact bool) {
	switch {
	case exact && !quant.CanDecode(w.Type) || !exact && !Supported(w.Type):
		panic(fmt.Sprintf("kernel: no product with %v (exact: %t)", w.Type, exact))
	case w.Cols != a.Cols:
		panic(fmt.Sprintf("kernel: weights of %d columns meet activations of %d", w.Cols, a.Cols))
	case w.Cols%w.Type.BlockValues() != 0 || len(w.Data) < w.Rows*w.rowBytes():
		panic(fmt.Sprintf("kernel: %d bytes for %d × %d weights of %v", len(w.Data), w.Rows, w.Cols, w.Type))
	case len(out) < (a.Rows-1)*outStride+w.Rows:
		panic(fmt.Sprintf("kernel: %d outputs for %d × %d", len(out), a.Rows, w.Rows))
	case len(scratch) < p.Threads()*workerScratch(w.Cols)+actAlign:
		panic(fmt.Sprintf("kernel: %d bytes of scratch for %d columns", len(scratch), w.Cols))
	case Integer(w.Type, exact) && !a.Integer():
		panic(fmt.Sprintf("kernel: %v meets activations without their 16-bit form", w.Type))
	}
}

// product is one MatMul on its way through the pool.
type product struct {
	w         Weights
	rowBytes  int
	a         *Acts
	out       []float32
	outStride int
	scratch   []byte
	perWorker int
	threads   int

	chunk int   // rows of weights a task; of the first one if tasks shrink, see shrink
	edges []int // where tasks that shrink begin, and the end; empty if all are of chunk rows
	panel int   // and of those that are unpacked at a time
	cols  int   // columns of a panel
	block int   // rows of activations that meet a panel
	wide  bool  // panels are for wide tiles
	part  func(j *product, s workspace, lo, hi int)
	run   func(worker, task int)

	// For products over panels: the format, or nil for floats, and this instruction set's loop that
	// fills a panel row, or nil if there is none.
	format *intFormat
	unpack func(dst []panelGroup, src []byte, s workspace)
	pair   pairFunc
	batch  batchFunc // for products over eights of rows of activations
	decode func(dst []float32, src []byte)
	tiles  []*tiles // by worker
}

// row returns the bytes of row i of the weights.
func (j *product) row(i int) []byte {
	return j.w.Data[i*j.rowBytes : (i+1)*j.rowBytes : (i+1)*j.rowBytes]
}

var products = kept[product]{make: func() *product {
	j := new(product)
	j.run = j.task // once, so that MatMul allocates nothing
	return j
}}

// chunkBytes is the most bytes of weights that a task reads when it only streams them. Memory is slow to
// start: 96 KiB reach five sixths of the speed of 1 MiB. More would take longer than 100 µs, in which
// nothing can stop the thread. leastBytes is the least.
const (
	chunkBytes = 1 << 20
	leastBytes = 128 << 10
)

// plan chooses the loops: directly over the packed weights for one row of activations, or two where
// unpacking is cheap, else over panels of unpacked weights that all rows share. Both give the same
// bits.
func (j *product) plan(exact bool) {
	if Integer(j.w.Type, exact) {
		j.planInt()
	} else {
		j.planFloat()
	}
}

func (j *product) planInt() {
	m, t := &active.matmul, j.w.Type
	f := intFormats[t]
	if rows := lookup(m, t, intRowsOf); rows != nil && j.a.words != nil && (j.a.Rows == 1 || f.cheap || m.width == tileWeights) {
		j.part = rows
		j.shrink()
		return
	}
	if j.batch = j.batchFor(m); j.batch != nil {
		j.part, j.format = overBatch, f
		j.shrink()
		return
	}
	j.part, j.format, j.unpack = overPanels, f, lookup(m, t, unpackOf)
	j.planPanels(intGroup)
	j.pair = nil
	if m.pieces != nil {
		j.pair = m.pieces.unpack[t]
	}
	j.wide = m.wide != nil && j.a.Rows >= m.wide.from[f.short()]
}

func (j *product) planFloat() {
	m, t := &active.matmul, j.w.Type
	if rows := lookup(m, t, floatRowsOf); rows != nil && j.a.Rows == 1 {
		j.part = rows
		j.shrink()
		return
	}
	j.part, j.format, j.decode, j.wide = overPanels, nil, lookup(m, t, decodeOf), false
	j.planPanels(floatGroup)
}

// planPanels sets how many rows are unpacked at a time. Where each is used a few times only, as few as
// make a tile, so that they stay in the first-level cache.
func (j *product) planPanels(group int) {
	j.panel, j.chunk, j.cols, j.block = panelRows, panelRows, panelCols(group), j.a.Rows
	if j.w.Cols > j.cols {
		j.block = blockRows
	}
	if j.a.Rows <= 8 {
		j.panel = active.matmul.width
		j.shrink()
		j.cols = min(j.cols, sliceGroups*groupValues)
	}
}

// shrink plans tasks that stream weights: each takes its share of three quarters of the rows that are left, a
// multiple of 8, so that the last ones are small: a thread that other processes slow down leaves little to
// wait for. Measured: as fast on an idle machine as two equal tasks a thread; halves are 7 % slower.
func (j *product) shrink() {
	most, least := max(chunkBytes/j.rowBytes&^7, 8), max(leastBytes/j.rowBytes&^7, 8)
	for at := 0; at < j.w.Rows; {
		j.edges = append(j.edges, at)
		n := ((j.w.Rows-at)*3/(4*j.threads) + 7) &^ 7
		at += min(max(n, least), most)
	}
	j.edges = append(j.edges, j.w.Rows)
}

func (j *product) task(worker, task int) {
	lo, hi := task*j.chunk, min((task+1)*j.chunk, j.w.Rows)
	if len(j.edges) > 0 {
		lo, hi = j.edges[task], j.edges[task+1]
	}
	base := alignUp(unsafe.Pointer(unsafe.SliceData(j.scratch)), actAlign)
	at := uintptr(base) - uintptr(unsafe.Pointer(unsafe.SliceData(j.scratch))) + uintptr(worker*j.perWorker)
	s := workspace{j.scratch[at:][:j.perWorker], j.tiles[worker]}
	j.part(j, s, lo, hi)
}

// workspace is one worker's part of the scratch, 64-byte aligned: panel, running sums, row, tail.
type workspace struct {
	mem   []byte
	tiles *tiles
}

// floats returns a panel of n values.
func (s workspace) floats(n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&s.mem[:n*4][0])), n)
}

// groups returns a panel of n groups.
func (s workspace) groups(n int) []panelGroup {
	size := n * int(unsafe.Sizeof(panelGroup{}))
	return unsafe.Slice((*panelGroup)(unsafe.Pointer(&s.mem[:size][0])), n)
}

// sums returns the running sums behind a panel of a matrix of cols columns.
func (s workspace) sums(cols int) []sums {
	b := s.mem[panelBytes(cols) : len(s.mem)-tailBytes-rowRoom]
	return unsafe.Slice((*sums)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(sums{})))
}

// row returns room for a panel row of floats or groups.
func (s workspace) row() []byte {
	return s.mem[len(s.mem)-tailBytes-rowRoom:][:rowRoom]
}

func (s workspace) tail() []byte { return s.mem[len(s.mem)-tailBytes:] }

// raw returns the worker's group for the Go loops; it shares its memory with tail.
func (s workspace) raw() *rawGroup { return (*rawGroup)(unsafe.Pointer(&s.tail()[0])) }
