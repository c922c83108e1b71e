package quant

import (
	"encoding/binary"
	"fmt"
	"math"
)

// block sizes in values and bytes, as constants so that loops over blocks need no bounds checks.
const (
	qk = 32  // values in a simple block
	kk = 256 // values in a super-block
)

// decoders are indexed by Type. Each decodes whole blocks: len(dst) is a multiple of the block's
// values and src has exactly the bytes for them.
var decoders = [...]func(dst []float32, src []byte){
	F32: decodeF32, F16: decodeF16, BF16: decodeBF16,
	Q4_0: decodeQ4_0, Q4_1: decodeQ4_1, Q5_0: decodeQ5_0, Q5_1: decodeQ5_1, Q8_0: decodeQ8_0,
	Q1_0: decodeQ1_0, Q2_0: decodeQ2_0,
	Q2_K: decodeQ2_K, Q3_K: decodeQ3_K, Q4_K: decodeQ4_K, Q5_K: decodeQ5_K, Q6_K: decodeQ6_K,
	IQ2XXS: decodeIQ2XXS, IQ2XS: decodeIQ2XS, IQ2S: decodeIQ2S, IQ3XXS: decodeIQ3XXS, IQ3S: decodeIQ3S,
	IQ1S: decodeIQ1S, IQ1M: decodeIQ1M, IQ4NL: decodeIQ4NL, IQ4XS: decodeIQ4XS,
	TQ1_0: decodeTQ1_0, TQ2_0: decodeTQ2_0, MXFP4: decodeMXFP4, NVFP4: decodeNVFP4,
}

// CanDecode reports whether DecodeRow knows t.
func CanDecode(t Type) bool {
	return rowFormat(t) != nil || int(t) < len(decoders) && decoders[t] != nil
}

// DecodeRow decodes len(dst) values of type t from src, bit for bit as the format's reference
// decoder does: products and sums are rounded one by one. It does not allocate.
//
// It is an error if t has no decoder, if len(dst) is not whole blocks, or if src is shorter or
// longer than the row.
func DecodeRow(t Type, dst []float32, src []byte) error {
	if !CanDecode(t) {
		return fmt.Errorf("quant: no decoder for %v", t)
	}
	if err := checkRow(t, len(dst), len(src)); err != nil {
		return err
	}
	if r := rowFormat(t); r != nil {
		r.decode(dst, src, r)
		return nil
	}
	decoders[t](dst, src)
	return nil
}

// checkRow tells whether values and bytes are those of one row of t.
func checkRow(t Type, values, bytes int) error {
	if n := t.BlockValues(); values%n != 0 {
		return fmt.Errorf("quant: a row of %d values is not whole blocks of %d, as %v needs", values, n, t)
	}
	if want := t.RowBytes(values); bytes != want {
		return fmt.Errorf("quant: %d values of %v take %d bytes, not %d", values, t, want, bytes)
	}
	return nil
}

func half(b []byte) float32 { return F16ToF32(binary.LittleEndian.Uint16(b)) }

func decodeF32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func decodeF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = F16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

func decodeBF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
	}
}
