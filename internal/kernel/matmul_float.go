package kernel

import (
	"fmt"

	"github.com/spillway/spillway/internal/quant"
)

// matmulOps are the loops of products that an instruction set offers.
type matmulOps struct {
	// quantize rounds a padded row to groups, and to words if there are any.
	quantize func(groups []actGroup, words []int16, x []float32)
	// decode decodes a row of float weights to f32; types without an entry are left to quant.
	decode map[quant.Type]func(dst []float32, src []byte)
	// floatTile computes a tile of outputs. The panel behind w has 4 rows, of which nw are meant.
	floatTile func(t *floatTile)
	// floatRows computes outputs from one row of activations and weights as they are stored.
	floatRows map[quant.Type]func(j *product, s workspace, lo, hi int)
	// unpack fills a panel row from packed weights; types without an entry take the Go loop.
	unpack map[quant.Type]func(dst []panelGroup, src []byte, s workspace)
	// intTile computes a tile of outputs. The panel behind w has 4 rows, of which nw are meant.
	intTile func(t *intTile)
	// intRows computes outputs from one row of activations and weights as they are stored.
	intRows map[quant.Type]func(j *product, s workspace, lo, hi int)
}

var goMatmul = matmulOps{quantize: quantizeGo, floatTile: floatTileGo, intTile: intTileGo}

// floatTile is a tile of float products: out[r*outStride+i] = row i of w · row r of x, of k values,
// a multiple of 8.
type floatTile struct {
	x, w, out                   []float32
	xStride, wStride, outStride int
	nx, nw                      int // up to 3 and 4 rows
	k                           int
}

// floatPanels decodes rows lo to hi to f32, a few at a time, and multiplies them with every row of
// activations.
func floatPanels(j *product, s workspace, lo, hi int) {
	stride := (j.w.Cols + 7) &^ 7
	panel := s.floats(j.panel, stride)
	t := floatTile{xStride: j.a.Stride, wStride: stride, outStride: j.outStride, k: stride}
	for ; lo < hi; lo += j.panel {
		rows := min(j.panel, hi-lo)
		for i := range rows {
			row := panel[i*stride : (i+1)*stride]
			j.decode(row[:j.w.Cols], j.row(lo+i))
			clear(row[j.w.Cols:])
		}
		for r := 0; r < j.a.Rows; r += t.nx {
			t.nx = min(3, j.a.Rows-r)
			t.x = j.a.F32[r*j.a.Stride:]
			for i := 0; i < rows; i += t.nw {
				t.nw = min(4, rows-i)
				t.w = panel[i*stride:]
				t.out = j.out[r*j.outStride+lo+i:]
				active.matmul.floatTile(&t)
			}
		}
	}
}

// mustDecode decodes the first values of src that fill dst; sizes and type were checked before.
func mustDecode(t quant.Type, dst []float32, src []byte) {
	if err := quant.DecodeRow(t, dst, src); err != nil {
		panic(fmt.Sprintf("kernel: %v", err))
	}
}

func floatTileGo(t *floatTile) {
	for r := range t.nx {
		for i := range t.nw {
			t.out[r*t.outStride+i] = dotFloat(t.w[i*t.wStride:][:t.k], t.x[r*t.xStride:][:t.k])
		}
	}
}

// dotFloat is the definition of a float product: element k joins running sum k mod 8, in rising k.
// Both are padded with zeros to a multiple of 8.
func dotFloat(w, x []float32) float32 {
	var s [8]float32
	for k := range w {
		s[k%8] = fma32(w[k], x[k], s[k%8])
	}
	return total(&s)
}

// total adds 8 running sums in the order that docs/numerics.md fixes.
func total(s *[8]float32) float32 {
	return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}
