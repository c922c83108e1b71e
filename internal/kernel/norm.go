package kernel

import "math"

// RMSNorm writes x / sqrt(mean(x²) + eps) · weight to dst; the three have the same length. dst may be
// x; a nil weight counts as ones (Zhang and Sennrich, 2019, "Root Mean Square Layer Normalization").
// The order is that of docs/numerics.md: a factor 1/sqrt, then times x, then times weight.
func RMSNorm(dst, x, weight []float32, eps float32) {
	f := rmsFactor(active.vector.sumSquares(x), len(x), eps)
	dst = dst[:len(x)]
	if weight == nil {
		for i, v := range x {
			dst[i] = v * f
		}
		return
	}
	active.vector.scaleWeight(dst, x, weight[:len(x)], f)
}

// Normalize divides x by its length √Σx², in the order of docs/numerics.md; a vector of length 0 stays.
func Normalize(x []float32) {
	if length := float32(math.Sqrt(float64(active.vector.sumSquares(x)))); length != 0 {
		active.vector.divide(x, x, length)
	}
}

// rmsFactor is 1 / sqrt(sum/n + eps), every step rounded to float32.
func rmsFactor(sum float32, n int, eps float32) float32 {
	mean := sum / float32(n)
	return 1 / float32(math.Sqrt(float64(mean+eps)))
}

// sumSquaresGo is Σx² in eight running sums.
func sumSquaresGo(x []float32) float32 {
	var s [8]float32
	for i, v := range x {
		s[i&7] = fma32(v, v, s[i&7])
	}
	return total(&s)
}

// scaleWeightGo writes x·f·weight.
func scaleWeightGo(dst, x, weight []float32, f float32) {
	for i, v := range x {
		dst[i] = float32(v*f) * weight[i]
	}
}
