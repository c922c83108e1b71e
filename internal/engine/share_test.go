package engine_test

import (
	"slices"
	"testing"

	"github.com/spillway/spillway/internal/engine"
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/nn"
)

// longer is a rotation that depends on the length beyond 64 positions.
type longer struct{}

func (longer) Frequencies(dim int, base float64, length int) ([]float32, float32) {
	return kernel.InvFreq(dim, base*float64(max(length, 64))), 1
}
func (longer) Length(n int) int { return max(n, 64) }

// Blocks are shared only where all that their bits depend on is the same: tokens, rotation, adapter.
func TestWhatIsShared(t *testing.T) {
	b := setup{scaling: longer{}}.start(t)
	m := b.Model.Layout.Bundles[3].Matrices[2]
	adapter := func(id int) *nn.Adapter {
		p := nn.LowRank{Rank: 1, A: make([]float32, m.Cols), B: make([]float32, m.Rows)}
		for i := range p.A {
			p.A[i] = float32(i%5) * 0.1
		}
		for i := range p.B {
			p.B[i] = float32(i%3) * 0.1
		}
		return &nn.Adapter{ID: id, Scale: 1, Parts: map[*layout.Matrix]nn.LowRank{m: p}}
	}
	ids := make([]int32, 40)
	for _, c := range []struct {
		name  string
		r     engine.Request
		found int
	}{
		{"the first", engine.Request{MaxTokens: 10}, 0},
		{"the same", engine.Request{MaxTokens: 10}, 32},
		{"another length that rotates alike", engine.Request{MaxTokens: 20}, 32},
		{"one that does not", engine.Request{MaxTokens: 50}, 0},
		{"that one again", engine.Request{MaxTokens: 50}, 32},
		{"its rotation, for fewer tokens", engine.Request{MaxTokens: 10, RopeLength: 90}, 32},
		{"an adapter", engine.Request{MaxTokens: 10, Adapter: adapter(1)}, 0},
		{"the same adapter", engine.Request{MaxTokens: 10, Adapter: adapter(1)}, 32},
		{"another", engine.Request{MaxTokens: 10, Adapter: adapter(2)}, 0},
		{"one without a name", engine.Request{MaxTokens: 10, Adapter: adapter(0)}, 0},
		{"that one again", engine.Request{MaxTokens: 10, Adapter: adapter(0)}, 0},
		{"a private one", engine.Request{MaxTokens: 10, Private: true}, 0},
	} {
		c.r.IDs = ids
		got, e := b.run(t, c.r)
		if e.Reason != engine.Length || e.Reused != c.found {
			t.Errorf("%s: %d positions were found (%+v), expected %d", c.name, e.Reused, e, c.found)
		}
		c.r.Private = true
		if want, _ := b.run(t, c.r); !slices.Equal(got, want) {
			t.Errorf("%s: %v, computed anew %v", c.name, got, want)
		}
	}
}
