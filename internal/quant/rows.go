package quant

import (
	"encoding/binary"
	"math"
)

// The row formats are what the quantized tensors of safetensors checkpoints become in memory. Those
// keep codes, scales and zero points in separate tensors, often with outputs and inputs exchanged; here
// they stand together, block by block, so that a row is a run of bytes like that of any other format.
// No file holds them; the numbers are ours.
//
// A block is an f32 scale, for the Int formats a zero point of one byte, for TensorNVFP4 one E4M3 scale
// for every 16 values, and then the codes. Codes of four bits lie as in GGUF's blocks: of the 16 bytes for
// 32 values, byte i holds value i in its low half and value i + 16 in the high one. Only those of NF4 and
// FP4 are in order, the high half of a byte first, as bitsandbytes has them. The number behind x is the
// values of a block.
const (
	Int4x32 Type = firstRow + iota // (code − zero)·scale
	Int4x64
	Int4x128
	Int8x32
	Int8x128
	LLMInt8x32 // ((code − zero)·scale)·(1/127)
	LLMInt8x128
	E4M3x32 // f32(code)·scale
	E4M3x128
	E5M2x32
	E5M2x128
	NF4x32 // level[code]·scale
	NF4x64
	FP4x32
	FP4x64
	TensorNVFP4x32 // e2m1(code)·(f32(E4M3 scale)/scale)
	TensorNVFP4x128
	endRow
)

// firstRow lies beyond the numbers of ggml_type.
const firstRow = 256

// row is the geometry of a row format with its decoder.
type row struct {
	Info
	codes  int // offset of the codes in a block
	bits   int // of a code
	decode func(dst []float32, src []byte, r *row)
}

var rows = [endRow - firstRow]row{
	rowOf("Int4x32", 5, 4, 32, decodeInts), rowOf("Int4x64", 5, 4, 64, decodeInts), rowOf("Int4x128", 5, 4, 128, decodeInts),
	rowOf("Int8x32", 5, 8, 32, decodeInts), rowOf("Int8x128", 5, 8, 128, decodeInts),
	rowOf("LLMInt8x32", 5, 8, 32, decodeLLMInt8), rowOf("LLMInt8x128", 5, 8, 128, decodeLLMInt8),
	rowOf("E4M3x32", 4, 8, 32, decodeE4M3), rowOf("E4M3x128", 4, 8, 128, decodeE4M3),
	rowOf("E5M2x32", 4, 8, 32, decodeE5M2), rowOf("E5M2x128", 4, 8, 128, decodeE5M2),
	rowOf("NF4x32", 4, 4, 32, decodeNF4), rowOf("NF4x64", 4, 4, 64, decodeNF4),
	rowOf("FP4x32", 4, 4, 32, decodeFP4), rowOf("FP4x64", 4, 4, 64, decodeFP4),
	rowOf("TensorNVFP4x32", 4+2, 4, 32, decodeTensorNVFP4), rowOf("TensorNVFP4x128", 4+8, 4, 128, decodeTensorNVFP4),
}

func rowOf(name string, codes, bits, values int, decode func([]float32, []byte, *row)) row {
	return row{Info{name, values, codes + values*bits/8}, codes, bits, decode}
}

// rowFormat returns the row format t, or nil if it is none.
func rowFormat(t Type) *row {
	if t < firstRow || t >= endRow {
		return nil
	}
	return &rows[t-firstRow]
}

// Codes returns where the codes of a block of a row format begin, and how many bits each has; 0 if t is
// no row format.
func (t Type) Codes() (offset, bits int) {
	if r := rowFormat(t); r != nil {
		return r.codes, r.bits
	}
	return 0, 0
}

func f32(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }

// each calls f for the blocks of a row.
func (r *row) each(dst []float32, src []byte, f func(y []float32, b []byte)) {
	for ; len(dst) >= r.Values; dst, src = dst[r.Values:], src[r.Bytes:] {
		f(dst[:r.Values], src[:r.Bytes])
	}
}

// code returns code i of a block.
func (r *row) code(b []byte, i int) uint8 {
	if r.bits == 8 {
		return b[r.codes+i]
	}
	return b[r.codes+i/32*16+i%16] >> (i % 32 / 16 * 4) & 15
}

func decodeInts(dst []float32, src []byte, r *row) {
	r.each(dst, src, func(y []float32, b []byte) {
		scale, zero := f32(b), int(b[4])
		for i := range y {
			y[i] = float32(int(r.code(b, i))-zero) * scale
		}
	})
}

// InverseOf127 is what bitsandbytes multiplies with instead of dividing by 127.
const InverseOf127 = float32(7.874015718698502e-3)

func decodeLLMInt8(dst []float32, src []byte, r *row) {
	decodeInts(dst, src, r)
	for i := range dst {
		dst[i] *= InverseOf127
	}
}

// E4M3ToF32 widens an FP8 number of the kind E4M3FN, exactly.
func E4M3ToF32(x uint8) float32 {
	sign, mag := uint32(x&0x80)<<24, uint32(x&0x7f)
	switch {
	case mag == 0x7f:
		return math.Float32frombits(sign | 0x7fc00000)
	case mag < 8: // subnormal: mag·2^-9
		return math.Float32frombits(sign | math.Float32bits(float32(mag)*0x1p-9))
	}
	return math.Float32frombits(sign | (mag<<20 + 120<<23))
}

// E5M2ToF32 widens an FP8 number of the kind E5M2, exactly: it is the upper half of an f16.
func E5M2ToF32(x uint8) float32 { return F16ToF32(uint16(x) << 8) }

func decodeE4M3(dst []float32, src []byte, r *row) {
	r.each(dst, src, func(y []float32, b []byte) {
		scale := f32(b)
		for i, c := range b[4:] {
			y[i] = E4M3ToF32(c) * scale
		}
	})
}

func decodeE5M2(dst []float32, src []byte, r *row) {
	r.each(dst, src, func(y []float32, b []byte) {
		scale := f32(b)
		for i, c := range b[4:] {
			y[i] = E5M2ToF32(c) * scale
		}
	})
}

// nf4 is the levels of NF4 (Dettmers et al. 2023, appendix E).
var nf4 = [16]float32{
	-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
	-0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
	0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1,
}

// fp4 is the levels of bitsandbytes' FP4.
var fp4 = [16]float32{
	0, 0.005208333333333333, 0.6666666666666666, 1, 0.3333333333333333, 0.5, 0.16666666666666666, 0.25,
	0, -0.005208333333333333, -0.6666666666666666, -1, -0.3333333333333333, -0.5, -0.16666666666666666, -0.25,
}

func decodeNF4(dst []float32, src []byte, r *row) { decodeLevels(dst, src, r, &nf4) }
func decodeFP4(dst []float32, src []byte, r *row) { decodeLevels(dst, src, r, &fp4) }

func decodeLevels(dst []float32, src []byte, r *row, levels *[16]float32) {
	r.each(dst, src, func(y []float32, b []byte) {
		scale := f32(b)
		for i, c := range b[4:] {
			y[2*i] = levels[c>>4] * scale
			y[2*i+1] = levels[c&15] * scale
		}
	})
}

func decodeTensorNVFP4(dst []float32, src []byte, r *row) {
	r.each(dst, src, func(y []float32, b []byte) {
		tensor := f32(b)
		for i := range y {
			scale := E4M3ToF32(b[4+i/16]) / tensor
			y[i] = e2m1[r.code(b, i)] * 0.5 * scale
		}
	})
}
