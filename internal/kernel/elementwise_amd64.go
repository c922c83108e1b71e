package kernel

// avx2Vector runs the generated loops over whole vectors; what is left over takes the Go loops, which
// give the same bits.
var avx2Vector = vectorOps{
	sumSquares: sumSquaresWide, scaleWeight: scaleWeightWide, siluMul: siluMulWide, add: addWide,
	scale: scaleWide, ropeHalves: ropeHalvesWide, ropePairs: ropePairsWide, toF16: toF16Wide,
	divide: divideWide, store: storeWide, widen: avx2Cache.widen, attnScores: avx2Cache.scores, attnSoftmax: attnSoftmaxWide,
	attnFactors: attnFactorsWide, attnValues: avx2Cache.values, attnFold: attnFoldWide, prefetch: prefetchWide, attnDirect: 8,
}

func sumSquaresWide(x []float32) float32 {
	var s [8]float32
	whole := len(x) &^ 7
	if whole > 0 {
		sumSquaresAVX2(&s, &x[0], whole)
	}
	for i, v := range x[whole:] {
		s[i] = fma32(v, v, s[i])
	}
	return total(&s)
}

func scaleWeightWide(dst, x, weight []float32, f float32) {
	at := strips(len(x), 8, func(lo, hi int) { scaleWeightAVX2(&dst[lo], &x[lo], &weight[lo], hi-lo, f) })
	scaleWeightGo(dst[at:], x[at:], weight[at:], f)
}

func siluMulWide(dst, gate, up []float32) {
	at := strips(len(gate), 8, func(lo, hi int) { siluMulAVX2(&dst[lo], &gate[lo], &up[lo], hi-lo) })
	siluMulGo(dst[at:], gate[at:], up[at:])
}

func addWide(dst, x []float32) {
	at := strips(len(x), 8, func(lo, hi int) { addAVX2(&dst[lo], &x[lo], hi-lo) })
	addGo(dst[at:], x[at:])
}

func scaleWide(x []float32, f float32) {
	at := strips(len(x), 8, func(lo, hi int) { scaleAVX2(&x[lo], hi-lo, f) })
	scaleGo(x[at:], f)
}

func divideWide(dst, x []float32, d float32) {
	at := strips(len(x), 8, func(lo, hi int) { divideAVX2(&dst[lo], &x[lo], hi-lo, d) })
	divideGo(dst[at:], x[at:], d)
}

func ropeHalvesWide(lo, hi, cos, sin []float32) {
	at := strips(len(cos), 8, func(a, b int) { ropeHalvesAVX2(&lo[a], &hi[a], &cos[a], &sin[a], b-a) })
	ropeHalvesGo(lo[at:], hi[at:], cos[at:], sin[at:])
}

func ropePairsWide(x, cos, sin []float32) {
	at := strips(len(cos), 4, func(a, b int) { ropePairsAVX2(&x[2*a], &cos[a], &sin[a], b-a) })
	ropePairsGo(x[2*at:], cos[at:], sin[at:])
}

func toF16Wide(dst []uint16, src []float32) bool {
	finite := true
	at := strips(len(src), 8, func(lo, hi int) {
		var bad [8]uint16
		toF16AVX2(&dst[lo], &src[lo], hi-lo, &bad)
		finite = finite && bad == [8]uint16{}
	})
	return toF16Go(dst[at:], src[at:]) && finite
}

func attnSoftmaxWide(scores []float32, lo, hi []int32, m, l []float32, n int, scale float32) {
	_, _, _, _, _ = scores[n*attnTile-1], lo[n-1], hi[n-1], m[n-1], l[n-1]
	attnSoftmaxAVX2(&scores[0], &lo[0], &hi[0], &m[0], &l[0], n, scale)
}

func attnFactorsWide(m, l, mt, lt, alpha, beta []float32, n int) {
	n = roundUp8(n) // the arrays are that long; what lies behind n is never read
	_, _, _, _, _, _ = m[n-1], l[n-1], mt[n-1], lt[n-1], alpha[n-1], beta[n-1]
	attnFactorsAVX2(&m[0], &l[0], &mt[0], &lt[0], &alpha[0], &beta[0], n)
}

func attnFoldWide(o, add []float32, alpha, beta float32) {
	n := len(add)
	if alpha == -1 || n == 0 || n%8 != 0 {
		attnFoldGo(o, add, alpha, beta)
		return
	}
	_ = o[n-1]
	attnFoldAVX2(&o[0], &add[0], n, alpha, beta)
}

func prefetchWide(b []byte) {
	if len(b) > 0 {
		prefetchAVX2(&b[0], len(b))
	}
}

// storeWide rounds to the cache's smaller types; what is left over takes the Go loops.
func storeWide(t CacheType, dst []byte, src []float32) bool {
	unit := max(8, t.BlockValues())
	finite := true
	at := strips(len(src), unit, func(lo, hi int) {
		var bad [8]uint32
		row := dst[t.RowBytes(lo):t.RowBytes(hi)]
		switch t {
		case CacheBF16:
			storeBF16AVX2(&row[0], &src[lo], hi-lo, &bad)
		case CacheFP8:
			storeFP8AVX2(&row[0], &src[lo], hi-lo, &bad)
		default:
			storeQ8AVX2(&row[0], &src[lo], (hi-lo)/q8Values, &bad)
		}
		finite = finite && bad == [8]uint32{}
	})
	return storeGo(t, dst[t.RowBytes(at):], src[at:]) && finite
}
