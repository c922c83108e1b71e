package kernel

import (
	"unsafe"

	"github.com/spillway/spillway/internal/quant"
)

var avx2Matmul = matmulOps{
	base:      &groupMatmul,
	quantize:  quantizeRowAVX2,
	floatTile: floatTileAVX2,
	intTile:   intTileAVX2,
	width:     4,
	decode: map[quant.Type]func(dst []float32, src []byte){
		quant.F32:  copyF32,
		quant.F16:  decodeAVX2(quant.F16, decodeRowF16AVX2),
		quant.BF16: decodeAVX2(quant.BF16, decodeRowBF16AVX2),
	},
	floatRows: map[quant.Type]func(j *product, s workspace, lo, hi int){
		quant.F32:  floatRowsAVX2(floatRowsF32AVX2),
		quant.F16:  floatRowsAVX2(floatRowsF16AVX2),
		quant.BF16: floatRowsAVX2(floatRowsBF16AVX2),
	},
	unpack: map[quant.Type]func(dst []panelGroup, src []byte, s workspace){
		quant.Q4_0:  unpackAVX2(quant.Q4_0, unpackQ4_0AVX2),
		quant.Q4_1:  unpackAVX2(quant.Q4_1, unpackQ4_1AVX2),
		quant.Q5_0:  unpackAVX2(quant.Q5_0, unpackQ5_0AVX2),
		quant.Q5_1:  unpackAVX2(quant.Q5_1, unpackQ5_1AVX2),
		quant.Q8_0:  unpackAVX2(quant.Q8_0, unpackQ8_0AVX2),
		quant.IQ4NL: unpackAVX2(quant.IQ4NL, unpackIQ4NLAVX2),
		quant.Q2_K:  unpackAVX2(quant.Q2_K, unpackQ2KAVX2),
		quant.Q3_K:  unpackAVX2(quant.Q3_K, unpackQ3KAVX2),
		quant.Q4_K:  unpackAVX2(quant.Q4_K, unpackQ4KAVX2),
		quant.Q5_K:  unpackAVX2(quant.Q5_K, unpackQ5KAVX2),
		quant.Q6_K:  unpackAVX2(quant.Q6_K, unpackQ6KAVX2),

		quant.IQ1S:   pointUnpack(quant.IQ1S, pointsIQ1, unpackIQ1SAVX2),
		quant.IQ1M:   pointUnpack(quant.IQ1M, pointsIQ1, unpackIQ1MAVX2),
		quant.IQ2XXS: pointUnpack(quant.IQ2XXS, pointsIQ2XXS, unpackIQ2XXSAVX2),
		quant.IQ2XS:  pointUnpack(quant.IQ2XS, pointsIQ2XS, unpackIQ2XSAVX2),
		quant.IQ2S:   pointUnpack(quant.IQ2S, pointsIQ2S, unpackIQ2SAVX2),
		quant.IQ3XXS: pointUnpack(quant.IQ3XXS, pointsIQ3XXS, unpackIQ3XXSAVX2),
		quant.IQ3S:   pointUnpack(quant.IQ3S, pointsIQ3S, unpackIQ3SAVX2),
		quant.IQ4XS:  pointUnpack(quant.IQ4XS, noPoints, unpackIQ4XSAVX2),
		quant.TQ1_0:  pointUnpack(quant.TQ1_0, noPoints, unpackTQ1_0AVX2),
		quant.TQ2_0:  pointUnpack(quant.TQ2_0, noPoints, unpackTQ2_0AVX2),
		quant.Q1_0:   pointUnpack(quant.Q1_0, noPoints, unpackQ1_0AVX2),
		quant.Q2_0:   pointUnpack(quant.Q2_0, noPoints, unpackQ2_0AVX2),
		quant.MXFP4:  pointUnpack(quant.MXFP4, noPoints, unpackMXFP4AVX2),
		quant.NVFP4:  pointUnpack(quant.NVFP4, noPoints, unpackNVFP4AVX2),
	},
	intRows: map[quant.Type]func(j *product, s workspace, lo, hi int){
		quant.Q4_0:  intRowsAVX2(intRowsQ4_0AVX2),
		quant.Q4_1:  intRowsAVX2(intRowsQ4_1AVX2),
		quant.Q5_0:  intRowsAVX2(intRowsQ5_0AVX2),
		quant.Q5_1:  intRowsAVX2(intRowsQ5_1AVX2),
		quant.Q8_0:  intRowsAVX2(intRowsQ8_0AVX2),
		quant.IQ4NL: intRowsAVX2(intRowsIQ4NLAVX2),
		quant.Q2_K:  intRowsAVX2(intRowsQ2KAVX2),
		quant.Q3_K:  intRowsAVX2(intRowsQ3KAVX2),
		quant.Q4_K:  intRowsAVX2(intRowsQ4KAVX2),
		quant.Q5_K:  intRowsAVX2(intRowsQ5KAVX2),
		quant.Q6_K:  intRowsAVX2(intRowsQ6KAVX2),

		quant.IQ1S:   pointRows(pointsIQ1, intRowsIQ1SAVX2),
		quant.IQ1M:   pointRows(pointsIQ1, intRowsIQ1MAVX2),
		quant.IQ2XXS: pointRows(pointsIQ2XXS, intRowsIQ2XXSAVX2),
		quant.IQ2XS:  pointRows(pointsIQ2XS, intRowsIQ2XSAVX2),
		quant.IQ2S:   pointRows(pointsIQ2S, intRowsIQ2SAVX2),
		quant.IQ3XXS: pointRows(pointsIQ3XXS, intRowsIQ3XXSAVX2),
		quant.IQ3S:   pointRows(pointsIQ3S, intRowsIQ3SAVX2),
		quant.IQ4XS:  pointRows(noPoints, intRowsIQ4XSAVX2),
		quant.TQ1_0:  pointRows(noPoints, intRowsTQ1_0AVX2),
		quant.TQ2_0:  pointRows(noPoints, intRowsTQ2_0AVX2),
		quant.Q1_0:   pointRows(noPoints, intRowsQ1_0AVX2),
		quant.Q2_0:   pointRows(noPoints, intRowsQ2_0AVX2),
		quant.MXFP4:  pointRows(noPoints, intRowsMXFP4AVX2),
		quant.NVFP4:  pointRows(noPoints, intRowsNVFP4AVX2),
	},
}

func quantizeRowAVX2(groups []actGroup, words []int16, x []float32) {
	var w *byte
	if words != nil {
		w = bytePtr(&words[0])
	}
	_ = x[:len(groups)*groupValues]
	quantizeAVX2(bytePtr(&groups[0]), w, &x[0], len(groups))
}

// decodeAVX2 decodes whole eighths by f, the rest as the reference does.
func decodeAVX2(t quant.Type, f func(dst *float32, src *byte, k8 int)) func(dst []float32, src []byte) {
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

// copyF32 relies on amd64 being little endian.
func copyF32(dst []float32, src []byte) {
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), 4*len(dst)), src)
}

const floatRowsAtOnce = 8

// floatRowsAVX2 takes 8 rows at a time; where fewer are left, the last one stands in for the rest.
func floatRowsAVX2(f func(rows **byte, next *byte, x *float32, k8 int, tails *float32, out *float32)) func(*product, workspace, int, int) {
	return func(j *product, s workspace, lo, hi int) {
		n := j.w.Cols &^ 7
		var tails *float32
		if n < j.w.Cols {
			tails = (*float32)(unsafe.Pointer(&s.tail()[0]))
		}
		var rows [floatRowsAtOnce]*byte
		var out [floatRowsAtOnce]float32
		for i := lo; i < hi; i += len(rows) {
			for k := range rows {
				row := j.row(min(i+k, hi-1))
				rows[k] = &row[0]
				if tails != nil {
					floatTail(j.w.Type, unsafe.Slice(tails, 8*len(rows))[8*k:8*k+8], row, n, j.w.Cols)
				}
			}
			next := j.row(min(i+len(rows), hi-1))
			f(&rows[0], &next[0], &j.a.F32[0], n/8, tails, &out[0])
			copy(j.out[i:hi], out[:])
		}
	}
}

// floatTail decodes values from to to of a row and pads them with zeros.
func floatTail(t quant.Type, dst []float32, row []byte, from, to int) {
	clear(dst)
	mustDecode(t, dst[:to-from], row[from*t.BlockBytes():])
}

// tileMode tells a tile's loop what to do with the running sums: bit 0 continues them, bit 1 leaves
// them for the next columns.
func (t *tile) mode() (m int) {
	if !t.first {
		m |= 1
	}
	if !t.last {
		m |= 2
	}
	return m
}

// target returns where a whole tile of outputs from row r on goes, and its stride in bytes.
func (t *tile) target(r int) (out *float32, stride int) {
	if t.nw == t.width {
		return &t.out[r*t.outStride], 4 * t.outStride
	}
	return &t.spare[0], 4 * t.width
}

// settle copies the outputs that are meant of n rows from r on, where they are fewer than a whole tile.
func (t *tile) settle(r, n int) {
	if t.nw == t.width || !t.last {
		return
	}
	for i := range n {
		copy(t.out[(r+i)*t.outStride:][:t.nw], t.spare[t.width*i:])
	}
}

// after returns the row of activations to fetch while the n from r on are multiplied.
func (t *tile) after(r, n int) int {
	if r+n < t.nx {
		return r + n
	}
	return r
}

type tileFunc[X, W any] func(x *X, xStride int, w *W, wStride int, n int, next *X, sums *float32, mode int, out *float32, outStride int)

var floatTiles = [...]tileFunc[float32, float32]{floatTile1AVX2, floatTile2AVX2, floatTile3AVX2}

func floatTileAVX2(t *floatTile) {
	for r := 0; r < t.nx; r += len(floatTiles) {
		n := min(len(floatTiles), t.nx-r)
		out, stride := t.target(r)
		floatTiles[n-1](&t.x[r*t.xStride], 4*t.xStride, &t.w[0], 4*t.wStride, t.k/8, &t.x[t.after(r, n)*t.xStride],
			&t.sums[r*t.width][0], t.mode(), out, stride)
		t.settle(r, n)
	}
}

type intRowsFunc func(w *byte, rowBytes int, rows int, groups int, mask *uint32, tail *byte, words *byte, acts *byte, out *float32)

// intRowsAVX2 multiplies rows lo to hi as they are stored; for a second row of activations they are
// still in the second-level cache.
func intRowsAVX2(f intRowsFunc) func(*product, workspace, int, int) {
	return func(j *product, s workspace, lo, hi int) {
		for r := range j.a.Rows {
			if j.w.Cols%groupValues == 0 {
				j.callRows(f, r, lo, hi-lo, nil, nil)
			} else {
				j.tailRows(f, s, r, lo, hi)
			}
		}
	}
}

// callRows multiplies n rows of weights from i on with row r of activations.
func (j *product) callRows(f intRowsFunc, r, i, n int, mask *uint32, tail *byte) {
	f(&j.row(i)[0], j.rowBytes, n, j.w.Cols/groupValues, mask, tail,
		bytePtr(&j.a.wordRow(r)[0]), bytePtr(&j.a.row(r)[0]), &j.out[r*j.outStride+i])
}

// tailRows takes rows whose last group is not whole. It lets f read a little of the next row; for the
// last rows in memory, that part is copied.
func (j *product) tailRows(f intRowsFunc, s workspace, r, lo, hi int) {
	mask, whole, group := tailMask(j.w.Cols), j.w.Cols/groupValues, intFormats[j.w.Type].bytes
	safe := (len(j.w.Data)-(whole+1)*group+j.rowBytes)/j.rowBytes - lo
	if safe = min(safe, hi-lo); safe > 0 {
		j.callRows(f, r, lo, safe, &mask[0], nil)
		lo += safe
	}
	for ; lo < hi; lo++ {
		tail := s.tail()[:group]
		padTail(tail, j.row(lo)[whole*group:])
		j.callRows(f, r, lo, 1, &mask[0], &tail[0])
	}
}

// tailMask returns ones for the blocks of 32 that a row's last group has.
func tailMask(cols int) (mask [8]uint32) {
	for i := range cols % groupValues / 32 {
		mask[i] = 1<<32 - 1
	}
	return mask
}

// unpackAVX2 unpacks whole groups by f, and a last one from a padded copy.
func unpackAVX2(t quant.Type, f func(dst *byte, src *byte, n int)) func(dst []panelGroup, src []byte, s workspace) {
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

type intTileFunc = tileFunc[byte, byte]

// intTiles are indexed by runs of 16, offsets, and rows of activations less one.
var intTiles = [2][2][2]intTileFunc{
	{{intTile32x1AVX2, intTile32x2AVX2}, {intTile32x1OffsetAVX2, intTile32x2OffsetAVX2}},
	{{intTile16x1AVX2, intTile16x2AVX2}, {intTile16x1OffsetAVX2, intTile16x2OffsetAVX2}},
}

func (f *intFormat) tilesAVX2() *[2]intTileFunc { return &intTiles[f.short()][f.sign()] }

// short and sign are indices of tables of tiles: 1 for runs of 16, and 1 for those with offsets.
func (f *intFormat) sign() int {
	if f.offset {
		return 1
	}
	return 0
}

func intTileAVX2(t *intTile) {
	const xSize, wSize = int(unsafe.Sizeof(actGroup{})), int(unsafe.Sizeof(panelGroup{}))
	tiles := t.format.tilesAVX2()
	for r := 0; r < t.nx; r += len(tiles) {
		n := min(len(tiles), t.nx-r)
		out, stride := t.target(r)
		tiles[n-1](bytePtr(&t.x[r*t.xStride]), t.xStride*xSize, bytePtr(&t.w[0]), t.wStride*wSize, t.n,
			bytePtr(&t.x[t.after(r, n)*t.xStride]), &t.sums[r*t.width][0], t.mode(), out, stride)
		t.settle(r, n)
	}
}
