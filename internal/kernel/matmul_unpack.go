package kernel

import (
	"encoding/binary"

	"github.com/spillway/spillway/internal/quant"
)

// intFormats are the block formats of the integer path. Their layouts are those of ggml-quants.c.
var intFormats = map[quant.Type]*intFormat{
	quant.Q4_0:  {run: 32, cheap: true, bytes: 8 * 18, group: blocks(18, unpackQ4_0)},
	quant.Q4_1:  {run: 32, cheap: true, bytes: 8 * 20, offset: true, group: blocks(20, unpackQ4_1)},
	quant.Q5_0:  {run: 32, bytes: 8 * 22, group: blocks(22, unpackQ5_0)},
	quant.Q5_1:  {run: 32, bytes: 8 * 24, offset: true, group: blocks(24, unpackQ5_1)},
	quant.Q8_0:  {run: 32, cheap: true, bytes: 8 * 34, group: blocks(34, unpackQ8_0)},
	quant.IQ4NL: {run: 32, cheap: true, bytes: 8 * 18, group: blocks(18, unpackIQ4NL)},
	quant.Q2_K:  {run: 16, bytes: 84, offset: true, group: unpackQ2K},
	quant.Q3_K:  {run: 16, bytes: 110, group: unpackQ3K},
	quant.Q4_K:  {run: 32, cheap: true, bytes: 144, offset: true, group: unpackQ4K},
	quant.Q5_K:  {run: 32, bytes: 176, offset: true, group: unpackQ5K},
	quant.Q6_K:  {run: 16, bytes: 210, group: unpackQ6K},

	quant.IQ1S:   {run: 32, bytes: 50, group: unpackIQ1S},
	quant.IQ1M:   {run: 16, bytes: 56, group: unpackIQ1M},
	quant.IQ2XXS: {run: 32, bytes: 66, group: unpackIQ2XXS},
	quant.IQ2XS:  {run: 16, bytes: 74, group: unpackIQ2XS},
	quant.IQ2S:   {run: 16, bytes: 82, group: unpackIQ2S},
	quant.IQ3XXS: {run: 32, bytes: 98, group: unpackIQ3XXS},
	quant.IQ3S:   {run: 32, bytes: 110, group: unpackIQ3S},
	quant.IQ4XS:  {run: 32, cheap: true, bytes: 136, group: unpackIQ4XS},
	quant.TQ1_0:  {run: 32, cheap: true, bytes: 54, group: unpackTQ1_0},
	quant.TQ2_0:  {run: 32, cheap: true, bytes: 66, group: unpackTQ2_0},
	quant.Q1_0:   {run: 32, cheap: true, bytes: 2 * 18, group: unpackQ1_0},
	quant.Q2_0:   {run: 32, cheap: true, bytes: 4 * 18, group: unpackQ2_0},
	quant.MXFP4:  {run: 32, cheap: true, bytes: 8 * 17, group: blocks(17, unpackMXFP4)},
	quant.NVFP4:  {run: 16, cheap: true, bytes: 4 * 36, group: unpackNVFP4},

	quant.Int4x32:         groupFormat(quant.Int4x32, unpackInt4),
	quant.Int4x64:         groupFormat(quant.Int4x64, unpackInt4),
	quant.Int4x128:        groupFormat(quant.Int4x128, unpackInt4),
	quant.Int8x32:         groupFormat(quant.Int8x32, unpackInt8),
	quant.Int8x128:        groupFormat(quant.Int8x128, unpackInt8),
	quant.LLMInt8x32:      groupFormat(quant.LLMInt8x32, unpackLLMInt8),
	quant.LLMInt8x128:     groupFormat(quant.LLMInt8x128, unpackLLMInt8),
	quant.TensorNVFP4x32:  groupFormat(quant.TensorNVFP4x32, unpackTensorNVFP4),
	quant.TensorNVFP4x128: groupFormat(quant.TensorNVFP4x128, unpackTensorNVFP4),
}

// blocks unpacks up to 8 blocks of 32 values each, of the given bytes, as one group.
func blocks(size int, one func(q []int16, b []byte) (scale, minimum float32)) func(g *rawGroup, src []byte) {
	return func(g *rawGroup, src []byte) {
		for i := range len(src) / size {
			g.scale[i], g.min[i] = one(g.q[i*32:i*32+32], src[i*size:(i+1)*size])
		}
	}
}

func f16At(b []byte) float32 { return quant.F16ToF32(binary.LittleEndian.Uint16(b)) }

// nibbles writes the low halves of 16 bytes, then the high halves, less z.
func nibbles(q []int16, b []byte, z int16) {
	for i, v := range b[:16] {
		q[i] = int16(v&15) - z
		q[i+16] = int16(v>>4) - z
	}
}

// fifthBits adds bit i of b to value i, as 16.
func fifthBits(q []int16, b []byte) {
	bits := binary.LittleEndian.Uint32(b)
	for i := range q {
		q[i] += int16(bits>>i&1) << 4
	}
}

func unpackQ4_0(q []int16, b []byte) (scale, minimum float32) {
	nibbles(q, b[2:], 8)
	return f16At(b), 0
}

func unpackQ4_1(q []int16, b []byte) (scale, minimum float32) {
	nibbles(q, b[4:], 0)
	return f16At(b), -f16At(b[2:])
}

func unpackQ5_0(q []int16, b []byte) (scale, minimum float32) {
	nibbles(q, b[6:], 16)
	fifthBits(q, b[2:])
	return f16At(b), 0
}

func unpackQ5_1(q []int16, b []byte) (scale, minimum float32) {
	nibbles(q, b[8:], 0)
	fifthBits(q, b[4:])
	return f16At(b), -f16At(b[2:])
}

func unpackQ8_0(q []int16, b []byte) (scale, minimum float32) {
	for i, v := range b[2:34] {
		q[i] = int16(int8(v))
	}
	return f16At(b), 0
}

// iq4Values are the 16 levels of IQ4_NL.
var iq4Values = [16]int16{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

func unpackIQ4NL(q []int16, b []byte) (scale, minimum float32) {
	nibbles(q, b[2:], 0)
	for i, v := range q {
		q[i] = iq4Values[v]
	}
	return f16At(b), 0
}

// twoBits writes the 2-bit values of Q2_K and Q3_K: 64 bytes hold 4 values each, 32 bytes a half.
func twoBits(q *[groupValues]int16, b []byte) {
	for k := range q {
		half, shift, l := k/128, k%128/32*2, k%32
		q[k] = int16(b[half*32+l] >> shift & 3)
	}
}

func unpackQ2K(g *rawGroup, b []byte) {
	twoBits(&g.q, b[16:80])
	d, dmin := f16At(b[80:]), f16At(b[82:])
	for r, v := range b[:16] {
		g.scale[r] = d * float32(v&15)
		g.min[r] = dmin * float32(v>>4)
	}
}

func unpackQ3K(g *rawGroup, b []byte) {
	twoBits(&g.q, b[32:96])
	for k := range g.q {
		if b[k%32]>>(k/32)&1 == 0 {
			g.q[k] -= 4
		}
	}
	d, s := f16At(b[108:]), b[96:108]
	for r := range 16 { // low 4 bits in bytes 0 to 7, high 2 bits in bytes 8 to 11
		low := s[r%8] >> (r / 8 * 4) & 15
		high := s[8+r%4] >> (r / 4 * 2) & 3
		g.scale[r] = d * float32(int(low|high<<4)-32)
	}
}

// scaleMin returns the 6-bit scale and minimum of run r of Q4_K and Q5_K, from their 12 bytes.
func scaleMin(b []byte, r int) (scale, minimum uint8) {
	if r < 4 {
		return b[r] & 63, b[r+4] & 63
	}
	return b[r+4]&15 | b[r-4]>>6<<4, b[r+4]>>4 | b[r]>>6<<4
}

// scalesK fills scales and minima of Q4_K and Q5_K from a block's first 16 bytes.
func scalesK(g *rawGroup, b []byte) {
	d, dmin := f16At(b), f16At(b[2:])
	for r := range 8 {
		scale, minimum := scaleMin(b[4:16], r)
		g.scale[r] = d * float32(scale)
		g.min[r] = dmin * float32(minimum)
	}
}

// nibblesK writes 128 bytes of nibbles: each 32 bytes hold two runs.
func nibblesK(q *[groupValues]int16, b []byte) {
	for k := range q {
		q[k] = int16(b[k/64*32+k%32] >> (k % 64 / 32 * 4) & 15)
	}
}

func unpackQ4K(g *rawGroup, b []byte) {
	scalesK(g, b)
	nibblesK(&g.q, b[16:144])
}

func unpackQ5K(g *rawGroup, b []byte) {
	scalesK(g, b)
	nibblesK(&g.q, b[48:176])
	for k := range g.q {
		g.q[k] += int16(b[16+k%32]>>(k/32)&1) << 4
	}
}

func unpackQ6K(g *rawGroup, b []byte) {
	ql, qh, s, d := b[:128], b[128:192], b[192:208], f16At(b[208:])
	for k := range g.q {
		half, part, l := k/128, k%128/32, k%32
		low := ql[half*64+part%2*32+l] >> (part / 2 * 4) & 15
		high := qh[half*32+l] >> (part * 2) & 3
		g.q[k] = int16(low|high<<4) - 32
	}
	for r, v := range s {
		g.scale[r] = d * float32(int8(v))
	}
}
