package machine

import (
	"runtime"

	"github.com/klauspost/cpuid/v2"
)

// CPU is what the processor can do, as far as kernels choose by it.
type CPU struct {
	Name    string
	Threads int // that we may run on

	AVX2, FMA, F16C bool // amd64
	AVX512          bool // F, BW, VL and DQ
	VNNI, BF16      bool // of AVX-512
	NEON, DotProd   bool // arm64
}

// ReadCPU looks at the processor.
func ReadCPU() CPU {
	has := cpuid.CPU.Supports
	return CPU{
		Name:    cpuid.CPU.BrandName,
		Threads: runtime.NumCPU(),
		AVX2:    has(cpuid.AVX2),
		FMA:     has(cpuid.FMA3),
		F16C:    has(cpuid.F16C),
		AVX512:  has(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512VL, cpuid.AVX512DQ),
		VNNI:    has(cpuid.AVX512VNNI),
		BF16:    has(cpuid.AVX512BF16),
		NEON:    has(cpuid.ASIMD),
		DotProd: has(cpuid.ASIMDDP),
	}
}
