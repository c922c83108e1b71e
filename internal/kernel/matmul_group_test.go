package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spillway/spillway/internal/quant"
)

// tameRow gives a block of a row format an ordinary scale.
func tameRow(rng *rand.Rand, t quant.Type, b []byte) {
	codes, _ := t.Codes()
	if codes == 0 {
		return
	}
	scale := float32(rng.NormFloat64() * 0.01)
	if t == quant.TensorNVFP4x32 || t == quant.TensorNVFP4x128 {
		scale = 100 + float32(rng.NormFloat64())
		for i := 4; i < codes; i++ {
			b[i] = byte(rng.IntN(0x50)) | byte(rng.IntN(2)<<7)
		}
	}
	binary.LittleEndian.PutUint32(b, math.Float32bits(scale))
}

// floatRowTypes are the row formats that are decoded to f32.
var floatRowTypes = []quant.Type{
	quant.E4M3x32, quant.E4M3x128, quant.E5M2x32, quant.E5M2x128, quant.NF4x32, quant.NF4x64, quant.FP4x32, quant.FP4x64,
}

// TestFloatRowFormats compares products of every instruction set with decoded rows, for all codes and
// for scales of every kind.
func TestFloatRowFormats(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, typ := range floatRowTypes {
		for _, cols := range []int{128, 640, 256 * 70} {
			for _, wild := range []bool{false, true} {
				w := Weights{Type: typ, Rows: 9, Cols: cols}
				w.Data = make([]byte, w.Rows*w.rowBytes()+1)[1:]
				for at := range len(w.Data) / typ.BlockBytes() {
					b := w.Data[at*typ.BlockBytes():][:typ.BlockBytes()]
					for i := range b {
						b[i] = byte(rng.Uint32())
					}
					if !wild {
						tameRow(rng, typ, b)
					}
				}
				x := make([]float32, 5*cols)
				fillNormal(rng, x)
				checkRowFormat(t, w, x)
			}
		}
	}
}

func checkRowFormat(t *testing.T, w Weights, x []float32) {
	t.Helper()
	want := referenceMatMul(w, x, false)
	for _, isa := range ISAs() {
		restore := Force(isa)
		for batch := 1; batch <= len(x)/w.Cols; batch += 2 {
			p := NewPool(2)
			out := make([]float32, batch*w.Rows)
			a := makeActs(batch, w.Cols, x[:batch*w.Cols])
			MatMul(p, make([]byte, ScratchBytes(2, w.Cols)), w, a, out, w.Rows, false)
			diffFloats(t, isa+" "+w.Type.String(), out, want[:batch*w.Rows])
			p.Close()
		}
		restore()
	}
}

// TestRowFormatZeros has the zero points and codes that give the largest sums.
func TestRowFormatZeros(t *testing.T) {
	for _, typ := range []quant.Type{quant.Int4x32, quant.Int4x64, quant.Int4x128, quant.Int8x32, quant.Int8x128, quant.LLMInt8x32, quant.LLMInt8x128} {
		for _, zero := range []byte{0, 255} {
			w := Weights{Type: typ, Rows: 3, Cols: 640}
			w.Data = make([]byte, w.Rows*w.rowBytes())
			head, _ := typ.Codes()
			for at := 0; at < len(w.Data); at += typ.BlockBytes() {
				b := w.Data[at:][:typ.BlockBytes()]
				binary.LittleEndian.PutUint32(b, math.Float32bits(1))
				b[4] = zero
				for i := range b[head:] {
					b[head+i] = ^zero
				}
			}
			x := make([]float32, 5*w.Cols)
			for i := range x {
				x[i] = 32767.0 / 32768
			}
			checkRowFormat(t, w, x)
		}
	}
}

// BenchmarkFloatRowFormats multiplies one row of activations with 32 MB of weights, and 128 rows with
// some that caches hold.
func BenchmarkFloatRowFormats(b *testing.B) {
	for _, t := range floatRowTypes {
		for _, batch := range []int{1, 128} {
			b.Run(fmt.Sprintf("%v/%d", t, batch), func(b *testing.B) {
				w := Weights{Type: t, Rows: 1024, Cols: 2048}
				if batch == 1 {
					w.Rows = 32 << 20 / w.rowBytes()
				}
				w.Data = make([]byte, w.Rows*w.rowBytes())
				x := make([]float32, batch*w.Cols)
				a, out := makeActs(batch, w.Cols, x), make([]float32, batch*w.Rows)
				p, scratch := NewPool(1), make([]byte, ScratchBytes(1, w.Cols))
				defer p.Close()
				b.SetBytes(int64(len(w.Data)))
				if batch > 1 {
					b.SetBytes(int64(2 * batch * w.Rows * w.Cols))
				}
				for b.Loop() {
					MatMul(p, scratch, w, a, out, w.Rows, false)
				}
			})
		}
	}
}
