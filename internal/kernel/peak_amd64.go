package kernel

// Twelve instructions a turn, two operations for each product.
var (
	avx2Peak   = peakOps{peakLoop{peakFloatAVX2, 12 * 8 * 2}, peakLoop{peakIntAVX2, 12 * 16 * 2}}
	avx512Peak = peakOps{peakLoop{peakFloatAVX512, 12 * 16 * 2}, peakLoop{peakIntAVX512, 12 * 32 * 2}}
)
