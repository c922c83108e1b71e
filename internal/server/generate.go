package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server/pool"
)

// An Observer is told what the server does, for metrics. Calls come from many goroutines.
type Observer interface {
	// Token is called for every token of an answer; gap is the time since the one before it, or since the
	// request came if it is the first.
	Token(model string, first bool, gap time.Duration)
	// Done is called once for every answer that was asked for.
	Done(g Generation)
}

// A Generation is what came of one answer.
type Generation struct {
	Model                  string
	Request                string // its id
	Trace                  string // the request's traceparent; empty without one
	Prompt, Cached, Answer int    // tokens
	First, Total           time.Duration
	Reason                 string // as of spillway.Answer; empty with Err
	Err                    error
}

const (
	idBytes    = 32  // of heap for each token of a prompt or an answer, with its text
	probBytes  = 192 // and for what is told of its probability, and of each of the likeliest
	plainBytes = 64 << 10
)

// Prepare makes the tokens of a request's prompt, with its memory leased, and checks that the answer fits
// the context: what it passes only the engine's queue can refuse. text is how many bytes of text the prompt
// is made of; answers is how many will be generated from it.
func (x *Exchange) Prepare(h *pool.Held, r *spillway.Request, text int64, answers int) error {
	return x.PrepareBy(h, r, text, answers, h.Tokens)
}

// PrepareBy is Prepare of a prompt whose tokens, unless the request has them, come from encode, which may be called twice.
func (x *Exchange) PrepareBy(h *pool.Held, r *spillway.Request, text int64, answers int, encode func(spillway.Request) ([]int32, error)) error {
	r.Dialects = over(x.Server.options.Dialects, r.Dialects)
	if h.Embedding() {
		return Invalid("model", fmt.Sprintf("the model %s gives vectors, not text", h.Name))
	}
	if r.IDs == nil {
		ids, err := x.EncodeRequest(h, *r, text, encode)
		if err != nil {
			return err
		}
		r.IDs, r.Messages, r.Prompt = ids, nil, ""
	}
	if err := checkLength(h, *r); err != nil {
		return err
	}
	x.Note(slog.Int("prompt_tokens", len(r.IDs)))
	return x.LeaseAnswers(h, *r, answers)
}

// PrepareEmbed makes the tokens of a text whose vector is asked for; text is its bytes.
func (x *Exchange) PrepareEmbed(h *pool.Held, r *spillway.EmbedRequest, text int64) error {
	if r.IDs == nil {
		ids, err := x.Encode(h, text, func() ([]int32, error) { return h.Tokens(spillway.Request{Prompt: r.Text, Raw: true}) })
		if err != nil {
			return err
		}
		r.IDs, r.Text = ids, ""
	}
	if most := h.Options().Context; len(r.IDs) > most {
		return &Error{Status: http.StatusBadRequest, Code: CodeTooLong,
			Message: fmt.Sprintf("the text has %d tokens, and the model's context is %d", len(r.IDs), most)}
	}
	return nil
}

// Embed returns the vector of a text, which it prepares if need be; text is its bytes.
func (x *Exchange) Embed(h *pool.Held, r spillway.EmbedRequest, text int64) ([]float32, spillway.Usage, error) {
	if err := x.PrepareEmbed(h, &r, text); err != nil {
		return nil, spillway.Usage{}, err
	}
	v, used, err := h.Embed(x.ctx, r)
	if err != nil && x.ctx.Err() != nil {
		err = context.Cause(x.ctx)
	}
	return v, used, x.outcome(h, err)
}

// Beams runs a beam search for a request that was prepared.
func (x *Exchange) Beams(h *pool.Held, r spillway.Request, o spillway.BeamOptions) ([]spillway.Beam, error) {
	beams, err := h.Beam(x.ctx, r, o)
	if err != nil && x.ctx.Err() != nil {
		err = context.Cause(x.ctx)
	}
	err = x.outcome(h, err)
	g := Generation{Model: h.Name, Prompt: len(r.IDs), Total: time.Since(x.Began), Err: err}
	for _, b := range beams {
		g.Answer += len(b.IDs)
		g.Cached, g.Reason = b.CachedTokens, b.FinishReason
	}
	if observer := x.Server.options.Observer; observer != nil {
		observer.Done(g)
	}
	return beams, err
}

// over are the dialects that a request names, else those of the server.
func over(d, own spillway.Dialects) spillway.Dialects {
	return spillway.Dialects{Tool: cmp.Or(own.Tool, d.Tool), Reasoning: cmp.Or(own.Reasoning, d.Reasoning)}
}

// Encode makes ids of a text of so many bytes, with the memory for it leased; few do it at a time.
func (x *Exchange) Encode(h *pool.Held, text int64, encode func() ([]int32, error)) ([]int32, error) {
	most := int64(h.Options().Context)
	const sure = 4 // normalizers make text shorter, but hardly by this
	if h.LongestToken > 0 && text > sure*most*int64(h.LongestToken) {
		return nil, tooLong(most)
	}
	select {
	case x.Server.encode <- struct{}{}:
		defer func() { <-x.Server.encode }()
	case <-x.ctx.Done():
		return nil, context.Cause(x.ctx)
	}
	release, err := x.Server.prompts.take(x.ctx, text*spillway.PromptCost, 0, "a prompt")
	if err != nil {
		if h.LongestToken > 0 && text > most*int64(h.LongestToken) {
			return nil, tooLong(most)
		}
		return nil, err
	}
	defer release()
	ids, err := encode()
	if err != nil {
		return nil, Invalid("", err.Error())
	}
	return ids, nil
}

func tooLong(most int64) error {
	return &Error{Status: http.StatusBadRequest, Code: CodeTooLong,
		Message: fmt.Sprintf("the prompt does not fit in the model's context of %d tokens", most)}
}

// checkLength refuses what the context does not hold.
func checkLength(h *pool.Held, r spillway.Request) error {
	n, most := len(r.IDs), h.Options().Context
	answer := max(r.MaxTokens, 1)
	if n == 0 {
		return Invalid("", "the prompt has no tokens")
	}
	if n+answer > most {
		return &Error{Status: http.StatusBadRequest, Code: CodeTooLong, Message: fmt.Sprintf(
			"the model's context is %d tokens, and the prompt of %d tokens and an answer of %d do not fit in it", most, n, answer)}
	}
	return nil
}

// LeaseAnswers leases what answers to a prepared request put on the heap beyond what every connection may.
// Prepare does it, for as many answers as it is told of.
func (x *Exchange) LeaseAnswers(h *pool.Held, r spillway.Request, answers int) error {
	most := min(h.MaxTokens(r, len(r.IDs)), max(h.Options().Context-len(r.IDs), 1))
	each := idBytes * int64(len(r.IDs)+most)
	if r.LogProbs {
		each += probBytes * int64(most) * int64(1+r.TopLogProbs)
	}
	if r.PromptLogProbs {
		each += probBytes * int64(len(r.IDs)) * int64(1+r.TopLogProbs)
	}
	n := (each + plainBytes) * int64(answers)
	if n <= plainBytes*3/2 {
		return nil
	}
	return x.Lease(n-plainBytes, "answers")
}

// Generate runs a request that was prepared. It returns an error for everything but a complete answer; with
// an answer that began, what came of it is returned beside the error.
func (x *Exchange) Generate(h *pool.Held, r spillway.Request) (*spillway.Answer, error) {
	last, first, listener := x.Began, time.Duration(0), r.OnToken
	observer := x.Server.options.Observer
	r.OnToken = func(t spillway.Token) {
		now := time.Now()
		if observer != nil {
			observer.Token(h.Name, first == 0, now.Sub(last))
		}
		if first == 0 {
			first = now.Sub(x.Began)
		}
		last = now
		if listener != nil {
			listener(t)
		}
	}
	a, err := h.Generate(x.ctx, r, nil)
	if err == nil && a.FinishReason == spillway.FinishCancelled {
		err = context.Cause(x.ctx)
	}
	err = x.outcome(h, err)
	g := Generation{Model: h.Name, Request: x.ID, Trace: x.Request.Header.Get("traceparent"), Prompt: len(r.IDs), First: first, Total: time.Since(x.Began), Err: err}
	if a != nil {
		g.Cached, g.Answer, g.Reason = a.CachedTokens, len(a.IDs), a.FinishReason
	}
	if observer != nil {
		observer.Done(g)
	}
	return a, err
}
