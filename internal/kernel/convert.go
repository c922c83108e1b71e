package kernel

import "github.com/spillway/spillway/internal/quant"

// ToF16 rounds src to IEEE binary16, half to even, as VCVTPS2PH does. finite is false if any result
// is infinite or NaN, be it by overflow or because the value was so.
func ToF16(dst []uint16, src []float32) (finite bool) {
	return active.vector.toF16(dst[:len(src)], src)
}

func toF16Go(dst []uint16, src []float32) bool {
	finite := true
	for i, v := range src {
		h := quant.F32ToF16(v)
		dst[i] = h
		finite = finite && h&0x7c00 != 0x7c00
	}
	return finite
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
