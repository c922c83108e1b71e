package kernel

// Rotary position embeddings (Su et al., 2021, "RoFormer"), as docs/numerics.md defines them.

// RopeAngles fills cos and sin for one position: angle i is float32(position)·invFreq[i], rounded to
// float32; its cosine and sine are rounded once, then multiplied by factor (YaRN's attention factor;
// 1 otherwise). The three slices have the same length.
func RopeAngles(cos, sin []float32, position int, invFreq []float32, factor float32) {
	p := float32(position)
	for i, f := range invFreq {
		s, c := sinCos(float64(float32(p * f)))
		cos[i], sin[i] = float32(c)*factor, float32(s)*factor
	}
}

// Rope rotates one head in place. len(cos) pairs are rotated, the first 2·len(cos) values of x; the
// rest stays (partial rotary). Pair i is (x[i], x[i+len(cos)]) by halves (NeoX, Hugging Face), or
// (x[2i], x[2i+1]) if interleaved.
func Rope(x []float32, cos, sin []float32, interleaved bool) {
	n := len(cos)
	sin = sin[:n]
	if interleaved {
		active.vector.ropePairs(x[:2*n], cos, sin)
		return
	}
	active.vector.ropeHalves(x[:n], x[n:2*n], cos, sin)
}

func ropeHalvesGo(lo, hi, cos, sin []float32) {
	for i, c := range cos {
		s := sin[i]
		a, b := lo[i], hi[i]
		lo[i] = float32(a*c) - float32(b*s)
		hi[i] = float32(b*c) + float32(a*s)
	}
}

func ropePairsGo(x, cos, sin []float32) {
	for i, c := range cos {
		s := sin[i]
		a, b := x[2*i], x[2*i+1]
		x[2*i] = float32(a*c) - float32(b*s)
		x[2*i+1] = float32(b*c) + float32(a*s)
	}
}
