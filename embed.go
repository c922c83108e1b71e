package spillway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spillway/spillway/internal/engine"
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/nn"
)

// EmbedRequest asks for the vector of a text.
type EmbedRequest struct {
	Text string  // encoded as the model's tokenizer does, without a chat template
	IDs  []int32 // instead of Text
	// Dimensions cuts the vector to its first values and scales it to length 1 again, for models that were trained
	// for that; 0: all.
	Dimensions int
	Priority   int       // as of a Request
	Deadline   time.Time // likewise
}

// Usage is what a request cost in tokens.
type Usage struct{ PromptTokens, CachedTokens int }

// Embed returns the vector of a text, scaled to length 1: the hidden states after the last norm, pooled as the
// model says (sentence-transformers' 1_Pooling/config.json, GGUF's pooling_type); those of a language model give
// the last token's. Any model that decodes has one.
func (m *Model) Embed(ctx context.Context, r EmbedRequest) ([]float32, Usage, error) {
	ids, err := m.embedIDs(r)
	if err != nil {
		return nil, Usage{}, err
	}
	leave, err := m.enter()
	if err != nil {
		return nil, Usage{}, err
	}
	defer leave()
	pooling := m.model.Pooling()
	if pooling == nn.PoolNone {
		pooling = nn.PoolLast
	}
	pooler := nn.NewPooler(pooling, m.Layout().Hidden)
	e, err := m.run(ctx, engine.Request{
		IDs: ids, Priority: r.Priority, Deadline: r.Deadline, Hidden: true, LastRow: pooling == nn.PoolLast,
		Rows: func(_ int, hidden []float32) error { pooler.Add(hidden); return nil },
	})
	if err != nil {
		return nil, Usage{}, err
	}
	v := pooler.Vector()
	if n := r.Dimensions; n > 0 && n < len(v) {
		v = v[:n:n]
		kernel.Normalize(v)
	}
	return v, Usage{PromptTokens: len(ids), CachedTokens: e.Reused}, nil
}

// embedIDs checks the request and returns the tokens of its text.
func (m *Model) embedIDs(r EmbedRequest) ([]int32, error) {
	if r.Dimensions < 0 || r.Dimensions > m.Layout().Hidden {
		return nil, fmt.Errorf("%d dimensions are not possible: the model's vectors have %d", r.Dimensions, m.Layout().Hidden)
	}
	ids := r.IDs
	if ids == nil {
		var err error
		if ids, err = m.encode(prompt{text: r.Text, special: true}); err != nil {
			return nil, err
		}
	}
	if len(ids) == 0 {
		return nil, errors.New("the text has no tokens")
	}
	return ids, nil
}

// run makes a request without an answer and returns its last event.
func (m *Model) run(ctx context.Context, r engine.Request) (engine.Event, error) {
	s, err := m.submit(ctx, r)
	if err != nil {
		return engine.Event{}, err
	}
	e := s.Next()
	if e.Reason == engine.Cancelled && ctx.Err() == nil {
		e.Err = errModelClosed
	}
	return e, e.Err
}
