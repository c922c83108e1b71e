package engine

import (
	"context"
	"sync"

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
	// Logits receives the logits that each answer token is chosen from, before it is chosen.
	Logits func(position int, logits []float32)
	// Tap receives intermediate values; such a request runs in batches of its own.
	Tap func(name string, rows, width int, values []float32)
}

// Reasons why an answer ended.
const (
	Stop      = "stop"      // an end token
	Length    = "length"    // MaxTokens or the context was reached
	Cancelled = "cancelled" // the request's context ended
	Failed    = "error"
)

// Event is a token of an answer, or its end.
type Event struct {
	ID     int32
	Done   bool   // no token; the answer has ended
	Reason string // of the end
	Err    error  // with Failed and Cancelled
	// Cached is the number of positions in the cache at the end.
	Cached int
}

// Stream delivers the events of one request in order. It never blocks the engine.
type Stream struct {
	mu     sync.Mutex
	queue  []Event
	signal chan struct{}
	cancel context.CancelFunc
}

func newStream(cancel context.CancelFunc) *Stream {
	return &Stream{signal: make(chan struct{}, 1), cancel: cancel}
}

func (s *Stream) push(e Event) {
	s.mu.Lock()
	s.queue = append(s.queue, e)
	s.mu.Unlock()
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// Next waits for the next event. After an event with Done there are none.
func (s *Stream) Next() Event {
	for {
		s.mu.Lock()
		if len(s.queue) > 0 {
			e := s.queue[0]
			s.queue = s.queue[1:]
			s.mu.Unlock()
			return e
		}
		s.mu.Unlock()
		<-s.signal
	}
}

// Cancel ends the request after the step that runs; its last event still comes.
func (s *Stream) Cancel() { s.cancel() }
