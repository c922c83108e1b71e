package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkScaledFloats multiplies 1, 8 and 512 rows of activations with 2 MB of the formats of safetensors that the
// float path takes, which caches hold.
func BenchmarkScaledFloats(b *testing.B) {
	for _, t := range productTypes() {
		if !t.IsFloat() || intFormats[t] != nil || t.BlockValues() == 1 {
			continue
		}
		for _, isa := range nativeISAs() {
			for _, batch := range []int{1, 8, 512} {
				b.Run(fmt.Sprintf("%v/%s/%d", t, isa, batch), func(b *testing.B) {
					defer Force(isa)()
					benchProduct(b, 1, benchWeights(make([]byte, 2<<20), t, 2048), batch)
				})
			}
		}
	}
}

// BenchmarkMatMulAll multiplies one row with three small matrices in one go, as a layer's q, k and v.
func BenchmarkMatMulAll(b *testing.B) {
	const cols = 576
	for _, threads := range threadCounts() {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			x := make([]float32, cols)
			fillNormal(rand.New(rand.NewPCG(7, 8)), x)
			a, bytes := makeActs(1, cols, x), 0
			var all []Output
			for _, rows := range []int{576, 192, 192} {
				w := randomWeights(rand.New(rand.NewPCG(5, 6)), matmulTypes()[2], rows, cols, false)
				all = append(all, Output{W: w, Out: make([]float32, rows), Stride: rows})
				bytes += len(w.Data)
			}
			p := NewPool(threads)
			defer p.Close()
			scratch := make([]byte, ScratchBytes(threads, cols))
			b.SetBytes(int64(bytes))
			for b.Loop() {
				MatMulAll(p, scratch, a, false, all)
			}
		})
	}
}

// BenchmarkQuantize rounds rows of activations to 16 bits, under every instruction set.
func BenchmarkQuantize(b *testing.B) {
	x := make([]float32, 64*4096)
	fillNormal(rand.New(rand.NewPCG(7, 8)), x)
	for _, isa := range ISAs() {
		for _, rows := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", isa, rows), func(b *testing.B) {
				defer Force(isa)()
				a := MakeActs(make([]byte, ActsBytes(rows, 4096, true)), rows, 4096, true)
				p := NewPool(1)
				defer p.Close()
				b.SetBytes(int64(rows * 4096 * 4))
				for b.Loop() {
					a.SetRows(p, x, 4096)
				}
			})
		}
	}
}

// BenchmarkAttentionCache computes a chunk of 64 rows at depth 2048 over every type of the cache.
func BenchmarkAttentionCache(b *testing.B) {
	s := AttentionShape{32, 8, 128, 128}
	for typ := range cacheTypes {
		b.Run(typ.String(), func(b *testing.B) { benchAttention(b, s, benchSegment(typ, s, 2048+64, 64)) })
	}
}

// BenchmarkNorm is a whole RMS norm, BenchmarkRope the rotation of 32 heads of 128 and the angles of a position.
func BenchmarkNorm(b *testing.B) {
	s := source(53)
	x, w := s.floats(2048), s.floats(2048)
	y := make([]float32, len(x))
	b.SetBytes(int64(8 * len(x)))
	for b.Loop() {
		RMSNorm(y, x, w, 1e-5)
	}
}

func BenchmarkRope(b *testing.B) {
	s := source(54)
	x, inverse := s.floats(32*128), s.floats(64)
	cos, sin := make([]float32, 64), make([]float32, 64)
	RopeAngles(cos, sin, 7, inverse, 1)
	for name, interleaved := range map[string]bool{"halves": false, "interleaved": true} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(4 * len(x)))
			for b.Loop() {
				for at := 0; at < len(x); at += 128 {
					Rope(x[at:at+128], cos, sin, interleaved)
				}
			}
		})
	}
	b.Run("angles", func(b *testing.B) {
		b.SetBytes(int64(4 * len(inverse)))
		for b.Loop() {
			RopeAngles(cos, sin, 4711, inverse, 1)
		}
	})
}

// BenchmarkRest has what runs once a token.
func BenchmarkRest(b *testing.B) {
	s := source(55)
	x, y := s.floats(49152), s.floats(49152)
	for _, c := range []struct {
		name  string
		bytes int
		run   func()
	}{
		{"argMax", 4, func() { ArgMax(x) }},
		{"addScaled", 8, func() { AddScaled(y, 1e-9, x) }},
		{"allFinite", 4, func() { AllFinite(x) }},
		{"siluMul", 12, func() { SiLUMul(y, x, x) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(c.bytes * len(x)))
			for b.Loop() {
				c.run()
			}
		})
	}
}

// BenchmarkFanOut starts and joins threads that have one task each, which does nothing.
func BenchmarkFanOut(b *testing.B) {
	for _, threads := range threadCounts() {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			p := NewPool(threads)
			defer p.Close()
			for b.Loop() {
				p.Run(threads, func(_, _ int) {})
			}
		})
	}
}
