package nn

import "github.com/spillway/spillway/internal/kernel"

// Pooler makes one vector of a text's hidden states, in the order of docs/numerics.md.
type Pooler struct {
	kind   Pooling
	vector []float32
	rows   int
}

// NewPooler pools hidden states of width values.
func NewPooler(kind Pooling, width int) *Pooler {
	return &Pooler{kind: kind, vector: make([]float32, width)}
}

// Add takes the hidden state of the next position.
func (p *Pooler) Add(hidden []float32) {
	p.rows++
	if p.kind == PoolLast {
		copy(p.vector, hidden)
		return
	}
	kernel.Add(p.vector, hidden)
}

// Vector returns the pooled vector, scaled to length 1. It ends the pooling.
func (p *Pooler) Vector() []float32 {
	if p.kind == PoolMean && p.rows > 0 {
		kernel.Scale(p.vector, 1/float32(p.rows))
	}
	kernel.Normalize(p.vector)
	return p.vector
}
