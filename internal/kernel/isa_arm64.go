package kernel

// nativeOps returns NEON, which every arm64 processor has.
func nativeOps() []*isaOps {
	return []*isaOps{{name: "neon", matmul: neonMatmul, vector: neonVector, peak: neonPeak}}
}
