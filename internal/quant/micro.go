package quant

import "math"

// The micro-scaling formats: values of four bits (E2M1) with a scale of eight (OCP MX v1.0; NVFP4).

// e2m1 is the doubled value of each four bits: 0, ½, 1, 1½, 2, 3, 4, 6, and their negatives. The
// table of the reference decoder has no −0.
var e2m1 = [16]float32{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// HalfE8M0 returns 2^(e−128): half of what an E8M0 scale means, as e2m1 is doubled.
func HalfE8M0(e uint8) float32 {
	if e < 2 { // subnormal
		return math.Float32frombits(0x00200000 << e)
	}
	return math.Float32frombits(uint32(e-1) << 23)
}

// decodeMXFP4: an E8M0 scale, then 32 values; of byte i the low half is value i, the high one i + 16.
func decodeMXFP4(dst []float32, src []byte) {
	for ; len(dst) >= qk; dst, src = dst[qk:], src[17:] {
		b, y := (*[17]byte)(src), (*[qk]float32)(dst)
		d := HalfE8M0(b[0])
		for i, q := range b[1:] {
			y[i] = d * e2m1[q&15]
			y[i+16] = d * e2m1[q>>4]
		}
	}
}

// HalfUE4M3 returns half of what an unsigned E4M3 scale means; 0x7f counts as 0.
func HalfUE4M3(x uint8) float32 {
	exp, man := x>>3&15, float32(x&7)
	switch {
	case x == 0x7f:
		return 0
	case exp == 0:
		return man * 0x1p-10
	}
	return (8 + man) * math.Float32frombits((uint32(exp)+127-11)<<23)
}

// decodeNVFP4: four UE4M3 scales, then 16 values for each; of byte i of a run the low half is value
// i, the high one i + 8.
func decodeNVFP4(dst []float32, src []byte) {
	for ; len(dst) >= 64; dst, src = dst[64:], src[36:] {
		b := (*[36]byte)(src)
		for run := range 4 {
			d := HalfUE4M3(b[run])
			q, y := (*[8]byte)(b[4+8*run:]), (*[16]float32)(dst[16*run:])
			for i, v := range q {
				y[i] = d * e2m1[v&15]
				y[i+8] = d * e2m1[v>>4]
			}
		}
	}
}
