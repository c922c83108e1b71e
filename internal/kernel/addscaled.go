package kernel

// AddScaled adds scale·x to y: y[i] = fma32(scale, x[i], y[i]) (docs/numerics.md, "LoRA").
func AddScaled(y []float32, scale float32, x []float32) {
	for i, v := range x[:len(y)] {
		y[i] = fma32(scale, v, y[i])
	}
}
