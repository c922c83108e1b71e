package kernel

import "testing"

// BenchmarkVector runs each loop over values that stay in the first-level cache; a second is worth what
// it reads.
func BenchmarkVector(b *testing.B) {
	const n = 2048
	s := source(51)
	x, y, z, half := s.floats(n), s.floats(n), s.floats(n), make([]uint16, n)
	v := &active.vector
	for _, c := range []struct {
		name  string
		bytes int64
		run   func()
	}{
		{"sumSquares", 4 * n, func() { v.sumSquares(x) }},
		{"scaleWeight", 8 * n, func() { v.scaleWeight(z, x, y, 0.5) }},
		{"siluMul", 8 * n, func() { v.siluMul(z, x, y) }},
		{"add", 8 * n, func() { v.add(z, x) }},
		{"scale", 4 * n, func() { v.scale(z, 1) }},
		{"divide", 4 * n, func() { v.divide(z, x, 3) }},
		{"ropeHalves", 12 * n, func() { v.ropeHalves(z[:n/2], z[n/2:], x[:n/2], y[:n/2]) }},
		{"ropePairs", 12 * n, func() { v.ropePairs(z, x[:n/2], y[:n/2]) }},
		{"toF16", 4 * n, func() { v.toF16(half, x) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(c.bytes)
			for b.Loop() {
				c.run()
			}
		})
	}
}

func BenchmarkSoftmax(b *testing.B) {
	const lines = 32
	s := source(52)
	scores, m, l := s.floats(lines*attnTile), make([]float32, lines), make([]float32, lines)
	p, lo, hi := clone(scores), make([]int32, lines), make([]int32, lines)
	for i := range hi {
		hi[i] = attnTile
	}
	b.SetBytes(int64(4 * len(scores)))
	for b.Loop() {
		copy(p, scores)
		active.vector.attnSoftmax(p, lo, hi, m, l, lines, 0.125)
	}
}
