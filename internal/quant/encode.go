package quant

import (
	"encoding/binary"
	"fmt"
	"math"
)

// encoders are indexed by Type, as decoders are. For block types every |x| ≤ maxHalf.
var encoders = [...]func(dst []byte, src []float32){
	F32: encodeF32, F16: encodeF16, BF16: encodeBF16,
	Q1_0: encodeQ1_0, Q2_0: encodeQ2_0,
	Q2_K: encodeQ2_K, Q3_K: encodeQ3_K, Q4_K: encodeQ4_K, Q5_K: encodeQ5_K, Q6_K: encodeQ6_K,
	IQ2XXS: encodeIQ2XXS, IQ2XS: encodeIQ2XS, IQ2S: encodeIQ2S, IQ3XXS: encodeIQ3XXS, IQ3S: encodeIQ3S,
	IQ1S: encodeIQ1S, IQ1M: encodeIQ1M, IQ4NL: encodeIQ4NL, IQ4XS: encodeIQ4XS,
	TQ1_0: encodeTQ1_0, TQ2_0: encodeTQ2_0, MXFP4: encodeMXFP4, NVFP4: encodeNVFP4,
	Q4_0: encodeQ4_0, Q4_1: encodeQ4_1, Q5_0: encodeQ5_0, Q5_1: encodeQ5_1, Q8_0: encodeQ8_0,
}

// maxHalf is the largest finite half: block types keep their scales in halves.
const maxHalf = 65504

// CanEncode reports whether EncodeRow knows t.
func CanEncode(t Type) bool { return int(t) < len(encoders) && encoders[t] != nil }

// EncodeRow encodes src as one row of type t into dst. F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0,
// TQ1_0, TQ2_0 and MXFP4 give the bytes of the format's reference encoder (gguf-py); the others
// search simply, and depend on nothing but src.
//
// It is an error if t has no encoder, if len(src) is not whole blocks, if dst has not the row's
// size, or if a block type meets a value that is not finite or beyond ±65504.
func EncodeRow(t Type, dst []byte, src []float32) error {
	if !CanEncode(t) {
		return fmt.Errorf("quant: no encoder for %v", t)
	}
	if err := checkRow(t, len(src), len(dst)); err != nil {
		return err
	}
	if !t.IsFloat() {
		for i, x := range src {
			if !(x >= -maxHalf && x <= maxHalf) {
				return fmt.Errorf("quant: value %d is %v; %v holds finite values up to ±%d", i, x, t, maxHalf)
			}
		}
	}
	encoders[t](dst, src)
	return nil
}

func putHalf(b []byte, f float32) { binary.LittleEndian.PutUint16(b, F32ToF16(f)) }

func encodeF32(dst []byte, src []float32) {
	for i, x := range src {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
	}
}

func encodeF16(dst []byte, src []float32) {
	for i, x := range src {
		putHalf(dst[2*i:], x)
	}
}

func encodeBF16(dst []byte, src []float32) {
	for i, x := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], F32ToBF16(x))
	}
}

// inverse returns 1/d, or 0 where that is not finite: d is then 0 as a half.
func inverse(d float32) float32 {
	if d > -0x1p-126 && d < 0x1p-126 {
		return 0
	}
	return 1 / d
}

// peak returns the value of x with the largest magnitude; the first of equals.
func peak(x []float32) float32 {
	best := x[0]
	mag := abs(best)
	for _, v := range x[1:] {
		if a := abs(v); a > mag {
			best, mag = v, a
		}
	}
	return best
}

func extremes(x []float32) (low, high float32) {
	low, high = x[0], x[0]
	for _, v := range x[1:] {
		if v < low {
			low = v
		}
		if v > high {
			high = v
		}
	}
	return low, high
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// level truncates x to an integer in 0…top.
func level(x float32, top int) int { return min(max(int(x), 0), top) }

// round rounds to the nearest integer, ties away from zero.
func round(x float32) int {
	t := int(x)
	switch frac := x - float32(t); {
	case frac >= 0.5:
		return t + 1
	case frac <= -0.5:
		return t - 1
	}
	return t
}
