package spillway

import (
	"context"
	"errors"

	"github.com/spillway/spillway/internal/engine"
	"github.com/spillway/spillway/internal/nn"
)

// Probe is one look at what a model computes. Its functions run between the steps of all requests: they
// must not call the model, and what they receive is valid during the call only.
type Probe struct {
	IDs    []int32
	Greedy int // tokens to add, greedily and whatever their meaning

	// Rows receives the logits (of an embedding model: the final hidden state) of every position of
	// the prompt, in order.
	Rows func(position int, values []float32) error
	// Tap receives intermediate values of the prompt, chunk by chunk: rows × width.
	Tap func(name string, rows, width int, values []float32)
	// Logits receives the logits that each added token is chosen from.
	Logits func(position int, logits []float32)
}

// Probe runs a prompt and returns the tokens that were added.
func (m *Model) Probe(ctx context.Context, p Probe) ([]int32, error) {
	leave, err := m.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	s, err := m.submit(ctx, engine.Request{
		IDs: p.IDs, MaxTokens: p.Greedy, Rows: p.Rows, Tap: p.Tap, Logits: p.Logits,
	})
	if err != nil {
		return nil, err
	}
	var added []int32
	for e := s.Next(); ; e = s.Next() {
		if e.Done {
			return added, e.Err
		}
		added = append(added, e.ID)
	}
}

// EmbedProbe is Embed of an embedding model's ids with a look at what is computed on the way, in the same pass.
func (m *Model) EmbedProbe(ctx context.Context, p Probe) ([]float32, error) {
	if m.model.Pooling() == nn.PoolNone {
		return nil, errors.New("the model gives text, not vectors")
	}
	pooler, rows := nn.NewPooler(m.model.Pooling(), m.model.Layout.Hidden), p.Rows
	p.Rows = func(position int, hidden []float32) error {
		pooler.Add(hidden)
		if rows == nil {
			return nil
		}
		return rows(position, hidden)
	}
	if _, err := m.Probe(ctx, p); err != nil {
		return nil, err
	}
	return pooler.Vector(), nil
}
