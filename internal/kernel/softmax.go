package kernel

import "math"

// ArgMax returns the index of the largest value, the lowest on ties; −1 for an empty x. NaN never
// wins, unless all are NaN: then it is 0.
func ArgMax(x []float32) int {
	best := -1
	for i, v := range x {
		if v != v {
			continue
		}
		if best < 0 || v > x[best] {
			best = i
		}
	}
	if best < 0 && len(x) > 0 {
		return 0
	}
	return best
}

// LogSumExp returns ln Σ e^x in float64. It is for metrics such as perplexity, never for a value:
// its last bits may differ between machines.
func LogSumExp(x []float32) float64 {
	if len(x) == 0 {
		return math.Inf(-1)
	}
	m := float64(x[ArgMax(x)])
	if math.IsInf(m, 0) {
		return m
	}
	var sum float64
	for _, v := range x {
		sum += math.Exp(float64(v) - m)
	}
	return m + math.Log(sum)
}
