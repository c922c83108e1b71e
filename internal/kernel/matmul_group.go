package kernel

import (
	"encoding/binary"
	"math"

	"github.com/spillway/spillway/internal/quant"
)

// groupFormat is the integer path of a row format of quant: the zero point is folded into the integers.
func groupFormat(t quant.Type, one func(g *rawGroup, at int, b []byte, values int)) *intFormat {
	values, size := t.BlockValues(), t.BlockBytes()
	run := 32
	if t == quant.TensorNVFP4x32 || t == quant.TensorNVFP4x128 {
		run = 16
	}
	return &intFormat{run: run, bytes: groupValues / values * size, group: func(g *rawGroup, src []byte) {
		for at := 0; len(src) >= size; at, src = at+values, src[size:] {
			one(g, at, src[:size], values)
		}
	}}
}

func f32At(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }

// setScales sets the scale of the runs of 32 of a block that begins at value at.
func (g *rawGroup) setScales(at, values int, scale float32) {
	for r := at / 32; r < (at+values)/32; r++ {
		g.scale[r] = scale
	}
}

func unpackInt4(g *rawGroup, at int, b []byte, values int) {
	g.setScales(at, values, f32At(b))
	zero := int16(b[4])
	for i := 0; i < values; i += 32 {
		nibbles(g.q[at+i:at+i+32], b[5+i/2:], zero)
	}
}

func unpackInt8(g *rawGroup, at int, b []byte, values int) {
	g.setScales(at, values, f32At(b))
	zero := int16(b[4])
	q := g.q[at : at+values]
	for i, c := range b[5 : 5+values] {
		q[i] = int16(c) - zero
	}
}

func unpackLLMInt8(g *rawGroup, at int, b []byte, values int) {
	unpackInt8(g, at, b, values)
	g.setScales(at, values, f32At(b)*quant.InverseOf127)
}

// doubledE2M1 is twice the value of each four bits.
var doubledE2M1 = [16]int16{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

func unpackTensorNVFP4(g *rawGroup, at int, b []byte, values int) {
	tensor, runs := f32At(b), values/16
	for r := range runs {
		g.scale[at/16+r] = quant.E4M3ToF32(b[4+r]) / tensor * 0.5
	}
	q := g.q[at : at+values]
	for i := 0; i < values; i += 32 {
		nibbles(q[i:i+32], b[4+runs+i/2:], 0)
	}
	for i, c := range q {
		q[i] = doubledE2M1[c]
	}
}
