package kernel

import (
	"encoding/binary"
	mathbits "math/bits"

	"github.com/spillway/spillway/internal/quant"
)

// The formats whose values are points of a code book, and IQ4_XS. Layouts are those of internal/quant,
// which decodes them one by one.

// point writes up to eight values of a code book to q; bit i of signs negates value i.
func point(q []int16, values []int8, signs uint8) {
	for i, v := range values {
		q[i] = int16(v)
		if signs>>i&1 != 0 {
			q[i] = -q[i]
		}
	}
}

// evenSigns expands 7 sign bits to 8, of which an even number is set.
func evenSigns(s uint32) uint8 {
	s &= 127
	return uint8(s) | uint8(mathbits.OnesCount32(s)&1)<<7
}

// nibbleAt returns nibble i of b, low halves first.
func nibbleAt(b []byte, i int) uint8 { return b[i/2] >> (i % 2 * 4) & 15 }

func unpackIQ2XXS(g *rawGroup, b []byte) {
	points, d := quant.Points8(quant.IQ2XXS), f16At(b)
	for r := range 8 {
		index, word := b[2+8*r:6+8*r], binary.LittleEndian.Uint32(b[6+8*r:])
		g.scale[r] = d * (0.5 + float32(word>>28)) * 0.25
		for k, n := range index {
			point(g.q[32*r+8*k:], points[n][:], evenSigns(word>>(7*k)))
		}
	}
}

func unpackIQ2XS(g *rawGroup, b []byte) {
	points, d := quant.Points8(quant.IQ2XS), f16At(b)
	for r := range 16 {
		g.scale[r] = d * (0.5 + float32(nibbleAt(b[66:], r))) * 0.25
	}
	for k := range 32 {
		w := binary.LittleEndian.Uint16(b[2+2*k:])
		point(g.q[8*k:], points[w&511][:], evenSigns(uint32(w>>9)))
	}
}

func unpackIQ2S(g *rawGroup, b []byte) {
	points, d := quant.Points8(quant.IQ2S), f16At(b)
	for r := range 16 {
		g.scale[r] = d * (0.5 + float32(nibbleAt(b[74:], r))) * 0.25
	}
	for k := range 32 {
		n := int(b[2+k]) | int(b[66+k/4]>>(k%4*2)&3)<<8
		point(g.q[8*k:], points[n][:], b[34+k])
	}
}

func unpackIQ3XXS(g *rawGroup, b []byte) {
	points, d := quant.Points4(quant.IQ3XXS), f16At(b)
	for r := range 8 {
		word := binary.LittleEndian.Uint32(b[66+4*r:])
		g.scale[r] = d * (0.5 + float32(word>>28)) * 0.5
		for k := range 4 {
			signs, index, q := evenSigns(word>>(7*k)), b[2+8*r+2*k:], g.q[32*r+8*k:]
			point(q, points[index[0]][:], signs)
			point(q[4:], points[index[1]][:], signs>>4)
		}
	}
}

func unpackIQ3S(g *rawGroup, b []byte) {
	points, d := quant.Points4(quant.IQ3S), f16At(b)
	for r := range 8 {
		g.scale[r] = d * float32(1+2*nibbleAt(b[106:], r))
	}
	for k := range 64 {
		n := int(b[2+k]) | int(b[66+k/8]>>(k%8)&1)<<8
		point(g.q[4*k:], points[n][:], b[74+k/2]>>(k%2*4))
	}
}

// deltaPoint writes eight times a point, one more or, if minus, one less: the formats of one bit add
// an eighth to their points.
func deltaPoint(q []int16, values *[8]int8, minus bool) {
	delta := int16(1)
	if minus {
		delta = -1
	}
	for i, v := range values {
		q[i] = 8*int16(v) + delta
	}
}

func unpackIQ1S(g *rawGroup, b []byte) {
	points, d := quant.Points8(quant.IQ1S), f16At(b)
	for r := range 8 {
		word := binary.LittleEndian.Uint16(b[34+2*r:])
		g.scale[r] = d * float32(2*(word>>12&7)+1) * 0.125
		for k := range 4 {
			n := int(b[2+4*r+k]) | int(word>>(3*k)&7)<<8
			deltaPoint(g.q[32*r+8*k:], &points[n], word>>15 != 0)
		}
	}
}

func unpackIQ1M(g *rawGroup, b []byte) {
	points := quant.Points8(quant.IQ1M)
	var h uint16 // the scale's half lies in the top nibbles of four words
	for i := range 4 {
		h |= uint16(b[49+2*i]>>4) << (4 * i)
	}
	d := quant.F16ToF32(h)
	for r := range 16 {
		s := binary.LittleEndian.Uint16(b[48+r/4*2:]) >> (r % 4 * 3) & 7
		g.scale[r] = d * float32(2*s+1) * 0.125
	}
	for k := range 32 {
		high := nibbleAt(b[32:], k)
		deltaPoint(g.q[8*k:], &points[int(b[k])|int(high&7)<<8], high&8 != 0)
	}
}

func unpackIQ4XS(g *rawGroup, b []byte) {
	d, high := f16At(b), binary.LittleEndian.Uint16(b[2:])
	for r := range 8 {
		s := nibbleAt(b[4:], r) | uint8(high>>(2*r)&3)<<4
		g.scale[r] = d * float32(int(s)-32)
		q := g.q[32*r : 32*r+32]
		nibbles(q, b[8+16*r:], 0)
		for i, v := range q {
			q[i] = iq4Values[v]
		}
	}
}
