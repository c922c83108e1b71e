package kernel

import "math"

// ToF16 rounds src to IEEE binary16, half to even, as VCVTPS2PH does. finite is false if any result
// is infinite or NaN, be it by overflow or because the value was so.
func ToF16(dst []uint16, src []float32) (finite bool) {
	return active.vector.toF16(dst[:len(src)], src)
}

func toF16Go(dst []uint16, src []float32) bool {
	finite := true
	for i, v := range src {
		h := f16Bits(v)
		dst[i] = h
		finite = finite && h&0x7c00 != 0x7c00
	}
	return finite
}

// f16Bits rounds v to binary16. A NaN keeps its sign and upper payload and becomes quiet.
func f16Bits(v float32) uint16 {
	b := math.Float32bits(v)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00 | uint16(b>>13&0x3ff)
	case b >= 0x47800000: // 65536 and above; what lies between 65520 and 65536 rounds below
		return sign | 0x7c00
	case b >= 0x38800000: // normal results: half of the lowest kept bit, less one unless odd
		return sign | uint16((b-0x38000000+0xfff+(b>>13&1))>>13)
	default: // subnormal results: the sum's lowest bits count units of 2^-24
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	}
}

// FromF16 widens binary16 values, exactly.
func FromF16(dst []float32, src []uint16) {
	for i, h := range src {
		dst[i] = f16Value(h)
	}
}

// f16Value is the value of binary16 bits. A signalling NaN becomes quiet.
func f16Value(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	m := uint32(h & 0x7fff)
	switch {
	case m > 0x7c00:
		return math.Float32frombits(sign | 0x7fc00000 | m<<13)
	case m == 0x7c00:
		return math.Float32frombits(sign | 0x7f800000)
	case m >= 0x400:
		return math.Float32frombits(sign | (m<<13 + 0x38000000))
	default: // zero and subnormal: m units of 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(m)*0x1p-24))
	}
}

// ToBF16 rounds src to bfloat16, half to even; NaN becomes quiet. finite is as for ToF16.
func ToBF16(dst []uint16, src []float32) (finite bool) {
	dst = dst[:len(src)]
	finite = true
	for i, v := range src {
		h := bf16Bits(v)
		dst[i] = h
		finite = finite && h&0x7f80 != 0x7f80
	}
	return finite
}

func bf16Bits(v float32) uint16 {
	b := math.Float32bits(v)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + (b >> 16 & 1)) >> 16)
}

// AllFinite reports whether no element of x is NaN or infinite.
func AllFinite(x []float32) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}
