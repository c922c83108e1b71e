package kernel

// neonVector runs the generated loops over whole vectors; what is left over takes the Go loops, which give
// the same bits. Attention widens rows of the cache to f32 first.
var neonVector = vectorOps{
	sumSquares: sumSquaresVec, scaleWeight: scaleWeightVec, siluMul: siluMulVec, add: addVec,
	scale: scaleVec, ropeHalves: ropeHalvesVec, ropePairs: ropePairsVec, toF16: toF16Vec,
	divide: divideVec, store: storeGo, widen: widenVec, attnScores: attnScoresVec, attnSoftmax: attnSoftmaxVec,
	attnFactors: attnFactorsVec, attnValues: attnValuesVec, attnFold: attnFoldVec, prefetch: prefetchVec,
}

func sumSquaresVec(x []float32) float32 {
	var s [8]float32
	whole := len(x) &^ 7
	if whole > 0 {
		sumSquaresNEON(&s, &x[0], whole)
	}
	for i, v := range x[whole:] {
		s[i] = fma32(v, v, s[i])
	}
	return total(&s)
}

func scaleWeightVec(dst, x, weight []float32, f float32) {
	at := strips(len(x), 8, func(lo, hi int) { scaleWeightNEON(&dst[lo], &x[lo], &weight[lo], hi-lo, f) })
	scaleWeightGo(dst[at:], x[at:], weight[at:], f)
}

func siluMulVec(dst, gate, up []float32) {
	at := strips(len(gate), 8, func(lo, hi int) { siluMulNEON(&dst[lo], &gate[lo], &up[lo], hi-lo) })
	siluMulGo(dst[at:], gate[at:], up[at:])
}

func addVec(dst, x []float32) {
	at := strips(len(x), 8, func(lo, hi int) { addNEON(&dst[lo], &x[lo], hi-lo) })
	addGo(dst[at:], x[at:])
}

func scaleVec(x []float32, f float32) {
	at := strips(len(x), 8, func(lo, hi int) { scaleNEON(&x[lo], hi-lo, f) })
	scaleGo(x[at:], f)
}

func divideVec(dst, x []float32, d float32) {
	at := strips(len(x), 8, func(lo, hi int) { divideNEON(&dst[lo], &x[lo], hi-lo, d) })
	divideGo(dst[at:], x[at:], d)
}

func ropeHalvesVec(lo, hi, cos, sin []float32) {
	at := strips(len(cos), 4, func(a, b int) { ropeHalvesNEON(&lo[a], &hi[a], &cos[a], &sin[a], b-a) })
	ropeHalvesGo(lo[at:], hi[at:], cos[at:], sin[at:])
}

func ropePairsVec(x, cos, sin []float32) {
	at := strips(len(cos), 4, func(a, b int) { ropePairsNEON(&x[2*a], &cos[a], &sin[a], b-a) })
	ropePairsGo(x[2*at:], cos[at:], sin[at:])
}

func toF16Vec(dst []uint16, src []float32) bool {
	finite := true
	at := strips(len(src), 8, func(lo, hi int) {
		var bad [8]uint16
		toF16NEON(&dst[lo], &src[lo], hi-lo, &bad)
		finite = finite && bad == [8]uint16{}
	})
	return toF16Go(dst[at:], src[at:]) && finite
}

func prefetchVec(b []byte) {
	if len(b) > 0 {
		prefetchNEON(&b[0], len(b))
	}
}
