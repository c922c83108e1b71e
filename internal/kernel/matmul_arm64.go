package kernel

import (
	"unsafe"

	"github.com/spillway/spillway/internal/quant"
)

// neonMatmul runs the generated loops over whole groups of values; what is left over takes the Go loops,
// which give the same bits. Types without an entry are unpacked in Go.
var neonMatmul = matmulOps{
	quantize:  quantizeRowNEON,
	floatTile: floatTileNEON,
	intTile:   intTileNEON,
	width:     4,
	decode: map[quant.Type]decodeFunc{
		quant.F32:  decodeNEON(quant.F32, decodeRowF32NEON),
		quant.F16:  decodeNEON(quant.F16, decodeRowF16NEON),
		quant.BF16: decodeNEON(quant.BF16, decodeRowBF16NEON),
	},
	floatRows: map[quant.Type]partFunc{
		quant.F32:  floatRowsNEON(floatRowsF32NEON),
		quant.F16:  floatRowsNEON(floatRowsF16NEON),
		quant.BF16: floatRowsNEON(floatRowsBF16NEON),
	},
	unpack: map[quant.Type]unpackFunc{
		quant.Q4_0:  unpackNEON(quant.Q4_0, unpackQ4_0NEON),
		quant.Q4_1:  unpackNEON(quant.Q4_1, unpackQ4_1NEON),
		quant.Q5_0:  unpackNEON(quant.Q5_0, unpackQ5_0NEON),
		quant.Q5_1:  unpackNEON(quant.Q5_1, unpackQ5_1NEON),
		quant.Q8_0:  unpackNEON(quant.Q8_0, unpackQ8_0NEON),
		quant.IQ4NL: unpackNEON(quant.IQ4NL, unpackIQ4NLNEON),
		quant.Q2_K:  unpackNEON(quant.Q2_K, unpackQ2KNEON),
		quant.Q3_K:  unpackNEON(quant.Q3_K, unpackQ3KNEON),
		quant.Q4_K:  unpackNEON(quant.Q4_K, unpackQ4KNEON),
		quant.Q5_K:  unpackNEON(quant.Q5_K, unpackQ5KNEON),
		quant.Q6_K:  unpackNEON(quant.Q6_K, unpackQ6KNEON),

		quant.IQ4XS:       unpackNEON(quant.IQ4XS, unpackIQ4XSNEON),
		quant.TQ2_0:       unpackNEON(quant.TQ2_0, unpackTQ2_0NEON),
		quant.MXFP4:       unpackNEON(quant.MXFP4, unpackMXFP4NEON),
		quant.NVFP4:       unpackNEON(quant.NVFP4, unpackNVFP4NEON),
		quant.Int4x32:     unpackNEON(quant.Int4x32, unpackInt4x32NEON),
		quant.Int4x64:     unpackNEON(quant.Int4x64, unpackInt4x64NEON),
		quant.Int4x128:    unpackNEON(quant.Int4x128, unpackInt4x128NEON),
		quant.Int8x32:     unpackNEON(quant.Int8x32, unpackInt8x32NEON),
		quant.Int8x128:    unpackNEON(quant.Int8x128, unpackInt8x128NEON),
		quant.LLMInt8x32:  unpackNEON(quant.LLMInt8x32, unpackLLMInt8x32NEON),
		quant.LLMInt8x128: unpackNEON(quant.LLMInt8x128, unpackLLMInt8x128NEON),
	},
	intRows: map[quant.Type]partFunc{
		quant.Q4_0:  intRowsNEON(intRowsQ4_0NEON),
		quant.Q4_1:  intRowsNEON(intRowsQ4_1NEON),
		quant.Q5_0:  intRowsNEON(intRowsQ5_0NEON),
		quant.Q5_1:  intRowsNEON(intRowsQ5_1NEON),
		quant.Q8_0:  intRowsNEON(intRowsQ8_0NEON),
		quant.IQ4NL: intRowsNEON(intRowsIQ4NLNEON),
		quant.Q2_K:  intRowsNEON(intRowsQ2KNEON),
		quant.Q3_K:  intRowsNEON(intRowsQ3KNEON),
		quant.Q4_K:  intRowsNEON(intRowsQ4KNEON),
		quant.Q5_K:  intRowsNEON(intRowsQ5KNEON),
		quant.Q6_K:  intRowsNEON(intRowsQ6KNEON),

		quant.IQ4XS:       intRowsNEON(intRowsIQ4XSNEON),
		quant.TQ2_0:       intRowsNEON(intRowsTQ2_0NEON),
		quant.MXFP4:       intRowsNEON(intRowsMXFP4NEON),
		quant.NVFP4:       intRowsNEON(intRowsNVFP4NEON),
		quant.Int4x32:     intRowsNEON(intRowsInt4x32NEON),
		quant.Int4x64:     intRowsNEON(intRowsInt4x64NEON),
		quant.Int4x128:    intRowsNEON(intRowsInt4x128NEON),
		quant.Int8x32:     intRowsNEON(intRowsInt8x32NEON),
		quant.Int8x128:    intRowsNEON(intRowsInt8x128NEON),
		quant.LLMInt8x32:  intRowsNEON(intRowsLLMInt8x32NEON),
		quant.LLMInt8x128: intRowsNEON(intRowsLLMInt8x128NEON),
	},
}

func quantizeRowNEON(groups []actGroup, words []int16, x []float32) {
	var w *byte
	if words != nil {
		w = bytePtr(&words[0])
	}
	_ = x[:len(groups)*groupValues]
	quantizeNEON(bytePtr(&groups[0]), w, &x[0], len(groups))
}

// decodeNEON decodes whole eighths by f, the rest as the reference does.
func decodeNEON(t quant.Type, f func(dst *float32, src *byte, k8 int)) decodeFunc {
	size := t.BlockBytes()
	return func(dst []float32, src []byte) {
		n := len(dst) &^ 7
		if n > 0 {
			f(&dst[0], &src[0], n/8)
		}
		if n < len(dst) {
			mustDecode(t, dst[n:], src[n*size:])
		}
	}
}

// neonRows is how many rows of weights meet one row of activations at a time.
const neonRows = 8

// rowSums returns room for the running sums of some rows, and the rest of the tail.
func (s workspace) rowSums() (*[neonRows]sums, []byte) {
	b := s.tail()
	const size = neonRows * unsafe.Sizeof(sums{})
	return (*[neonRows]sums)(unsafe.Pointer(&b[0])), b[size:]
}

// floatRowsNEON takes 8 rows at a time; what a row has behind whole eighths joins in Go.
func floatRowsNEON(f func(w *byte, rowBytes, rows int, x *float32, k8 int, sums *float32)) partFunc {
	return func(j *product, s workspace, lo, hi int) {
		acc, rest := s.rowSums()
		tail := unsafe.Slice((*float32)(unsafe.Pointer(&rest[0])), 8)
		k, size := j.w.Cols&^7, j.w.Type.BlockBytes()
		for ; lo < hi; lo += neonRows {
			n := min(neonRows, hi-lo)
			*acc = [neonRows]sums{}
			if k > 0 {
				f(&j.row(lo)[0], j.rowBytes, n, &j.a.F32[0], k/8, &acc[0][0])
			}
			for i := range n {
				if k < j.w.Cols {
					mustDecode(j.w.Type, tail[:j.w.Cols-k], j.row(lo + i)[k*size:])
					acc[i].addFloats(tail[:j.w.Cols-k], j.a.F32[k:])
				}
				j.out[lo+i] = acc[i].total()
			}
		}
	}
}

var neonFloatTiles = [...]func(x *float32, xStride int, w *float32, wStride, k8 int, sums *float32){
	floatTile1NEON, floatTile2NEON, floatTile3NEON,
}

func floatTileNEON(t *floatTile) {
	t.begin()
	for r := 0; r < t.nx; r += len(neonFloatTiles) {
		n := min(len(neonFloatTiles), t.nx-r)
		neonFloatTiles[n-1](&t.x[r*t.xStride], 4*t.xStride, &t.w[0], 4*t.wStride, t.k/8, &t.sums[r*t.width][0])
	}
	t.end()
}

// begin clears the running sums of a tile's first columns.
func (t *tile) begin() {
	if t.first {
		clear(t.sums[:t.nx*t.width])
	}
}

// end writes the outputs of a tile whose running sums are complete.
func (t *tile) end() {
	for r := range t.nx {
		for i := range t.nw {
			t.finish(r, i)
		}
	}
}

type neonIntRows = func(w *byte, rowBytes, rows, groups int, words, acts *byte, sums *float32)

// intRowsNEON multiplies rows lo to hi as they are stored; a last group that is not whole is copied.
func intRowsNEON(f neonIntRows) partFunc {
	return func(j *product, s workspace, lo, hi int) {
		for r := range j.a.Rows {
			for i := lo; i < hi; i += neonRows {
				j.rowsNEON(f, s, r, i, min(neonRows, hi-i))
			}
		}
	}
}

// rowsNEON multiplies n rows of weights from i on with row r of activations.
func (j *product) rowsNEON(f neonIntRows, s workspace, r, i, n int) {
	acc, rest := s.rowSums()
	*acc = [neonRows]sums{}
	words, acts, whole := j.a.wordRow(r), j.a.row(r), j.w.Cols/groupValues
	if whole > 0 {
		f(&j.row(i)[0], j.rowBytes, n, whole, bytePtr(&words[0]), bytePtr(&acts[0]), &acc[0][0])
	}
	group := intFormats[j.w.Type].bytes
	tail := rest[:group]
	for k := range n {
		if whole < len(acts) {
			padTail(tail, j.row(i + k)[whole*group:])
			f(&tail[0], 0, 1, 1, bytePtr(&words[whole*groupValues]), bytePtr(&acts[whole]), &acc[k][0])
		}
		j.out[r*j.outStride+i+k] = acc[k].total()
	}
}

// unpackNEON unpacks whole groups by f, and a last one from a padded copy.
func unpackNEON(t quant.Type, f func(dst, src *byte, n int)) unpackFunc {
	group := t.RowBytes(groupValues)
	return func(dst []panelGroup, src []byte, s workspace) {
		n := len(src) / group
		if n > 0 {
			f(bytePtr(&dst[0]), &src[0], n)
		}
		if n < len(dst) {
			tail := s.tail()[:group]
			padTail(tail, src[n*group:])
			f(bytePtr(&dst[n]), &tail[0], 1)
		}
	}
}

type neonIntTile = func(x *byte, xStride int, w *byte, wStride, n int, sums *float32)

// neonIntTiles are indexed by runs of 16, offsets, and rows of activations less one.
var neonIntTiles = [2][2][2]neonIntTile{
	{{intTile32x1NEON, intTile32x2NEON}, {intTile32x1OffsetNEON, intTile32x2OffsetNEON}},
	{{intTile16x1NEON, intTile16x2NEON}, {intTile16x1OffsetNEON, intTile16x2OffsetNEON}},
}

// intTileNEON takes two rows of the panel at a time: their sums fill the registers.
func intTileNEON(t *intTile) {
	const xSize, wSize = int(unsafe.Sizeof(actGroup{})), int(unsafe.Sizeof(panelGroup{}))
	short, offset := 0, 0
	if t.format.run == 16 {
		short = 1
	}
	if t.format.offset {
		offset = 1
	}
	tiles := &neonIntTiles[short][offset]
	t.begin()
	for r := 0; r < t.nx; r += len(tiles) {
		f := tiles[min(len(tiles), t.nx-r)-1]
		for i := 0; i < t.nw; i += 2 {
			f(bytePtr(&t.x[r*t.xStride]), t.xStride*xSize, bytePtr(&t.w[i*t.wStride]), t.wStride*wSize, t.n, &t.sums[r*t.width+i][0])
		}
	}
	t.end()
}
