package kernel

import "github.com/spillway/spillway/internal/quant"

// matmulOps are the loops of products that an instruction set offers.
type matmulOps struct {
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
}

var goMatmul = matmulOps{quantize: quantizeGo, floatTile: floatTileGo, intTile: intTileGo}

// tileRows is the most rows of activations in a tile; weights are taken 4 rows at a time.
const tileRows = 3

// tile is a tile of outputs over some columns: out[r*outStride+i] = row i of w · row r of x. Values
// before these columns have left their running sums in sums, unless first; the outputs are written if
// last. The panel behind w has 4 rows, of which nw are meant; so has sums, for each row of x.
type tile struct {
	nx, nw      int // up to tileRows, or 2 for integers, and 4
	first, last bool
	sums        []sums // of row r and row i of w: entry 4r+i
	out         []float32
	outStride   int
	spare       [tileRows * 4]float32 // for whole tiles of outputs where fewer are meant
}

// tiles are a worker's tiles, kept from product to product because loops reached through a table
// would let them escape.
type tiles struct {
	float   floatTile
	integer intTile
}

// start returns the running sums of an output.
func (t *tile) start(r, i int) *sums {
	s := &t.sums[4*r+i]
	if t.first {
		*s = sums{}
	}
	return s
}

// finish writes an output if its running sums are complete.
func (t *tile) finish(r, i int) {
	if t.last {
		t.out[r*t.outStride+i] = t.sums[4*r+i].total()
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
				p.to = min(p.at+j.cols, j.a.Stride)
				if j.format != nil {
					p.integers(r, min(r+j.block, j.a.Rows))
				} else {
					p.floats(r, min(r+j.block, j.a.Rows))
				}
			}
		}
	}
}

// begin sets what all tiles of the panel share.
func (p *panel) begin(t *tile) {
	t.first, t.last, t.outStride = p.at == 0, p.to >= p.j.w.Cols, p.j.outStride
	t.sums = p.s.sums(p.j.w.Cols)
}

// move sets t to nx rows of activations from r on, and rows of the panel from i on; r0 is the first
// row of the block of activations.
func (p *panel) move(t *tile, r0, r, i, nx int) {
	t.nx, t.nw = nx, min(4, p.n-i)
	t.out = p.j.out[r*t.outStride+p.lo+i:]
	if p.j.w.Cols > p.j.cols {
		t.sums = p.s.sums(p.j.w.Cols)[(r-r0)*panelRows+i*nx:]
	}
}

// source returns the bytes of row i of the panel.
func (p *panel) source(i int) []byte {
	row := p.j.row(p.lo + i)
	per := p.j.rowBytes * groupValues / p.j.w.Cols // of a group; exact, as a group is whole blocks
	from := p.at / groupValues * per
	return row[from:min(len(row), from+(p.to-p.at)/groupValues*per)]
}
