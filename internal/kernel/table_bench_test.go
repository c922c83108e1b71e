package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/quant"
)

// productTypes are all formats that MatMul takes as they are stored: those of matmulTypes and the scaled floats
// of safetensors.
func productTypes() []quant.Type {
	types := matmulTypes()
	for t := quant.E4M3x32; t <= quant.FP4x64; t++ {
		types = append(types, t)
	}
	slices.Sort(types)
	return types
}

// threadCounts are one and all processors.
func threadCounts() []int { return slices.Compact([]int{1, runtime.NumCPU()}) }

// nativeISAs are the sets with loops in assembly; the Go loops where there are none.
func nativeISAs() []string { return ISAs()[min(1, len(ISAs())-1):] }

// BenchmarkTable measures what bench/kernels puts into docs/kernels.md: the limits of the machine, then for each format
// the product with one row of activations over more weights than caches hold, and with 512 rows.
func BenchmarkTable(b *testing.B) {
	const readBytes, cols = 96 << 20, 2048
	buf := make([]byte, readBytes)
	for i := range buf {
		buf[i] = byte(i)
	}
	for _, threads := range threadCounts() {
		b.Run(fmt.Sprintf("read/threads=%d", threads), func(b *testing.B) { benchRead(b, buf, threads) })
	}
	for _, isa := range nativeISAs() {
		b.Run("peak/"+isa, func(b *testing.B) { benchPeak(b, isa) })
	}
	for _, t := range productTypes() {
		w := benchWeights(buf, t, cols)
		for _, isa := range nativeISAs() {
			for _, threads := range threadCounts() {
				b.Run(fmt.Sprintf("decode/%s/threads=%d/%v", isa, threads, t), func(b *testing.B) {
					defer Force(isa)()
					benchProduct(b, threads, w, 1)
				})
			}
			b.Run(fmt.Sprintf("prefill/%s/%v", isa, t), func(b *testing.B) {
				defer Force(isa)()
				few := w
				few.Rows = 1 << 20 / cols
				benchProduct(b, 1, few, 512)
			})
		}
	}
}

// benchWeights fills buf with rows of t.
func benchWeights(buf []byte, t quant.Type, cols int) Weights {
	w := Weights{Type: t, Rows: len(buf) / t.RowBytes(cols) &^ 15, Cols: cols}
	w.Data = buf[:w.Rows*w.rowBytes()]
	sample := benchSample(t, 16, cols)
	for at := 0; at < len(w.Data); {
		at += copy(w.Data[at:], sample.Data)
	}
	return w
}

// benchSample returns rows of ordinary numbers; the scaled floats, which have no encoder, get random codes.
func benchSample(t quant.Type, rows, cols int) Weights {
	rng := rand.New(rand.NewPCG(5, 6))
	codes, _ := t.Codes()
	if codes == 0 || !t.IsFloat() {
		return randomWeights(rng, t, rows, cols, false)
	}
	w := Weights{Type: t, Rows: rows, Cols: cols, Data: make([]byte, rows*t.RowBytes(cols))}
	for at := 0; at < len(w.Data); at += t.BlockBytes() {
		b := w.Data[at : at+t.BlockBytes()]
		binary.LittleEndian.PutUint32(b, math.Float32bits(0.01))
		for i := codes; i < len(b); i++ {
			b[i] = byte(rng.Uint32()) &^ 0x40 // so that no code is NaN or infinite
		}
	}
	return w
}

func benchProduct(b *testing.B, threads int, w Weights, batch int) {
	x := make([]float32, batch*w.Cols)
	fillNormal(rand.New(rand.NewPCG(7, 8)), x)
	a := makeActs(batch, w.Cols, x)
	p := NewPool(threads)
	defer p.Close()
	out := make([]float32, batch*w.Rows)
	scratch := make([]byte, ScratchBytes(threads, w.Cols))
	b.SetBytes(int64(w.Rows * w.rowBytes()))
	for b.Loop() {
		MatMul(p, scratch, w, a, out, w.Rows, false)
	}
	reportOperations(b, 2*float64(batch*w.Rows*w.Cols))
}

// reportOperations shows operations per second, where each turn of the loop has so many.
func reportOperations(b *testing.B, each float64) {
	b.ReportMetric(each*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gop/s")
}

// benchRead is what machine.ReadBandwidth says, which takes longer than a short benchmark.
func benchRead(b *testing.B, buf []byte, threads int) {
	var best float64
	for b.Loop() {
		best = max(best, machine.ReadBandwidth(buf, threads))
	}
	b.ReportMetric(best/1e6, "MB/s")
}

func benchPeak(b *testing.B, isa string) {
	defer Force(isa)()
	p := NewPool(1)
	defer p.Close()
	var float, integer float64
	for b.Loop() {
		f, i := Peak(p)
		float, integer = max(float, f), max(integer, i)
	}
	b.ReportMetric(float/1e9, "float-Gop/s")
	b.ReportMetric(integer/1e9, "integer-Gop/s")
}
