package quant

import "math"

// F16ToF32 widens an IEEE 754 half, exactly; NaN stays NaN with its payload.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	mag := uint32(h & 0x7fff)
	switch {
	case mag >= 0x7c00: // Inf, NaN
		return math.Float32frombits(sign | 0x7f800000 | mag<<13)
	case mag >= 0x0400:
		return math.Float32frombits(sign | (mag<<13 + 112<<23))
	default: // subnormal: mag·2^-24, exact in f32
		return math.Float32frombits(sign | math.Float32bits(float32(mag)*0x1p-24))
	}
}

// F32ToF16 rounds to the nearest half, ties to even. What is too large becomes Inf; NaN stays NaN.
func F32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	mag := b & 0x7fffffff
	switch {
	case mag > 0x7f800000:
		return sign | 0x7e00 | uint16(mag>>13)&0x3ff
	case mag >= 0x477ff000: // half way between 65504 and 65536, or more
		return sign | 0x7c00
	case mag >= 0x38800000: // normal as a half
		return sign | uint16((mag+0xfff+mag>>13&1)>>13-112<<10)
	default: // the last bit of 0.5 + mag is worth 2^-24, as a subnormal half's
		return sign | uint16(math.Float32bits(math.Float32frombits(mag)+0.5)-0x3f000000)
	}
}

// BF16ToF32 widens a bfloat16, exactly.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 rounds to the nearest bfloat16, ties to even; NaN stays NaN.
func F32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
