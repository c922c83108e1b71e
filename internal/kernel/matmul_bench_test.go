package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkDecode multiplies one row of activations with 48 MB of weights, more than caches hold.
func BenchmarkDecode(b *testing.B) {
	for _, t := range matmulTypes() {
		for threads := 1; threads <= 2; threads++ {
			b.Run(fmt.Sprintf("%v/%d", t, threads), func(b *testing.B) {
				const cols = 2048
				benchMatMul(b, threads, Weights{Type: t, Rows: 48 << 20 / t.RowBytes(cols), Cols: cols}, 1)
			})
		}
	}
}

// BenchmarkRows multiplies rows of activations with 2 MB of weights, which caches hold.
func BenchmarkRows(b *testing.B) {
	for _, t := range matmulTypes() {
		for _, isa := range ISAs() {
			for _, batch := range []int{1, 2, 8, 64, 512} {
				b.Run(fmt.Sprintf("%v/%s/%d", t, isa, batch), func(b *testing.B) {
					if isa == "go" && batch > 1 {
						b.Skip("skipped: the reference is as slow for every row")
					}
					defer Force(isa)()
					const cols = 2048
					benchMatMul(b, 1, Weights{Type: t, Rows: 2 << 20 / t.RowBytes(cols) &^ 15, Cols: cols}, batch)
				})
			}
		}
	}
}

func benchMatMul(b *testing.B, threads int, w Weights, batch int) {
	rng := rand.New(rand.NewPCG(5, 6))
	w.Data = make([]byte, w.Rows*w.rowBytes())
	sample := randomWeights(rng, w.Type, 16, w.Cols, false)
	for at := 0; at < len(w.Data); {
		at += copy(w.Data[at:], sample.Data)
	}
	x := make([]float32, batch*w.Cols)
	fillNormal(rng, x)
	a := makeActs(batch, w.Cols, x)
	p := NewPool(threads)
	defer p.Close()
	out := make([]float32, batch*w.Rows)
	scratch := make([]byte, ScratchBytes(threads, w.Cols))
	b.SetBytes(int64(len(w.Data)))
	for b.Loop() {
		MatMul(p, scratch, w, a, out, w.Rows, false)
	}
	b.ReportMetric(2*float64(batch*w.Rows*w.Cols)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

func BenchmarkSetRow(b *testing.B) {
	x := make([]float32, 4096)
	fillNormal(rand.New(rand.NewPCG(7, 8)), x)
	for rows := 1; rows <= 2; rows++ {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			a := MakeActs(make([]byte, ActsBytes(rows, len(x), true)), rows, len(x), true)
			b.SetBytes(int64(len(x) * 4))
			for b.Loop() {
				a.SetRow(0, x)
			}
		})
	}
}
