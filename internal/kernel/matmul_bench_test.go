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
				benchMatMul(b, threads, Weights{Type: t, Rows: 48 << 20 / t.RowBytes(cols), Cols: cols}, 1, true)
			})
		}
	}
}

// BenchmarkPrefill multiplies 128 rows of activations; MB/s are millions of operations a second.
func BenchmarkPrefill(b *testing.B) {
	for _, t := range matmulTypes() {
		for threads := 1; threads <= 2; threads++ {
			b.Run(fmt.Sprintf("%v/%d", t, threads), func(b *testing.B) {
				benchMatMul(b, threads, Weights{Type: t, Rows: 1024, Cols: 2048}, 128, false)
			})
		}
	}
}

// BenchmarkBatch multiplies few rows of activations; ns/op over the batch should fall.
func BenchmarkBatch(b *testing.B) {
	for _, t := range matmulTypes() {
		for _, batch := range []int{1, 2, 3, 4, 8} {
			b.Run(fmt.Sprintf("%v/%d", t, batch), func(b *testing.B) {
				const cols = 2048
				benchMatMul(b, 1, Weights{Type: t, Rows: 16 << 20 / t.RowBytes(cols), Cols: cols}, batch, true)
			})
		}
	}
}

func benchMatMul(b *testing.B, threads int, w Weights, batch int, bytes bool) {
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
	b.SetBytes(int64(2 * batch * w.Rows * w.Cols))
	if bytes {
		b.SetBytes(int64(len(w.Data)))
	}
	for b.Loop() {
		MatMul(p, scratch, w, a, out, w.Rows, false)
	}
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
