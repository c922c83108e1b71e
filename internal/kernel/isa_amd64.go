package kernel

import "github.com/klauspost/cpuid/v2"

// nativeOps returns what this processor adds to the pure Go loops.
func nativeOps() []*isaOps {
	if !cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.F16C) {
		return nil
	}
	return []*isaOps{{name: "avx2", matmul: avx2Matmul, vector: avx2Vector}}
}
