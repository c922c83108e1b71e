package kernel

func docSets() []docSet {
	return []docSet{{name: "AVX2", ops: &avx2Matmul}, {name: "AVX-512", ops: &avx512Matmul, base: &avx2Matmul, baseName: "AVX2"}}
}
