package kernel

// avx512Vector runs 16 values at a time where that pays: attention and what needs exp. The other loops
// are bound by loads and stores, or by eight running sums.
var avx512Vector = func() vectorOps {
	v := avx2Vector
	v.siluMul = siluMulAVX512Wide
	v.widen, v.attnScores, v.attnValues = avx512Cache.widen, avx512Cache.scores, avx512Cache.values
	v.attnSoftmax = attnSoftmaxAVX512Wide
	return v
}()

func siluMulAVX512Wide(dst, gate, up []float32) {
	at := strips(len(gate), 16, func(lo, hi int) { siluMulAVX512(&dst[lo], &gate[lo], &up[lo], hi-lo) })
	siluMulGo(dst[at:], gate[at:], up[at:])
}

func attnSoftmaxAVX512Wide(scores []float32, lo, hi []int32, m, l []float32, n int, scale float32) {
	_, _, _, _, _ = scores[n*attnTile-1], lo[n-1], hi[n-1], m[n-1], l[n-1]
	attnSoftmaxAVX512(&scores[0], &lo[0], &hi[0], &m[0], &l[0], n, scale)
}

var avx512Cache = &cacheSet{vector: 16, loops: [cacheTypes + 1]cacheLoops{
	CacheF32: {widenF32AVX512, attnScores4F32AVX512, attnScores1F32AVX512, attnValues4x64F32AVX512, attnValues4x16F32AVX512,
		attnValues1x64F32AVX512, attnValues1x16F32AVX512},
	CacheF16: {widenF16AVX512, attnScores4F16AVX512, attnScores1F16AVX512, attnValues4x64F16AVX512, attnValues4x16F16AVX512,
		attnValues1x64F16AVX512, attnValues1x16F16AVX512},
	CacheBF16: {widenBF16AVX512, attnScores4BF16AVX512, attnScores1BF16AVX512, attnValues4x64BF16AVX512, attnValues4x16BF16AVX512,
		attnValues1x64BF16AVX512, attnValues1x16BF16AVX512},
	CacheFP8: {widenFP8AVX512, attnScores4FP8AVX512, attnScores1FP8AVX512, attnValues4x64FP8AVX512, attnValues4x16FP8AVX512,
		attnValues1x64FP8AVX512, attnValues1x16FP8AVX512},
	CacheQ8: {widenQ8AVX512, attnScores4Q8AVX512, attnScores1Q8AVX512, attnValues4x64Q8AVX512, attnValues4x16Q8AVX512,
		attnValues1x64Q8AVX512, attnValues1x16Q8AVX512},
	cacheTile: {nil, attnScores4TileAVX512, attnScores1TileAVX512, attnValues4x64TileAVX512, attnValues4x16TileAVX512, attnValues1x64TileAVX512, attnValues1x16TileAVX512},
}}
