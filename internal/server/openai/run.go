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
	answers := make([]*spillway.Answer, len(requests))
	err := each(x, h, len(requests), func(i int) error {
		a, err := x.Generate(h.Held, requests[i])
		if err == nil {
			answers[i] = a
			done(i, a)
		}
		return err
	})
	return answers, err
}

// each calls do for 0 to n-1, as many at a time as the model has seats for. The first error ends all of them; a
// full queue refuses only the first ones, for the others it is waited.
func each(x *server.Exchange, h held, n int, do func(i int) error) error {
	b := batch{x: x, do: do, seats: make(chan struct{}, max(h.Options().Sequences, 1))}
	if n == 1 {
		b.one(0)
		return b.err
	}
	for i := range n {
		b.seats <- struct{}{}
		b.group.Go(func() {
			defer func() { <-b.seats }()
			b.one(i)
		})
	}
	b.group.Wait()
	return b.err
}

// A batch is several requests of one exchange.
type batch struct {
	x     *server.Exchange
	do    func(i int) error
	seats chan struct{}
	group sync.WaitGroup

	mu       sync.Mutex
	accepted bool // one of them was
	err      error
}

func (b *batch) one(i int) {
	for {
		if b.x.Context().Err() != nil {
			b.fail(context.Cause(b.x.Context()))
			return
		}
		err := b.do(i)
		var full *spillway.QueueFullError
		switch {
		case err == nil:
			b.accept()
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
