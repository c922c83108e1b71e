package spillway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/spillway/spillway/internal/engine"
	"github.com/spillway/spillway/internal/kv"
)

// Request asks for one answer. The prompt is IDs if they are given, else Messages, else Prompt.
type Request struct {
	Messages []Message // rendered by the model's chat template
	Prompt   string    // one user message; with Raw the text itself
	Raw      bool      // no chat template
	IDs      []int32

	Tools        json.RawMessage // list of tools for the template, the members of objects in order; nil: none
	TemplateArgs json.RawMessage // object of further variables for the template, such as enable_thinking
	Continue     bool            // the last message is to be continued instead of answered
	Now          time.Time       // for templates that ask for the date; zero: the time of the call
	// ParseSpecial makes tokens of control tokens that are written out in the messages or in a raw prompt.
	// Without it only those that the template writes are tokens.
	ParseSpecial bool

	// Read says what of the answer is content, reasoning or a call of a tool: in Answer, and in Events as it
	// comes (nil: nobody listens). The dialects are the model's own where Dialects names none.
	Read     bool
	Dialects Dialects
	Events   func(Event)

	// MaxTokens bounds the answer. 0 is the model's suggestion, else DefaultMaxTokens, or what the
	// trained limit leaves. A prompt and an answer that do not fit the context are refused with a
	// *TooLongError.
	MaxTokens int
	Open      bool      // without MaxTokens and the model's suggestion, the trained limit alone ends the answer
	Clip      bool      // an answer whose length MaxTokens leaves open ends where the context does
	Sampling  *Sampling // nil: the model's suggestion, else greedy
	Stop      []string  // texts that end the answer and are not part of it
	StopIDs   []int32   // tokens that end the answer and are not part of it, besides the model's own
	MinTokens int       // before so many tokens no end token and none of StopIDs is chosen
	IgnoreEnd bool      // go on after the model's end tokens
	// Constraint says what may come next; nil: everything. It belongs to this request alone.
	Constraint Constraint

	// Priority orders requests that wait, and says who gives way when memory is short: smaller ones first, 0 is
	// normal. Requests of one priority are served in order of arrival.
	Priority int
	// Deadline ends the request with a *DeadlineError, as ctx's own does; zero: none.
	Deadline time.Time

	LogProbs       bool // Answer.Tokens, with the logarithm of each token's probability
	TopLogProbs    int  // and those of so many of the likeliest tokens, at most MaxTopLogProbs
	PromptLogProbs bool // Answer.PromptTokens
	// OnToken receives each token of the answer in order, before its text is emitted; nil: nobody listens.
	OnToken func(Token)

	// Conversation keeps the cache for the next request with the same beginning; nil for none.
	Conversation *Conversation
	// Logits receives the logits that each token is chosen from. It runs between the steps of all
	// requests: it must be quick, must not call the model, and the slice is valid during the call only.
	Logits func(position int, logits []float32)
}

// Answer is what came of a request.
type Answer struct {
	Text         string // without control tokens
	Content      string // of an answer that was read: without reasoning and calls
	Reasoning    string
	ToolCalls    []ToolCall
	PromptIDs    []int32
	IDs          []int32
	Tokens       []Token // of the answer, with Request.LogProbs
	PromptTokens []Token // of the prompt, with Request.PromptLogProbs; the first has no probability
	FinishReason string  // stop, length, cancelled, deadline or error
	StopSequence string  // of Request.Stop, the text that ended the answer
	CachedTokens int     // of the prompt, found in the conversation's or the model's cache
	Prefill      time.Duration
	Decode       time.Duration // from the first token to the last
	cached       int           // positions in the cache at the end
}

// Finish reasons of an Answer.
const (
	FinishStop      = engine.Stop
	FinishLength    = engine.Length
	FinishCancelled = engine.Cancelled
	FinishDeadline  = engine.Expired
	FinishError     = engine.Failed
)

// DefaultMaxTokens bounds an answer where neither the request nor the model does.
const DefaultMaxTokens = 512

// Conversation is a cache that outlives a request: what a new prompt shares with the last one and its
// answer is not computed again. One request uses it at a time.
type Conversation struct {
	m      *Model
	mu     sync.Mutex // held while a request uses the conversation
	seq    *kv.Sequence
	ids    []int32 // of the positions in the cache
	length int     // of the rotation, see nn.Model.RopeLength
}

// NewConversation returns an empty conversation. Close it.
func (m *Model) NewConversation() *Conversation {
	return &Conversation{m: m, seq: m.cache.NewSequence()}
}

// Close gives back the cache.
func (c *Conversation) Close() error {
	if !c.mu.TryLock() {
		return errBusy
	}
	defer c.mu.Unlock()
	c.ids = nil
	return c.seq.Release()
}

// reuse cuts the cache to what ids begin with and returns how many positions that is. The last token
// is always computed anew: its logits are wanted.
func (c *Conversation) reuse(ids []int32, length int) (int, error) {
	n := 0
	for n < len(c.ids) && n < len(ids)-1 && c.ids[n] == ids[n] {
		n++
	}
	if c.length != length {
		n, c.length = 0, length
	}
	c.ids = c.ids[:n]
	return n, c.seq.Cut(n)
}

// Tokens returns the ids of a request's prompt.
func (c *Checkpoint) Tokens(r Request) ([]int32, error) {
	if r.IDs != nil {
		return r.IDs, nil
	}
	p, err := c.render(r)
	if err != nil {
		return nil, err
	}
	return c.encode(p)
}

func (r Request) messages() []Message {
	if r.Messages != nil {
		return r.Messages
	}
	return []Message{{Role: "user", Content: r.Prompt}}
}

// errBusy: a conversation has one request at a time.
var errBusy = errors.New("the conversation is in use by another request")

// MaxTokens is the bound on the answer to a request with a prompt of n tokens: its own, else what the
// model's maker suggests, else DefaultMaxTokens, as far as the trained limit allows. It depends neither
// on the budget nor on the context that was planned for, which decide only what is refused.
func (c *Checkpoint) MaxTokens(r Request, n int) int {
	if r.MaxTokens > 0 {
		return r.MaxTokens
	}
	most := c.defaults.MaxTokens
	switch {
	case most > 0:
	case r.Open:
		most = c.model.Layout.Context
	default:
		most = DefaultMaxTokens
	}
	return max(min(most, c.model.Layout.Context-n), 1)
}

// Generate answers a request. emit receives the text as it comes, whole characters only; nil for
// none. When ctx ends the answer so far is returned with FinishCancelled and no error. When the answer
// fails midway or its deadline passes, what came of it is returned with FinishError or FinishDeadline beside
// the error.
func (m *Model) Generate(ctx context.Context, r Request, emit func(text string)) (*Answer, error) {
	leave, err := m.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := m.check(r); err != nil {
		return nil, err
	}
	if c := r.Conversation; c != nil {
		if !c.mu.TryLock() {
			return nil, errBusy
		}
		defer c.mu.Unlock()
	}
	ids, err := m.Tokens(r)
	if err != nil {
		return nil, err
	}
	return m.answer(ctx, r, &Answer{PromptIDs: ids}, emit)
}

// check refuses what no answer can come of.
func (m *Model) check(r Request) error {
	switch {
	case r.TopLogProbs < 0 || r.TopLogProbs > MaxTopLogProbs:
		return fmt.Errorf("%d alternatives to each token are not possible: at most %d are", r.TopLogProbs, MaxTopLogProbs)
	case r.MinTokens < 0:
		return fmt.Errorf("an answer of at least %d tokens is not possible", r.MinTokens)
	case m.Embedding():
		return errors.New("the model gives vectors, not text: use Embed")
	case m.tok == nil && len(r.Stop) > 0:
		return fmt.Errorf("stop texts need a tokenizer: %w", m.tokErr)
	case r.Conversation != nil && r.Conversation.m != m:
		return errors.New("the conversation belongs to another model")
	}
	return nil
}

func (m *Model) answer(ctx context.Context, r Request, a *Answer, emit func(text string)) (*Answer, error) {
	req, err := m.request(r, a)
	if err != nil {
		return nil, err
	}
	w, err := m.newWriter(r, a.PromptIDs, emit)
	if err != nil {
		return nil, err
	}
	defer w.end(a)
	begin := time.Now()
	stream, err := m.submit(ctx, req)
	if err != nil {
		return nil, err
	}
	err = collect(stream, w, a, begin)
	if r.Conversation != nil {
		r.Conversation.keep(a)
	}
	if err == nil && a.FinishReason == FinishCancelled && ctx.Err() == nil {
		err = errModelClosed
	}
	return a, err
}

// request turns r into one of the engine.
func (m *Model) request(r Request, a *Answer) (engine.Request, error) {
	req := engine.Request{
		IDs: a.PromptIDs, MaxTokens: m.MaxTokens(r, len(a.PromptIDs)), Logits: r.Logits,
		Constraint: r.Constraint, Priority: r.Priority, Deadline: r.Deadline, LogProbs: r.LogProbs, TopLogProbs: r.TopLogProbs,
	}
	if room := m.options.Context - len(req.IDs); r.Clip && r.MaxTokens == 0 && room > 0 {
		req.MaxTokens = min(req.MaxTokens, room)
	}
	m.sampling(r, &req)
	req.RopeLength = len(req.IDs) + req.MaxTokens
	if r.MaxTokens == 0 {
		req.RopeLength = m.model.Layout.Context
	}
	if r.PromptLogProbs {
		m.promptLogProbs(r, &req, a)
	}
	if c := r.Conversation; c != nil {
		n, err := c.reuse(req.IDs, m.model.RopeLength(req.RopeLength))
		if err != nil {
			return req, err
		}
		req.Cache, req.Cached, a.CachedTokens = c.seq, n, n
	}
	return req, nil
}

// sampling says how tokens are chosen, and which of them end the answer.
func (m *Model) sampling(r Request, req *engine.Request) {
	req.Sampling = m.defaults.Sampling
	if r.Sampling != nil {
		req.Sampling = *r.Sampling
	}
	p := &req.Sampling
	if !r.IgnoreEnd {
		req.End = m.defaults.End
	}
	if len(r.StopIDs) > 0 {
		req.End = maps.Clone(req.End)
		for _, id := range r.StopIDs {
			if req.End == nil {
				req.End = map[int32]bool{}
			}
			req.End[id] = true
		}
	}
	p.MinTokens = max(p.MinTokens, r.MinTokens)
	if p.MinTokens > 0 || p.IgnoreEOS {
		p.EOS, p.StopIDs = slices.Sorted(maps.Keys(m.defaults.End)), r.StopIDs
	}
}

// keep remembers what the cache holds after an answer.
func (c *Conversation) keep(a *Answer) {
	all := append(append([]int32(nil), a.PromptIDs...), a.IDs...)
	c.ids = all[:min(a.cached, len(all))]
}

// collect reads the stream until the answer ends.
func collect(s *engine.Stream, w *writer, a *Answer, begin time.Time) error {
	first := time.Time{}
	stopped := false
	for {
		e := s.Next()
		if first.IsZero() {
			first = e.At
			a.Prefill = first.Sub(begin)
		}
		if e.Done {
			a.Decode, a.cached, a.CachedTokens = e.At.Sub(first), e.Cached, a.CachedTokens+e.Reused
			return w.finish(e, stopped, a)
		}
		if stopped {
			continue // computed before the cancellation was seen
		}
		a.IDs = append(a.IDs, e.ID)
		if w.token(e, a); w.push(e.ID) {
			stopped = true
			s.Stop()
		}
	}
}

// finish ends the text and decides how the answer ended.
func (w *writer) finish(e engine.Event, stopped bool, a *Answer) error {
	switch {
	case stopped:
		a.FinishReason, a.StopSequence = FinishStop, w.found()
		return w.err
	case e.Reason == engine.Expired:
		w.flush()
		a.FinishReason = FinishDeadline
		return e.Err
	case e.Reason == engine.Failed:
		w.flush()
		a.FinishReason = FinishError
		return fmt.Errorf("the answer ended after %d tokens: %w", len(a.IDs), e.Err)
	}
	w.flush()
	a.FinishReason = e.Reason
	return w.err
}
