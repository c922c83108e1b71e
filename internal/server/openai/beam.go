package openai

import (
	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/engine"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/wire"
)

// beaming are the fields of a beam search, as vLLM has them: n is its width and how many answers it gives.
type beaming struct {
	Search  bool     `json:"use_beam_search"`
	Penalty *float64 `json:"length_penalty"`
}

// checkBeams refuses what a search has no place for.
func (s *sampling) checkBeams() error {
	if !s.Search {
		return nil
	}
	if s.N != nil && *s.N > engine.MaxWidth {
		return wire.Errorf("n", "is %d; a beam search has a width of %d at most", *s.N, engine.MaxWidth)
	}
	for _, f := range []struct {
		given bool
		name  string
	}{
		{s.Stream, "stream"}, {len(s.Stop) > 0, "stop"}, {s.MinTokens != nil && *s.MinTokens > 0, "min_tokens"}, {s.PromptLogProbs != nil, "prompt_logprobs"},
		{s.BestOf != nil, "best_of"}, {s.Allowed != nil, "allowed_token_ids"}, {len(s.BadWords) > 0, "bad_words"}, {len(s.LogitBias) > 0, "logit_bias"},
	} {
		if f.given {
			return server.Invalid(f.name, f.name+" does not go with use_beam_search")
		}
	}
	return nil
}

// beams runs a search and returns its answers, the best first.
func (s *sampling) beams(x *server.Exchange, h held, r spillway.Request, width int) ([]*spillway.Answer, error) {
	o := spillway.BeamOptions{Width: width, LengthPenalty: 1}
	if s.Penalty != nil {
		o.LengthPenalty = *s.Penalty
	}
	found, err := x.Beams(h.Held, r, o)
	if err != nil {
		return nil, err
	}
	answers := make([]*spillway.Answer, len(found))
	for i := range found {
		answers[i] = &found[i].Answer
		answers[i].Content = answers[i].Text
	}
	return answers, nil
}
