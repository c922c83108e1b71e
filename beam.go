package spillway

import (
	"context"
	"errors"

	"github.com/spillway/spillway/internal/engine"
)

// BeamOptions shape a beam search; see Model.Beam.
type BeamOptions = engine.Beams

// Beam is an answer that a beam search found.
type Beam struct {
	Answer
	LogProb float64 // the sum of its tokens' log probabilities, that of its end included
	Score   float64 // by which answers are ranked
}

// Beam searches for the likeliest answers and returns them, Width at most, the best first. The request's sampling,
// stop texts, constraints and conversation have no place in it; its prompt, MaxTokens, StopIDs and deadline do.
func (m *Model) Beam(ctx context.Context, r Request, o BeamOptions) ([]Beam, error) {
	leave, err := m.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := m.check(r); err != nil {
		return nil, err
	}
	if len(r.Stop) > 0 || r.Constraint != nil || r.Conversation != nil || r.PromptLogProbs || r.MinTokens > 0 {
		return nil, errors.New("a beam search knows no stop texts, constraints, conversations, least lengths and prompt probabilities")
	}
	a := Answer{}
	if a.PromptIDs, err = m.Tokens(r); err != nil {
		return nil, err
	}
	r.Sampling = &Sampling{}
	req, err := m.request(r, &a)
	if err != nil {
		return nil, err
	}
	req.Beams = &o
	e, err := m.run(ctx, req)
	if err != nil {
		return nil, err
	}
	a.CachedTokens = e.Reused
	return m.beams(e.Beams, a)
}

// beams spells out what a search has found.
func (m *Model) beams(list []engine.Hypothesis, a Answer) ([]Beam, error) {
	var out []Beam
	for _, h := range list {
		b := Beam{Answer: a, LogProb: h.LogProb, Score: h.Score}
		b.IDs, b.FinishReason = h.IDs, h.Reason
		if m.tok != nil {
			var err error
			if b.Text, err = m.tok.DecodeText(h.IDs, true); err != nil {
				return nil, err
			}
		}
		out = append(out, b)
	}
	return out, nil
}
