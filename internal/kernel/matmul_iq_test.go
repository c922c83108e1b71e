package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/spillway/spillway/internal/quant"
)

// tameScales gives a block of a type whose scale is no f16 number of its own an ordinary one.
func tameScales(rng *rand.Rand, t quant.Type, b []byte) {
	switch t {
	case quant.IQ1M:
		spreadScale(b, quant.F32ToF16(float32(rng.NormFloat64()*0.01)))
	case quant.MXFP4:
		b[0] = byte(115 + rng.IntN(10))
	case quant.NVFP4:
		for i := range 4 {
			b[i] = byte(rng.IntN(0x50))
		}
	default:
		tameRow(rng, t, b)
	}
}

// goldenScales is tameScales for goldens.
func goldenScales(s *source, t quant.Type, b []byte) {
	switch t {
	case quant.IQ1M:
		spreadScale(b, uint16(0x2000+s.next()%0x1000))
	case quant.MXFP4:
		b[0] = byte(115 + s.next()%10)
	}
}

// spreadScale puts the f16 number of a block of IQ1_M into the top nibbles of its last four words.
func spreadScale(b []byte, h uint16) {
	for i := range 4 {
		b[49+2*i] = b[49+2*i]&15 | byte(h>>(4*i)&15)<<4
	}
}

// tableTypes are the formats with loops of their own, over tables of points or without.
var tableTypes = []quant.Type{
	quant.IQ1S, quant.IQ1M, quant.IQ2XXS, quant.IQ2XS, quant.IQ2S, quant.IQ3XXS, quant.IQ3S, quant.IQ4XS,
	quant.TQ1_0, quant.TQ2_0, quant.Q1_0, quant.Q2_0, quant.MXFP4, quant.NVFP4,
}

func TestTableProductsAllocateNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(43, 44))
	p := NewPool(2)
	defer p.Close()
	for _, typ := range tableTypes {
		w := randomWeights(rng, typ, 64, 512, false)
		for _, batch := range []int{1, 3} {
			a := makeActs(batch, 512, make([]float32, batch*512))
			out, scratch := make([]float32, batch*64), make([]byte, ScratchBytes(2, 512))
			if n := testing.AllocsPerRun(100, func() { MatMul(p, scratch, w, a, out, 64, false) }); n >= 1 {
				t.Errorf("%v, %d rows: %v allocations", typ, batch, n)
			}
		}
	}
}

// Every byte pattern that a scale of one byte can be gives the same bits.
func TestMatMulEveryByteScale(t *testing.T) {
	rng := rand.New(rand.NewPCG(45, 46))
	x := make([]float32, 2*256)
	fillNormal(rng, x)
	x[3], x[70], x[200] = 0x1p-120, 0x1p-90, 0x1p100
	for typ, scales := range map[quant.Type]int{quant.MXFP4: 1, quant.NVFP4: 4} {
		w := randomWeights(rng, typ, 256, 256, false)
		for i := range w.Rows {
			row := w.row(i)
			for at := 0; at < len(row); at += typ.BlockBytes() {
				for k := range scales {
					row[at+k] = byte(i + k*at)
				}
			}
		}
		checkBatches(t, w, x)
	}
}

// checkBatches compares one and two rows of activations under every instruction set with the definition.
func checkBatches(t *testing.T, w Weights, x []float32) {
	t.Helper()
	want := referenceMatMul(w, x, false)
	for _, isa := range ISAs() {
		restore := Force(isa)
		for batch := 1; batch <= 2; batch++ {
			got := runMatMul(2, w, makeActs(batch, w.Cols, x), false)
			diffFloats(t, fmt.Sprint(w.Type, " ", isa, " ", batch), got, want[:len(got)])
		}
		restore()
	}
}

// FuzzTableProducts compares the loops with the definition on blocks of any bits.
func FuzzTableProducts(f *testing.F) {
	f.Add(uint8(0), uint8(1), []byte{0xff, 0x7b, 0x12, 0x34, 0x80})
	f.Add(uint8(11), uint8(3), []byte{0x7f, 0x00, 0xff})
	f.Fuzz(func(t *testing.T, which, blocks uint8, bits []byte) {
		if len(bits) == 0 {
			return
		}
		typ := tableTypes[int(which)%len(tableTypes)]
		cols := typ.BlockValues() * (1 + int(blocks)%9)
		w := Weights{Type: typ, Rows: 3, Cols: cols}
		w.Data = make([]byte, w.Rows*w.rowBytes())
		for i := range w.Data {
			w.Data[i] = bits[i%len(bits)] + byte(i/len(bits))
		}
		x := make([]float32, 2*cols)
		fillNormal(rand.New(rand.NewPCG(uint64(which), uint64(blocks))), x)
		checkBatches(t, w, x)
	})
}
