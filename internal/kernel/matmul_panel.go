package kernel

import "github.com/spillway/spillway/internal/quant"

// matmulOps are the loops of products that an instruction set offers.
type matmulOps struct {
	// base has the loops that maps here lack; nil if there is no such set.
	base *matmulOps
	// quantize rounds a padded row to groups, and to words if there are any.
	quantize func(groups []actGroup, words []int16, x []float32)
	// decode decodes a row of float weights to f32; types without an entry are left to quant.
	decode map[quant.Type]func(dst []float32, src []byte)
	// floatTile computes a tile of outputs over panels of f32.
	floatTile func(t *floatTile)
	// floatRows computes outputs from one row of activations and weights as they are stored.
	floatRows map[quant.Type]func(j *product, s workspace, lo, hi int)
	// unpack fills a panel row from packed weights; types without an entry take the Go loop.
	unpack map[quant.Type]func(dst []panelGroup, src []byte, s workspace)
	// intTile computes a tile of outputs, of up to 2 rows of activations, over panels of integers.
	intTile func(t *intTile)
	// intRows computes outputs from one row of activations and weights as they are stored.
	intRows map[quant.Type]func(j *product, s workspace, lo, hi int)
	// width is how many rows of weights a tile has: 4, or tileWeights where panels hold pieces.
	width int
	// pieces are the loops for panels that hold 8 rows of weights together: 32 bytes of each, then the next 32
	// bytes of each. nil if panels hold row after row.
	pieces *pieceOps
	// wide are tiles over panels that are made from pieces; nil if there are none.
	wide *wideOps
	// batch are loops for 8 rows of activations; nil if there are none.
	batch *batchOps
}

// pieceOps fill panels of 8 rows. What the maps lack is unpacked row by row and interleaved.
type pieceOps struct {
	interleave func(dst, src *byte, pieces int)
	decode     map[quant.Type]func(dst *float32, src *byte, k8 int)
	unpack     map[quant.Type]pairFunc
}

// pairFunc unpacks whole groups of two rows.
type pairFunc = func(dst *byte, first *byte, second *byte, groups int)

// lookup returns the loop for t that pick finds in m, or in the sets below it.
func lookup[F any](m *matmulOps, t quant.Type, pick func(m *matmulOps) map[quant.Type]F) (f F) {
	for ; m != nil; m = m.base {
		if f, ok := pick(m)[t]; ok {
			return f
		}
	}
	return f
}

func intRowsOf(m *matmulOps) map[quant.Type]partFunc   { return m.intRows }
func floatRowsOf(m *matmulOps) map[quant.Type]partFunc { return m.floatRows }
func unpackOf(m *matmulOps) map[quant.Type]unpackFunc  { return m.unpack }
func decodeOf(m *matmulOps) map[quant.Type]decodeFunc  { return m.decode }

// Loops of a task: over rows lo to hi of weights; of a panel row, from packed weights or to f32.
type (
	partFunc   = func(j *product, s workspace, lo, hi int)
	unpackFunc = func(dst []panelGroup, src []byte, s workspace)
	decodeFunc = func(dst []float32, src []byte)
)

var goMatmul = matmulOps{quantize: quantizeGo, floatTile: floatTileGo, intTile: intTileGo, width: 4}

// The assembly's tiles have at most tileRows rows of activations and tileWeights of weights.
const (
	tileRows    = 6
	tileWeights = 8
)

// tile is a tile of outputs over some columns: out[r*outStride+i] = row i of w · row r of x. Values
// before these columns have left their running sums in sums, unless first; the outputs are written if
// last. The panel behind w has width rows, of which nw are meant; so has sums, for each row of x.
type tile struct {
	nx, nw      int
	width       int // rows of weights: tileShape.weights
	first, last bool
	sums        []sums // of row r and row i of w: entry width·r + i
	out         []float32
	outStride   int
	spare       [wideRows * panelRows]float32 // for whole tiles of outputs where fewer are meant
}

// tiles are a worker's tiles, kept from product to product because loops reached through a table
// would let them escape.
type tiles struct {
	float   floatTile
	integer intTile
}

// start returns the running sums of an output.
func (t *tile) start(r, i int) *sums {
	s := &t.sums[t.width*r+i]
	if t.first {
		*s = sums{}
	}
	return s
}

// finish writes an output if its running sums are complete.
func (t *tile) finish(r, i int) {
	if t.last {
		t.out[r*t.outStride+i] = t.sums[t.width*r+i].total()
	}
}

// panel is rows of weights, unpacked, and the columns that it covers.
type panel struct {
	j      *product
	s      workspace
	lo, n  int // rows of weights
	at, to int // columns; to may lie behind the last one
}

// overPanels unpacks rows lo to hi, a panel at a time, and multiplies them with every row of
// activations.
func overPanels(j *product, s workspace, lo, hi int) {
	for ; lo < hi; lo += j.panel {
		for r := 0; r < j.a.Rows; r += j.block {
			p := panel{j: j, s: s, lo: lo, n: min(j.panel, hi-lo)}
			for ; p.at < j.w.Cols; p.at = p.to {
				p.to = min(p.at+j.cols, PaddedCols(j.w.Cols))
				if j.wide {
					p.wideIntegers(r, min(r+j.block, j.a.Rows))
				} else if j.format != nil {
					p.integers(r, min(r+j.block, j.a.Rows))
				} else {
					p.floats(r, min(r+j.block, j.a.Rows))
				}
			}
		}
	}
}

// A panel's columns are taken in slices, and the rows of activations in blocks: a slice of a tile's weights
// stays in the first-level cache while it meets a block, and the block in the second.
const (
	sliceFloats = 512
	sliceGroups = 4
	actBlock    = 48 // a multiple of the rows of every tile in assembly
)

// begin sets what the tiles of a slice share: columns from at on, to before end, of the panel's columns.
func (p *panel) begin(t *tile, at, end int) {
	t.first, t.last, t.outStride = p.at+at == 0, p.at+end >= p.j.w.Cols, p.j.outStride
	t.width = active.matmul.width
}

// move sets t to nx rows of activations from r on, and rows of the panel from i on; r0 is the first
// row of those whose running sums are kept.
func (p *panel) move(t *tile, r0, r, i, nx int) {
	t.nx, t.nw = nx, min(t.width, p.n-i)
	t.out = p.j.out[r*t.outStride+p.lo+i:]
	t.sums = p.s.sums(p.j.w.Cols)[(r-r0)*panelRows+i*nx:]
}

// kept returns the first row whose running sums are kept: that of all rows r0 of the panel, if the matrix
// has more columns than a panel, else that of the block.
func (p *panel) kept(r0, block int) int {
	if p.j.w.Cols > p.j.cols {
		return r0
	}
	return block
}

// source returns the bytes of row i of the panel.
func (p *panel) source(i int) []byte {
	row := p.j.row(p.lo + i)
	per := p.j.rowBytes * groupValues / p.j.w.Cols // of a group; exact, as a group is whole blocks
	from := p.at / groupValues * per
	return row[from:min(len(row), from+(p.to-p.at)/groupValues*per)]
}
