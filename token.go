package spillway

import (
	"github.com/spillway/spillway/internal/engine"
	"github.com/spillway/spillway/internal/sample"
	"github.com/spillway/spillway/internal/tokenizer"
)

// Token is a token of an answer or a prompt. Probabilities are the model's own, before anything that
// Sampling does to them: the logarithm of the softmax of the logits.
type Token struct {
	ID      int32
	Bytes   []byte      // what the token adds to the text; it may end in the midst of a character
	LogProb float32     // with Request.LogProbs or PromptLogProbs
	Top     []TokenProb // the likeliest tokens in falling order, Request.TopLogProbs of them
}

// TokenProb is a token that might have come.
type TokenProb struct {
	ID      int32
	Bytes   []byte
	LogProb float32
}

// MaxTopLogProbs is the most that Request.TopLogProbs may be.
const MaxTopLogProbs = 20

// Constraint says which tokens an answer may have; see Request.Constraint.
type Constraint = engine.Constraint

// tokenBytes is what a token adds to a text; nil without a tokenizer.
func tokenBytes(t *tokenizer.Tokenizer, id int32) []byte {
	if t == nil {
		return nil
	}
	b, _ := t.Bytes(id) // an id that the model can choose and the tokenizer does not know adds nothing
	return b
}

func tokenProbs(t *tokenizer.Tokenizer, list []sample.TokenLogProb) []TokenProb {
	var out []TokenProb
	for _, p := range list {
		out = append(out, TokenProb{p.ID, tokenBytes(t, p.ID), p.LogProb})
	}
	return out
}

// promptLogProbs lets the engine note the probabilities of the prompt's tokens: those of each come from the
// logits of the one before it.
func (m *Model) promptLogProbs(r Request, req *engine.Request, a *Answer) {
	for _, id := range req.IDs {
		a.PromptTokens = append(a.PromptTokens, Token{ID: id, Bytes: tokenBytes(m.tok, id)})
	}
	req.Rows = func(position int, logits []float32) error {
		if position+1 == len(a.PromptTokens) {
			return nil
		}
		t := &a.PromptTokens[position+1]
		prob, top := sample.LogProbs(logits, t.ID, r.TopLogProbs)
		t.LogProb, t.Top = prob, tokenProbs(m.tok, top)
		return nil
	}
}
