package openai

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server"
	"github.com/spillway/spillway/internal/server/pool"
)

// held is a model with what this API makes of its tokens.
type held struct{ *pool.Held }

// run runs requests that were prepared, as many at a time as the model has seats for. The first error ends
// all of them.
func run(x *server.Exchange, h held, requests []spillway.Request) ([]*spillway.Answer, error) {
	return runEach(x, h, requests, func(int, *spillway.Answer) {})
}

// runEach is run, and calls done with each answer when it is complete, on the goroutine that its request's
// callbacks ran on.
func runEach(x *server.Exchange, h held, requests []spillway.Request, done func(i int, a *spillway.Answer)) ([]*spillway.Answer, error) {
	b := batch{x: x, h: h, done: done, seats: make(chan struct{}, max(h.Options().Sequences, 1)), answers: make([]*spillway.Answer, len(requests))}
	if len(requests) == 1 {
		b.one(0, requests[0])
		return b.answers, b.err
	}
	for i := range requests {
		b.seats <- struct{}{}
		b.group.Go(func() {
			defer func() { <-b.seats }()
			b.one(i, requests[i])
		})
	}
	b.group.Wait()
	return b.answers, b.err
}

// A batch is several requests of one exchange.
type batch struct {
	x     *server.Exchange
	h     held
	done  func(int, *spillway.Answer)
	seats chan struct{}
	group sync.WaitGroup

	answers []*spillway.Answer

	mu       sync.Mutex
	accepted bool // one of them was
	err      error
}

func (b *batch) one(i int, r spillway.Request) {
	for {
		if b.x.Context().Err() != nil {
			b.fail(context.Cause(b.x.Context()))
			return
		}
		a, err := b.x.Generate(b.h.Held, r)
		var full *spillway.QueueFullError
		switch {
		case err == nil:
			b.answers[i] = a
			b.accept()
			b.done(i, a)
			return
		case errors.As(err, &full) && b.waits():
		default:
			b.fail(err)
			return
		}
	}
}

// waits waits a moment if others of the batch were accepted: the rest of it is not refused then.
func (b *batch) waits() bool {
	b.mu.Lock()
	ok := b.accepted && b.err == nil
	b.mu.Unlock()
	if !ok {
		return false
	}
	const moment = 50 * time.Millisecond
	select {
	case <-time.After(moment):
	case <-b.x.Context().Done():
	}
	return true
}

func (b *batch) accept() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accepted = true
}

func (b *batch) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
		b.x.Cancel(err)
	}
}
