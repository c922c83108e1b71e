package kernel

import (
	"unsafe"

	"github.com/spillway/spillway/internal/quant"
)

// avx512Matmul adds loops of 512 bits; what it lacks it takes from avx2Matmul.
var avx512Matmul = matmulOps{
	base:      &iqMatmul512,
	quantize:  quantizeRowAVX2,
	floatTile: floatTileAVX512,
	intTile:   intTileAVX512,
	width:     tileWeights,
	pieces:    &pieceOps512,
	wide:      &wideOps512,
	batch:     &batchOps512,
	intRows: map[quant.Type]partFunc{
		quant.Q4_0:  intRows512(packQ4_0AVX512, intRowsQ4_0AVX512, 1),
		quant.Q4_1:  intRows512(packQ4_1AVX512, intRowsQ4_1AVX512, 1),
		quant.Q5_0:  intRows512(packQ5_0AVX512, intRowsQ5_0AVX512, 1),
		quant.Q5_1:  intRows512(packQ5_1AVX512, intRowsQ5_1AVX512, 1),
		quant.Q8_0:  intRows512(packQ8_0AVX512, intRowsQ8_0AVX512, 1),
		quant.IQ4NL: intRows512(packIQ4NLAVX512, intRowsIQ4NLAVX512, 1),
		quant.Q2_K:  intRows512(packQ2KAVX512, intRowsQ2KAVX512, 2),
		quant.Q3_K:  intRows512(packQ3KAVX512, intRowsQ3KAVX512, 2),
		quant.Q4_K:  intRows512(packQ4KAVX512, intRowsQ4KAVX512, 1),
		quant.Q5_K:  intRows512(packQ5KAVX512, intRowsQ5KAVX512, 1),
		quant.Q6_K:  intRows512(packQ6KAVX512, intRowsQ6KAVX512, 2),
	},
}

// iqMatmul512 stands between: it adds the loops of look-up formats.
var iqMatmul512 = matmulOps{base: &avx2Matmul, intRows: iqRows512}

// packedRows multiplies rows as they are stored, two at a time, with activations that are packed for the
// format once per task.
type packedRows struct {
	pack func(dst *byte, words *byte, acts *byte, n int)
	rows func(w *byte, rowBytes int, rows int, groups int, mask int, tail *byte, pack *byte, out *float32)
	size int // bytes of a packed group
}

// intRows512 returns the loop over tasks; phases is 2 for runs of 16, which have two sets of scales.
func intRows512(pack func(dst *byte, words *byte, acts *byte, n int),
	rows func(w *byte, rowBytes int, rows int, groups int, mask int, tail *byte, pack *byte, out *float32), phases int) partFunc {
	return (&packedRows{pack, rows, 2*groupValues + phases*128}).run
}

func (f *packedRows) run(j *product, s workspace, lo, hi int) {
	groups := j.a.Stride / groupValues
	if groups*f.size > panelBytes(j.w.Cols) { // wider than any model
		avx2Matmul.intRows[j.w.Type](j, s, lo, hi)
		return
	}
	for r := range j.a.Rows {
		f.pack(&s.mem[0], bytePtr(&j.a.wordRow(r)[0]), bytePtr(&j.a.row(r)[0]), groups)
		if j.w.Cols%groupValues == 0 {
			f.call(j, s, r, lo, hi-lo, 0, nil)
		} else {
			f.tails(j, s, r, lo, hi)
		}
	}
}

// call multiplies n rows of weights from i on with row r of activations.
func (f *packedRows) call(j *product, s workspace, r, i, n, mask int, tail *byte) {
	f.rows(&j.row(i)[0], j.rowBytes, n, j.w.Cols/groupValues, mask, tail, &s.mem[0], &j.out[r*j.outStride+i])
}

// tails takes rows whose last group is not whole, see tailRows.
func (f *packedRows) tails(j *product, s workspace, r, lo, hi int) {
	mask, whole, group := mask512(j.w.Cols%groupValues/32), j.w.Cols/groupValues, intFormats[j.w.Type].bytes
	safe := (len(j.w.Data)-(whole+1)*group+j.rowBytes)/j.rowBytes - lo
	if safe = min(safe, hi-lo); safe > 0 {
		f.call(j, s, r, lo, safe, mask, nil)
		lo += safe
	}
	for ; lo < hi; lo += 2 {
		n, tail := min(2, hi-lo), s.tail()[:2*group]
		for k := range n {
			padTail(tail[k*group:(k+1)*group], j.row(lo + k)[whole*group:])
		}
		f.call(j, s, r, lo, n, mask, &tail[0])
	}
}

// mask512 returns ones for the sums of the first blocks of 32, that of block 4i+j being 4j + 2·row + i.
func mask512(blocks int) (mask int) {
	for b := range blocks {
		mask |= 5 << (b%4*4 + b/4)
	}
	return mask
}

var pieceOps512 = pieceOps{
	interleave: interleaveAVX512,
	decode: map[quant.Type]func(dst *float32, src *byte, k8 int){
		quant.F32:  func(dst *float32, src *byte, k8 int) { interleaveAVX512(bytePtr(dst), src, k8) },
		quant.F16:  decodePiecesF16AVX512,
		quant.BF16: decodePiecesBF16AVX512,
	},
	unpack: map[quant.Type]pairFunc{
		quant.Q4_0:  unpackQ4_0AVX512,
		quant.Q4_1:  unpackQ4_1AVX512,
		quant.Q5_0:  unpackQ5_0AVX512,
		quant.Q5_1:  unpackQ5_1AVX512,
		quant.Q8_0:  unpackQ8_0AVX512,
		quant.IQ4NL: unpackIQ4NLAVX512,
		quant.Q2_K:  unpackQ2KAVX512,
		quant.Q3_K:  unpackQ3KAVX512,
		quant.Q4_K:  unpackQ4KAVX512,
		quant.Q5_K:  unpackQ5KAVX512,
		quant.Q6_K:  unpackQ6KAVX512,

		quant.IQ1S:   pointPair(pointsIQ1, unpackIQ1SAVX2),
		quant.IQ1M:   pointPair(pointsIQ1, unpackIQ1MAVX2),
		quant.IQ2XXS: pointPair(pointsIQ2XXS, unpackIQ2XXSAVX2),
		quant.IQ2XS:  pointPair(pointsIQ2XS, unpackIQ2XSAVX2),
		quant.IQ2S:   pointPair(pointsIQ2S, unpackIQ2SAVX2),
		quant.IQ3XXS: pointPair(pointsIQ3XXS, unpackIQ3XXSAVX2),
		quant.IQ3S:   pointPair(pointsIQ3S, unpackIQ3SAVX2),
		quant.IQ4XS:  pointPair(noPoints, unpackIQ4XSAVX2),
		quant.TQ1_0:  pointPair(noPoints, unpackTQ1_0AVX2),
		quant.TQ2_0:  pointPair(noPoints, unpackTQ2_0AVX2),
		quant.Q1_0:   pointPair(noPoints, unpackQ1_0AVX2),
		quant.Q2_0:   pointPair(noPoints, unpackQ2_0AVX2),
		quant.MXFP4:  pointPair(noPoints, unpackMXFP4AVX2),
		quant.NVFP4:  pointPair(noPoints, unpackNVFP4AVX2),
	},
}

var floatTiles512 = [...]tileFunc[float32, float32]{
	floatTile1AVX512, floatTile2AVX512, floatTile3AVX512, floatTile4AVX512, floatTile5AVX512, floatTile6AVX512,
}

func floatTileAVX512(t *floatTile) {
	for r := 0; r < t.nx; r += len(floatTiles512) {
		n := min(len(floatTiles512), t.nx-r)
		out, stride := t.target(r)
		floatTiles512[n-1](&t.x[r*t.xStride], 4*t.xStride, &t.w[0], 0, t.k/8, &t.x[t.after(r, n)*t.xStride],
			&t.sums[r*t.width][0], t.mode(), out, stride)
		t.settle(r, n)
	}
}

// intTiles512 are indexed by runs of 16, offsets, and rows of activations less one.
var intTiles512 = [2][2][4]intTileFunc{
	{
		{intTile32x1AVX512, intTile32x2AVX512, intTile32x3AVX512, intTile32x4AVX512},
		{intTile32x1OffsetAVX512, intTile32x2OffsetAVX512, intTile32x3OffsetAVX512, intTile32x4OffsetAVX512},
	},
	{
		{intTile16x1AVX512, intTile16x2AVX512, intTile16x3AVX512, intTile16x4AVX512},
		{intTile16x1OffsetAVX512, intTile16x2OffsetAVX512, intTile16x3OffsetAVX512, intTile16x4OffsetAVX512},
	},
}

func intTileAVX512(t *intTile) {
	const xSize = int(unsafe.Sizeof(actGroup{}))
	tiles := &intTiles512[t.format.short()][t.format.sign()]
	for r := 0; r < t.nx; r += len(tiles) {
		n := min(len(tiles), t.nx-r)
		out, stride := t.target(r)
		tiles[n-1](bytePtr(&t.x[r*t.xStride]), t.xStride*xSize, bytePtr(&t.w[0]), 0, t.n,
			bytePtr(&t.x[t.after(r, n)*t.xStride]), &t.sums[r*t.width][0], t.mode(), out, stride)
		t.settle(r, n)
	}
}
