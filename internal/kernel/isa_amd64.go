package kernel

import "github.com/klauspost/cpuid/v2"

// nativeOps returns what this processor adds to the pure Go loops.
func nativeOps() []*isaOps {
	if !cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.F16C) {
		return nil
	}
	ops := []*isaOps{{name: "avx2", matmul: avx2Matmul, vector: avx2Vector, peak: avx2Peak}}
	if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL, cpuid.AVX512VNNI, cpuid.BMI2) {
		ops = append(ops, &isaOps{name: "avx512", matmul: avx512Matmul, vector: avx512Vector, peak: avx512Peak})
	}
	return ops
}
