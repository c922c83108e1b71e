package kernel

// Twelve instructions a turn, each of four products.
var neonPeak = peakOps{peakLoop{peakFloatNEON, 12 * 4 * 2}, peakLoop{peakIntNEON, 12 * 4 * 2}}
