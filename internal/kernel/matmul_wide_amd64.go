package kernel

import (
	"unsafe"

	"github.com/spillway/spillway/internal/quant"
)

var wideOps512 = wideOps{
	arrange: [2]func(dst, src *byte, octet, n int){widen32AVX512, widen16AVX512},
	from:    [2]int{24, 9},
	bytes:   [2]int{8 * (16 + 2) * 2 * 64, 16 * (8 + 2) * 2 * 64},
	tile:    wideTileAVX512,
}

// wideTile is a loop of nx rows of activations.
type wideTile struct {
	nx int
	f  func(x *byte, xStride int, w *byte, n int, sums *float32, mode int, out *float32, outStride int, ahead *byte, step int)
}

// wideTiles512 are indexed by runs of 16, and offsets.
var wideTiles512 = [2][2][5]wideTile{
	{
		{{12, wideTile32x12AVX512}, {8, wideTile32x8AVX512}, {4, wideTile32x4AVX512}, {2, wideTile32x2AVX512}, {1, wideTile32x1AVX512}},
		{{12, wideTile32x12OffsetAVX512}, {8, wideTile32x8OffsetAVX512}, {4, wideTile32x4OffsetAVX512}, {2, wideTile32x2OffsetAVX512}, {1, wideTile32x1OffsetAVX512}},
	},
	{
		{{12, wideTile16x12AVX512}, {8, wideTile16x8AVX512}, {4, wideTile16x4AVX512}, {2, wideTile16x2AVX512}, {1, wideTile16x1AVX512}},
		{{12, wideTile16x12OffsetAVX512}, {8, wideTile16x8OffsetAVX512}, {4, wideTile16x4OffsetAVX512}, {2, wideTile16x2OffsetAVX512}, {1, wideTile16x1OffsetAVX512}},
	},
}

func wideTileAVX512(t *intTile) {
	const xSize = int(unsafe.Sizeof(actGroup{}))
	tiles := &wideTiles512[t.format.short()][t.format.sign()]
	for r, k := 0, 0; r < t.nx; {
		for tiles[k].nx > t.nx-r {
			k++
		}
		out, stride := t.target(r)
		tiles[k].f(bytePtr(&t.x[r*t.xStride]), t.xStride*xSize, bytePtr(&t.w[0]), t.n, &t.sums[r*t.width][0], t.mode(), out, stride, t.ahead.at(), t.ahead.step())
		t.ahead.move(t.n * groupValues / t.format.run)
		t.settle(r, tiles[k].nx)
		r += tiles[k].nx
	}
}

var batchOps512 = batchOps{twice: twiceAVX512, totals: batchTotalsAVX512, add: map[quant.Type]batchFunc{
	quant.Q4_0: batchQ4_0AVX512,
	quant.Q4_1: batchQ4_1AVX512,
	quant.Q8_0: batchQ8_0AVX512,
	quant.Q4_K: batchQ4KAVX512,
	quant.Q5_K: batchQ5KAVX512,
}}
