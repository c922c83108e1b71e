package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway/spillway/internal/kv"
	"github.com/spillway/spillway/internal/nn"
	"github.com/spillway/spillway/internal/sample"
)

// Request asks for the continuation of token ids, or for what the model computes on the way.
type Request struct {
	IDs       []int32
	MaxTokens int // tokens to add at most; 0: run the prompt only
	Sampling  sample.Params
	// End are the ids that end the answer (and are not part of it).
	End map[int32]bool
	// Constraint says what the answer may be; nil: anything.
	Constraint  Constraint
	LogProbs    bool      // events with the tokens' probabilities,
	TopLogProbs int       // and those of so many of the likeliest
	Beams       *Beams    // nil: one answer, sampled
	Priority    int       // smaller ones run first
	Deadline    time.Time // zero: that of the context
	// Private keeps the prompt out of the sharing of blocks: it is computed, whatever the cache holds.
	Private bool
	// Cache holds the first Cached positions of IDs already and keeps what this request adds; nil
	// for a cache of the request's own.
	Cache  *kv.Sequence
	Cached int
	// RopeLength is nn.Segment.RopeLength; 0: prompt + MaxTokens.
	RopeLength int
	// Embeds, Positions and the mask replace what ids alone say of the prompt's rows; see nn.Segment.
	// The prompt is then one chunk.
	Shape *nn.Segment
	// Adapter adds low-rank updates; nil for none.
	Adapter *nn.Adapter

	// Rows receives the logits (for an embedding model: the hidden state) of every row of the
	// prompt, in order. It runs on the engine's goroutine; an error ends the request.
	Rows func(position int, values []float32) error
	// Hidden gives Rows the hidden states after the last norm of any model, and LastRow those of the last row
	// alone. There is no answer then.
	Hidden, LastRow bool
	// Logits receives the logits that each answer token is chosen from, before it is chosen.
	Logits func(position int, logits []float32)
	// Tap receives intermediate values; such a request runs in batches of its own.
	Tap func(name string, rows, width int, values []float32)
}

// check says why a request cannot be run.
func (c *Config) check(r *Request) error {
	if len(r.IDs) == 0 {
		return errors.New("the prompt has no tokens")
	}
	for i, id := range r.IDs {
		if id < 0 || int(id) >= c.Model.Layout.Vocab {
			return fmt.Errorf("token %d at position %d is not in the vocabulary of %d", id, i, c.Model.Layout.Vocab)
		}
	}
	switch {
	case r.Hidden && (r.MaxTokens > 0 || r.Rows == nil):
		return errors.New("hidden states are for who reads the rows of a prompt without an answer")
	case r.MaxTokens < 0:
		return fmt.Errorf("%d tokens to add are not possible", r.MaxTokens)
	case r.MaxTokens > c.Context-len(r.IDs): // written so that no sum overflows
		return &TooLongError{len(r.IDs), r.MaxTokens, c.Context}
	case r.Cache != nil && (r.Cached < 0 || r.Cached >= len(r.IDs)):
		return fmt.Errorf("%d cached positions leave none of %d to run", r.Cached, len(r.IDs))
	}
	if r.Adapter != nil {
		if err := r.Adapter.Check(); err != nil {
			return err
		}
	}
	if err := c.checkBeams(r); err != nil {
		return err
	}
	return c.checkShape(r)
}

// checkShape wants one value for every row of a shaped prompt that is not cached.
func (c *Config) checkShape(r *Request) error {
	s, rows := r.Shape, len(r.IDs)
	if s == nil {
		return nil
	}
	if r.Cache != nil {
		rows -= r.Cached
	}
	switch {
	case rows > c.Rows:
		return fmt.Errorf("a shaped prompt of %d rows does not fit a step of %d", rows, c.Rows)
	case r.Rows != nil && !r.Hidden && rows > c.HeadRows:
		return fmt.Errorf("the logits of all %d rows of a shaped prompt do not fit a step with %d", rows, c.HeadRows)
	case s.Embeds != nil && (s.N != rows || len(s.Embeds) != rows*c.Model.Layout.Hidden):
		return fmt.Errorf("%d embeddings of %d values are given for %d rows", s.N, len(s.Embeds), rows)
	case s.Positions != nil && len(s.Positions) != rows:
		return fmt.Errorf("%d positions are given for %d rows", len(s.Positions), rows)
	}
	return nil
}

// Reasons why an answer ended.
const (
	Stop      = "stop"      // an end token
	Length    = "length"    // MaxTokens or the context was reached
	Cancelled = "cancelled" // the request's context ended
	Expired   = "deadline"  // the request's deadline passed
	Failed    = "error"
)

// Event is a token of an answer, or its end.
type Event struct {
	ID      int32 // of the token; with Stop: the one that ended the answer
	LogProb float32
	Top     []sample.TokenLogProb
	Done    bool   // no token; the answer has ended
	Reason  string // of the end
	Err     error  // with Failed, Cancelled and Expired
	// Cached is the number of positions in the request's own cache at the end.
	Cached int
	Reused int          // positions of the prompt that others had computed
	Beams  []Hypothesis // of a beam search, the best first
	// At is when the engine made the event; for reports only.
	At time.Time
}

// Stream delivers the events of one request in order. It never blocks the engine.
type Stream struct {
	mu     sync.Mutex
	queue  []Event // a ring
	first  int     // of the events that wait, by place in queue
	n      int     // of them
	signal chan struct{}
	cancel context.CancelFunc

	stopped atomic.Bool // by Stop
}

func newStream(cancel context.CancelFunc) *Stream {
	return &Stream{signal: make(chan struct{}, 1), cancel: cancel}
}

func (s *Stream) push(e Event) {
	e.At = time.Now()
	s.mu.Lock()
	s.put(e)
	s.mu.Unlock()
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// put adds an event. The lock is held.
func (s *Stream) put(e Event) {
	if s.n == len(s.queue) {
		more := make([]Event, max(2*s.n, 2))
		copy(more[copy(more, s.queue[s.first:]):], s.queue[:s.first])
		s.queue, s.first = more, 0
	}
	s.queue[(s.first+s.n)%len(s.queue)] = e
	s.n++
}

// take removes the first event. The lock is held.
func (s *Stream) take() Event {
	e := s.queue[s.first]
	s.queue[s.first] = Event{}
	s.first = (s.first + 1) % len(s.queue)
	s.n--
	return e
}

// Next waits for the next event. After an event with Done there are none.
func (s *Stream) Next() Event {
	for {
		s.mu.Lock()
		if s.n > 0 {
			e := s.take()
			s.mu.Unlock()
			return e
		}
		s.mu.Unlock()
		<-s.signal
	}
}

// Stop ends the request after the step that runs, as one whose answer is complete.
func (s *Stream) Stop() {
	s.stopped.Store(true)
	s.cancel()
}

// Cancel ends the request after the step that runs; its last event still comes.
func (s *Stream) Cancel() { s.cancel() }

// limit adds the request's own deadline to its context's.
func (r *Request) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.Deadline.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, r.Deadline)
}
