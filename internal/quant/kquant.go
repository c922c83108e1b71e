package quant

// The k-quants: super-blocks of 256 values whose sub-blocks of 16 or 32 have small integer scales
// (ggml-quants.h, and the k-quants pull request of llama.cpp, #1684).

// decodeQ2_K: 16 bytes of scales (low nibble) and minima (high nibble), 64 bytes of quants, d, dmin.
func decodeQ2_K(dst []float32, src []byte) {
	for ; len(dst) >= kk; dst, src = dst[kk:], src[84:] {
		b := (*[84]byte)(src)
		d, dmin := half(b[80:]), half(b[82:])
		for sub := range 16 {
			// sub-block: half of 128 values, bit pair, half of 32 bytes
			sc := b[sub]
			dl, ml := float32(d*float32(sc&15)), float32(dmin*float32(sc>>4))
			q := (*[16]byte)(b[16+sub/8*32+sub%2*16:])
			y, shift := (*[16]float32)(dst[sub*16:]), sub%8/2*2
			for i := range y {
				y[i] = float32(dl*float32(q[i]>>shift&3)) - ml
			}
		}
	}
}

// scalesQ3K unpacks 16 signed scales of 6 bits: low nibbles in bytes 0…7, high bit pairs in 8…11.
func scalesQ3K(p *[12]byte) (s [16]int8) {
	for i := range 16 {
		low := p[i%8] >> (i / 8 * 4) & 15
		high := p[8+i%4] >> (i / 4 * 2) & 3
		s[i] = int8(low|high<<4) - 32
	}
	return s
}

// decodeQ3_K: 32 bytes of high bits (set means: do not subtract 4), 64 of bit pairs, scales, d.
func decodeQ3_K(dst []float32, src []byte) {
	for ; len(dst) >= kk; dst, src = dst[kk:], src[110:] {
		b := (*[110]byte)(src)
		d, scales := half(b[108:]), scalesQ3K((*[12]byte)(b[96:]))
		for sub := range 16 {
			dl := float32(d * float32(scales[sub]))
			h := (*[16]byte)(b[sub%2*16:])
			q := (*[16]byte)(b[32+sub/8*32+sub%2*16:])
			y, shift, bit := (*[16]float32)(dst[sub*16:]), sub%8/2*2, sub/2
			for i := range y {
				v := int(q[i]>>shift&3) + int(h[i]>>bit&1<<2) - 4
				y[i] = dl * float32(v)
			}
		}
	}
}

// scaleMinK returns the 6-bit scale and minimum of sub-block i of Q4_K and Q5_K.
func scaleMinK(p *[12]byte, i int) (scale, minimum uint8) {
	if i < 4 {
		return p[i] & 63, p[i+4] & 63
	}
	return p[i+4]&15 | p[i-4]>>6<<4, p[i+4]>>4 | p[i]>>6<<4
}

// decodeQ4_K: d, dmin, 12 bytes of scales and minima, 128 bytes of nibbles.
func decodeQ4_K(dst []float32, src []byte) {
	for ; len(dst) >= kk; dst, src = dst[kk:], src[144:] {
		b := (*[144]byte)(src)
		d, dmin := half(b[:]), half(b[2:])
		scales := (*[12]byte)(b[4:])
		for pair := range 4 {
			s0, m0 := scaleMinK(scales, 2*pair)
			s1, m1 := scaleMinK(scales, 2*pair+1)
			d0, min0 := float32(d*float32(s0)), float32(dmin*float32(m0))
			d1, min1 := float32(d*float32(s1)), float32(dmin*float32(m1))
			q, y := (*[32]byte)(b[16+32*pair:]), (*[64]float32)(dst[64*pair:])
			for i, v := range q {
				y[i] = float32(d0*float32(v&15)) - min0
				y[i+32] = float32(d1*float32(v>>4)) - min1
			}
		}
	}
}

// decodeQ5_K: as Q4_K, with 32 bytes of fifth bits (bit s of byte i belongs to sub-block s) before
// the nibbles.
func decodeQ5_K(dst []float32, src []byte) {
	for ; len(dst) >= kk; dst, src = dst[kk:], src[176:] {
		b := (*[176]byte)(src)
		d, dmin := half(b[:]), half(b[2:])
		scales, h := (*[12]byte)(b[4:]), (*[32]byte)(b[16:])
		for pair := range 4 {
			s0, m0 := scaleMinK(scales, 2*pair)
			s1, m1 := scaleMinK(scales, 2*pair+1)
			d0, min0 := float32(d*float32(s0)), float32(dmin*float32(m0))
			d1, min1 := float32(d*float32(s1)), float32(dmin*float32(m1))
			q, y := (*[32]byte)(b[48+32*pair:]), (*[64]float32)(dst[64*pair:])
			for i, v := range q {
				high := h[i] >> (2 * pair)
				y[i] = float32(d0*float32(v&15|high&1<<4)) - min0
				y[i+32] = float32(d1*float32(v>>4|high>>1&1<<4)) - min1
			}
		}
	}
}

// decodeQ6_K: 128 bytes of nibbles, 64 of high bit pairs, 16 signed scales, d.
func decodeQ6_K(dst []float32, src []byte) {
	for ; len(dst) >= kk; dst, src = dst[kk:], src[210:] {
		b := (*[210]byte)(src)
		d := half(b[208:])
		for sub := range 16 {
			// of 128 values: quarter, and half of a quarter
			side, quarter, at := sub/8, sub%8/2, sub%2*16
			dl := float32(d * float32(int8(b[192+sub])))
			low := (*[16]byte)(b[side*64+quarter%2*32+at:])
			high := (*[16]byte)(b[128+side*32+at:])
			y, lowShift, highShift := (*[16]float32)(dst[sub*16:]), quarter/2*4, quarter*2
			for i := range y {
				v := int(low[i]>>lowShift&15|high[i]>>highShift&3<<4) - 32
				y[i] = dl * float32(v)
			}
		}
	}
}
