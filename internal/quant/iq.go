package quant

import (
	"encoding/binary"
	"math/bits"
)

// The IQ formats: 256 values whose magnitudes are points of a code book (ggml-quants.h). Signs are
// stored apart.

// signs7 expands 7 sign bits to 8: the last makes the number of minus signs even.
func signs7(s uint32) uint8 {
	s &= 127
	return uint8(s) | uint8(bits.OnesCount32(s)&1)<<7
}

// put8 writes scale·point with signs, lowest bit first; 1 is minus.
func put8(y *[8]float32, scale float32, p *point8, signs uint8) {
	for i := range y {
		v := scale * float32(p[i])
		if signs>>i&1 != 0 {
			v = -v
		}
		y[i] = v
	}
}

// put4 is put8 for two points of four values.
func put4(y *[8]float32, scale float32, p, q *point4, signs uint8) {
	put8(y, scale, &point8{p[0], p[1], p[2], p[3], q[0], q[1], q[2], q[3]}, signs)
}

// quarterScale is the sub-scale of the IQ2 formats: d·(½ + s)/4, exact.
func quarterScale(d float32, s uint32) float32 { return d * (0.5 + float32(s)) * 0.25 }

// decodeIQ2XXS: d, then for each 32 values four indices and a word of 4 × 7 sign bits and a scale.
func decodeIQ2XXS(dst []float32, src []byte) {
	grid := (*[256]point8)(gridIQ2XXS())
	for ; len(dst) >= kk; dst, src = dst[kk:], src[66:] {
		b := (*[66]byte)(src)
		d := half(b[:])
		for run := range 8 {
			q := b[2+8*run:]
			word := binary.LittleEndian.Uint32(q[4:])
			scale := quarterScale(d, word>>28)
			for g := range 4 {
				put8((*[8]float32)(dst[32*run+8*g:]), scale, &grid[q[g]], signs7(word>>(7*g)))
			}
		}
	}
}

// decodeIQ2XS: d, 32 words of 9 index bits and 7 sign bits, 16 nibbles of scales.
func decodeIQ2XS(dst []float32, src []byte) {
	grid := (*[512]point8)(gridIQ2XS())
	for ; len(dst) >= kk; dst, src = dst[kk:], src[74:] {
		b := (*[74]byte)(src)
		d := half(b[:])
		for run := range 16 {
			scale := quarterScale(d, uint32(b[66+run/2]>>(run%2*4)&15))
			for g := range 2 {
				w := binary.LittleEndian.Uint16(b[2+4*run+2*g:])
				put8((*[8]float32)(dst[16*run+8*g:]), scale, &grid[w&511], signs7(uint32(w>>9)))
			}
		}
	}
}

// decodeIQ2S: d, 32 low bytes of indices, 32 bytes of signs, 8 of high index bits, 16 nibbles of
// scales.
func decodeIQ2S(dst []float32, src []byte) {
	grid := (*[1024]point8)(gridIQ2S())
	for ; len(dst) >= kk; dst, src = dst[kk:], src[82:] {
		b := (*[82]byte)(src)
		d := half(b[:])
		for g := range 32 {
			scale := quarterScale(d, uint32(b[74+g/4]>>(g/2%2*4)&15))
			index := int(b[2+g]) | int(b[66+g/4])>>(2*(g%4))&3<<8
			put8((*[8]float32)(dst[8*g:]), scale, &grid[index], b[34+g])
		}
	}
}

// decodeIQ3XXS: d, 64 indices of points of four, 8 words of 4 × 7 sign bits and a scale.
func decodeIQ3XXS(dst []float32, src []byte) {
	grid := (*[256]point4)(gridIQ3XXS())
	for ; len(dst) >= kk; dst, src = dst[kk:], src[98:] {
		b := (*[98]byte)(src)
		d := half(b[:])
		for run := range 8 {
			word := binary.LittleEndian.Uint32(b[66+4*run:])
			scale := d * (0.5 + float32(word>>28)) * 0.5
			for g := range 4 {
				q := (*[2]byte)(b[2+8*run+2*g:])
				put4((*[8]float32)(dst[32*run+8*g:]), scale, &grid[q[0]], &grid[q[1]], signs7(word>>(7*g)))
			}
		}
	}
}

// decodeIQ3S: d, 64 low bytes of indices, 8 bytes of high index bits, 32 of signs, 8 nibbles of
// scales.
func decodeIQ3S(dst []float32, src []byte) {
	grid := (*[512]point4)(gridIQ3S())
	for ; len(dst) >= kk; dst, src = dst[kk:], src[110:] {
		b := (*[110]byte)(src)
		d := half(b[:])
		for g := range 32 {
			scale := d * float32(1+2*(b[106+g/8]>>(g/4%2*4)&15))
			high := int(b[66+g/4]) >> (g % 4 * 2)
			p := &grid[int(b[2+2*g])|high&1<<8]
			q := &grid[int(b[3+2*g])|high>>1&1<<8]
			put4((*[8]float32)(dst[8*g:]), scale, p, q, b[74+g])
		}
	}
}

// put1 writes scale·(point + delta), as IQ1 has it; delta is ±⅛.
func put1(y *[8]float32, scale float32, p *point8, minus bool) {
	delta := float32(0.125)
	if minus {
		delta = -delta
	}
	for i := range y {
		y[i] = scale * (float32(p[i]) + delta)
	}
}

// decodeIQ1S: d, 32 low bytes of indices, 8 words of 4 × 3 high index bits, a scale of 3 bits, and
// the sign of delta.
func decodeIQ1S(dst []float32, src []byte) {
	grid := (*[2048]point8)(gridIQ1())
	for ; len(dst) >= kk; dst, src = dst[kk:], src[50:] {
		b := (*[50]byte)(src)
		d := half(b[:])
		for run := range 8 {
			word := binary.LittleEndian.Uint16(b[34+2*run:])
			scale := d * float32(2*(word>>12&7)+1)
			for g := range 4 {
				index := int(b[2+4*run+g]) | int(word)>>(3*g)&7<<8
				put1((*[8]float32)(dst[32*run+8*g:]), scale, &grid[index], word>>15 != 0)
			}
		}
	}
}

// scaleIQ1M collects the half that is spread over the top nibbles of four words.
func scaleIQ1M(b *[8]byte) float32 {
	var h uint16
	for i := range 4 {
		h |= uint16(b[2*i+1]>>4) << (4 * i)
	}
	return F16ToF32(h)
}

// decodeIQ1M: 32 low bytes of indices, 32 nibbles of three high index bits and the sign of delta,
// four words of 4 × 3 bits of scales and a nibble of d.
func decodeIQ1M(dst []float32, src []byte) {
	grid := (*[2048]point8)(gridIQ1())
	for ; len(dst) >= kk; dst, src = dst[kk:], src[56:] {
		b := (*[56]byte)(src)
		d := scaleIQ1M((*[8]byte)(b[48:]))
		for g := range 32 {
			run := g / 2
			s := binary.LittleEndian.Uint16(b[48+run/4*2:]) >> (run % 4 * 3) & 7
			scale := d * float32(2*s+1)
			high := int(b[32+g/2]) >> (g % 2 * 4)
			index := int(b[g]) | high&7<<8
			put1((*[8]float32)(dst[8*g:]), scale, &grid[index], high&8 != 0)
		}
	}
}

// scaleIQ4XS returns the signed 6-bit scale of sub-block i.
func scaleIQ4XS(b *[136]byte, i int) int {
	high := binary.LittleEndian.Uint16(b[2:]) >> (2 * i) & 3
	return int(b[4+i/2]>>(i%2*4)&15) + int(high)<<4 - 32
}

// decodeIQ4XS: d, 8 high bit pairs and 8 nibbles of scales, 128 bytes of indices into the code book
// of IQ4_NL.
func decodeIQ4XS(dst []float32, src []byte) {
	for ; len(dst) >= kk; dst, src = dst[kk:], src[136:] {
		b := (*[136]byte)(src)
		d := half(b[:])
		for sub := range 8 {
			scale := d * float32(scaleIQ4XS(b, sub))
			q, y := (*[16]byte)(b[8+16*sub:]), (*[32]float32)(dst[32*sub:])
			for i, v := range q {
				y[i] = scale * iq4Values[v&15]
				y[i+16] = scale * iq4Values[v>>4]
			}
		}
	}
}
