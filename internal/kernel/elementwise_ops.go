package kernel

// vectorOps are the hot loops outside the matrix products. Slices are as the Go versions take them.
type vectorOps struct {
	sumSquares  func(x []float32) float32
	scaleWeight func(dst, x, weight []float32, f float32)
	siluMul     func(dst, gate, up []float32)
	add         func(dst, x []float32)
	scale       func(x []float32, f float32)
	ropeHalves  func(lo, hi, cos, sin []float32)
	ropePairs   func(x, cos, sin []float32)
	toF16       func(dst []uint16, src []float32) bool
	divide      func(dst, x []float32, d float32)
	store       func(t CacheType, dst []byte, src []float32) bool
	widen       func(t CacheType, dst []float32, src []byte, rows, n, stride int)
	attnScores  func(dst, q []float32, k *attnRows, lo, hi, n, dim int)
	attnSoftmax func(scores []float32, lo, hi []int32, m, l []float32, n int, scale float32)
	attnFactors func(m, l, mt, lt, alpha, beta []float32, n int)
	attnValues  func(o, p []float32, v *attnRows, lo, hi []int32, alpha, beta []float32, n, stride, width int)
	attnFold    func(o, add []float32, alpha, beta float32)
	prefetch    func(b []byte) // a hint that b is read soon
	// attnDirect is the most lines for which attnScores and attnValues take rows of the cache; for more of
	// them, and in pure Go, rows are widened to f32 first.
	attnDirect int
}

var goVector = vectorOps{
	sumSquares: sumSquaresGo, scaleWeight: scaleWeightGo, siluMul: siluMulGo, add: addGo, scale: scaleGo,
	ropeHalves: ropeHalvesGo, ropePairs: ropePairsGo, toF16: toF16Go, divide: divideGo, store: storeGo, widen: widenGo,
	attnScores: attnScoresGo, attnSoftmax: attnSoftmaxGo, attnFactors: attnFactorsGo,
	attnValues: attnValuesGo, attnFold: attnFoldGo, prefetch: func([]byte) {},
}
