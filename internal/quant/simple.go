package quant

import "encoding/binary"

// The simple blocks: one scale, and perhaps one minimum, for 32 values (ggml-quants.h). Of each
// quant byte the low nibble is value i and the high nibble is value i + 16.

func decodeQ4_0(dst []float32, src []byte) {
	for ; len(dst) >= qk; dst, src = dst[qk:], src[18:] {
		b, y := (*[18]byte)(src), (*[qk]float32)(dst)
		d := half(b[:])
		for i, q := range b[2:] {
			y[i] = d * float32(int(q&15)-8)
			y[i+16] = d * float32(int(q>>4)-8)
		}
	}
}

func decodeQ4_1(dst []float32, src []byte) {
	for ; len(dst) >= qk; dst, src = dst[qk:], src[20:] {
		b, y := (*[20]byte)(src), (*[qk]float32)(dst)
		d, m := half(b[:]), half(b[2:])
		for i, q := range b[4:] {
			y[i] = float32(d*float32(q&15)) + m
			y[i+16] = float32(d*float32(q>>4)) + m
		}
	}
}

func decodeQ5_0(dst []float32, src []byte) {
	for ; len(dst) >= qk; dst, src = dst[qk:], src[22:] {
		b, y := (*[22]byte)(src), (*[qk]float32)(dst)
		d, high := half(b[:]), binary.LittleEndian.Uint32(b[2:])
		for i, q := range b[6:] {
			y[i] = d * float32(int(uint32(q&15)|high>>i&1<<4)-16)
			y[i+16] = d * float32(int(uint32(q>>4)|high>>(i+16)&1<<4)-16)
		}
	}
}

func decodeQ5_1(dst []float32, src []byte) {
	for ; len(dst) >= qk; dst, src = dst[qk:], src[24:] {
		b, y := (*[24]byte)(src), (*[qk]float32)(dst)
		d, m, high := half(b[:]), half(b[2:]), binary.LittleEndian.Uint32(b[4:])
		for i, q := range b[8:] {
			y[i] = float32(d*float32(uint32(q&15)|high>>i&1<<4)) + m
			y[i+16] = float32(d*float32(uint32(q>>4)|high>>(i+16)&1<<4)) + m
		}
	}
}

func decodeQ8_0(dst []float32, src []byte) {
	for ; len(dst) >= qk; dst, src = dst[qk:], src[34:] {
		b, y := (*[34]byte)(src), (*[qk]float32)(dst)
		d := half(b[:])
		for i, q := range b[2:] {
			y[i] = d * float32(int8(q))
		}
	}
}

// iq4Values is the non-linear code book of IQ4_NL and IQ4_XS (kvalues_iq4nl of ggml).
var iq4Values = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

func decodeIQ4NL(dst []float32, src []byte) {
	for ; len(dst) >= qk; dst, src = dst[qk:], src[18:] {
		b, y := (*[18]byte)(src), (*[qk]float32)(dst)
		d := half(b[:])
		for i, q := range b[2:] {
			y[i] = d * iq4Values[q&15]
			y[i+16] = d * iq4Values[q>>4]
		}
	}
}

// decodeQ1_0: one sign bit for each of 128 values, lowest bit first; 1 is +d, 0 is −d.
func decodeQ1_0(dst []float32, src []byte) {
	for ; len(dst) >= 128; dst, src = dst[128:], src[18:] {
		b, y := (*[18]byte)(src), (*[128]float32)(dst)
		d := half(b[:])
		pair := [2]float32{-d, d}
		for i := range y {
			y[i] = pair[b[2+i/8]>>(i%8)&1]
		}
	}
}

// decodeQ2_0: two bits for each of 64 values, lowest first; 0…3 stand for −1…2.
func decodeQ2_0(dst []float32, src []byte) {
	for ; len(dst) >= 64; dst, src = dst[64:], src[18:] {
		b, y := (*[18]byte)(src), (*[64]float32)(dst)
		d := half(b[:])
		for i := range y {
			y[i] = float32(int(b[2+i/4]>>(2*(i%4))&3)-1) * d
		}
	}
}
