package kernel

import "math"

// canonicalNaN is how taps and logits write every NaN.
const canonicalNaN = 0x7fc00000

// SiLUMul writes silu(gate)·up to dst, with silu(x) = x / (1 + exp(−x)). The three have the same
// length; dst may be gate or up.
func SiLUMul(dst, gate, up []float32) {
	active.vector.siluMul(dst[:len(gate)], gate, up[:len(gate)])
}

func siluMulGo(dst, gate, up []float32) {
	for i, x := range gate {
		dst[i] = float32(x/(1+Exp(-x))) * up[i]
	}
}

// Add adds x to dst, element by element.
func Add(dst, x []float32) { active.vector.add(dst, x[:len(dst)]) }

func addGo(dst, x []float32) {
	for i, v := range x {
		dst[i] += v
	}
}

// Scale multiplies every element by f.
func Scale(x []float32, f float32) { active.vector.scale(x, f) }

func scaleGo(x []float32, f float32) {
	for i := range x {
		x[i] *= f
	}
}

// Canonicalize gives every NaN of x the bits 0x7fc00000; x86 and ARM make NaNs of different sign.
func Canonicalize(x []float32) {
	for i, v := range x {
		if v != v {
			x[i] = math.Float32frombits(canonicalNaN)
		}
	}
}
