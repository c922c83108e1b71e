package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/engine"
	"github.com/spillway/spillway/internal/sample"
)

// path is a constraint: at each place of the answer one of a few tokens; then only an end.
type path struct {
	places [][]int32
	end    int32
	at     int
}

func (p *path) Mask(mask []uint64) bool {
	clear(mask)
	allowed := []int32{p.end}
	if p.at < len(p.places) {
		allowed = p.places[p.at]
	}
	if allowed == nil {
		return false // whatever it likes
	}
	for _, id := range allowed {
		mask[id/64] |= 1 << (id % 64)
	}
	return true
}

func (p *path) Accept(id int32) error {
	if p.at >= len(p.places) || p.places[p.at] != nil && !slices.Contains(p.places[p.at], id) {
		return fmt.Errorf("token %d is not on the path at %d", id, p.at)
	}
	p.at++
	return nil
}

func (p *path) Forced() (int32, bool) {
	if p.at >= len(p.places) || len(p.places[p.at]) != 1 {
		return 0, false
	}
	return p.places[p.at][0], true
}

func (p *path) Rollback(n int) { p.at -= n }
func (p *path) MayEnd() bool   { return p.at == len(p.places) }

// course is a path with stretches of forced tokens between choices.
func course() *path {
	p := &path{end: 95}
	for i := range int32(40) {
		switch {
		case i == 4:
			p.places = append(p.places, nil)
		case i%13 == 4:
			p.places = append(p.places, []int32{1, 2, 3, 4, 63, 64, 94})
		case i%5 == 0:
			p.places = append(p.places, []int32{i, i + 20, i + 50})
		default:
			p.places = append(p.places, []int32{2 * i})
		}
	}
	return p
}

// What a constraint leaves no choice about costs no step, and changes nothing: the answer is that of a request whose
// every token is chosen from its logits.
func TestForcedTokens(t *testing.T) {
	b := setup{alone: true}.start(t)
	for i := range 6 {
		r := request(i)
		r.MaxTokens, r.End = 45, map[int32]bool{95: true}
		answer := func(probs bool) ([]int32, int64) {
			before := b.Counters().Steps
			r.Constraint, r.LogProbs = course(), probs
			ids, e := b.run(t, r)
			if e.Reason != engine.Stop || e.ID != 95 || !r.Constraint.MayEnd() {
				t.Errorf("request %d ended with %+v", i, e)
			}
			return ids, b.Counters().Steps - before
		}
		want, steps := answer(true)
		got, fewer := answer(false)
		if !slices.Equal(got, want) || len(got) != 40 {
			t.Errorf("request %d: %v with forced tokens, %v without", i, got, want)
		}
		if fewer > steps-20 {
			t.Errorf("request %d: %d steps with forced tokens, %d without", i, fewer, steps)
		}
	}
}

func TestConstraintFails(t *testing.T) {
	b := start(t)
	r := request(3)
	r.MaxTokens, r.Constraint = 10, &path{places: [][]int32{{}}, end: 95} // nothing is allowed
	if _, e := b.run(t, r); e.Reason != engine.Failed {
		t.Errorf("%+v", e)
	}
	r.Constraint = &path{places: [][]int32{{5}}, end: 95}
	if ids, e := b.run(t, r); e.Reason != engine.Failed || len(ids) != 2 { // the end is no end to this request
		t.Errorf("%v, %+v", ids, e)
	}
}

// The probabilities are those of the logits, whatever is done to them before a token is chosen.
func TestLogProbs(t *testing.T) {
	b := start(t)
	r := request(1)
	r.MaxTokens, r.LogProbs, r.TopLogProbs = 8, true, 96
	r.Sampling = sample.Params{Temperature: 0.5, RepeatPenalty: 1.5, Seed: 3}
	var logits [][]float32
	r.Logits = func(_ int, l []float32) { logits = append(logits, slices.Clone(l)) }
	s, err := b.Submit(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	var events []engine.Event
	for e := s.Next(); !e.Done; e = s.Next() {
		events = append(events, e)
	}
	for n, e := range events {
		want, top := sample.LogProbs(logits[n], e.ID, 96)
		sum := 0.0
		for _, p := range e.Top {
			sum += math.Exp(float64(p.LogProb))
		}
		if e.LogProb != want || !slices.Equal(e.Top, top) || math.Abs(sum-1) > 1e-5 {
			t.Errorf("token %d: %v, expected %v; all sum to %v", n, e.LogProb, want, sum)
		}
	}
	if len(events) != 8 {
		t.Errorf("%d tokens", len(events))
	}
}

// expiring is a context whose deadline passes when the test says so.
type expiring struct {
	context.Context
	done chan struct{}
	then []func()
}

func (e *expiring) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }
func (e *expiring) Done() <-chan struct{}       { return e.done }

func (e *expiring) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// AfterFunc is how contexts that are made from this one hear of its end.
func (e *expiring) AfterFunc(f func()) func() bool {
	e.then = append(e.then, f)
	return func() bool { return false }
}

// expire returns when all of them have ended.
func (e *expiring) expire() {
	close(e.done)
	for _, f := range e.then {
		f()
	}
}

// A request that waits too long, or runs too long, ends with an error that says so.
func TestDeadlines(t *testing.T) {
	b := setup{seats: 1, queue: 1}.start(t)
	hold, begun := make(chan struct{}), make(chan struct{}, 1)
	long := engine.Request{IDs: make([]int32, 5), MaxTokens: 100, Logits: func(int, []float32) {
		select {
		case begun <- struct{}{}:
		default:
		}
		<-hold
	}}
	ctx := &expiring{Context: context.Background(), done: make(chan struct{})}
	first, err := b.Submit(ctx, long)
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	late := time.Now() // it has passed when the first ends
	second, err := b.Submit(context.Background(), engine.Request{IDs: make([]int32, 5), MaxTokens: 5, Deadline: late})
	if err != nil {
		t.Fatal(err)
	}
	var full *engine.QueueFullError
	if _, err := b.Submit(context.Background(), engine.Request{IDs: make([]int32, 5)}); !errors.As(err, &full) || full.Waiting != 1 || full.RetryAfter < time.Second {
		t.Errorf("one more than may wait: %v", err)
	}
	ctx.expire()
	close(hold)
	var expired *engine.DeadlineError
	if _, e := finish(first); e.Reason != engine.Expired || !errors.As(e.Err, &expired) || expired.Waited || expired.Tokens == 0 {
		t.Errorf("the one that ran: %+v", e)
	}
	if _, e := finish(second); e.Reason != engine.Expired || !errors.As(e.Err, &expired) || !expired.Waited || !expired.Deadline.Equal(late) {
		t.Errorf("the one that waited: %+v", e)
	}
	if c := b.Counters(); c.Expiries != 2 {
		t.Errorf("%+v", c)
	}
}
