package engine_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/spillway/spillway/internal/engine"
	"github.com/spillway/spillway/internal/nn"
	"github.com/spillway/spillway/internal/sample"
)

// held are weak pointers to the adapters of requests: with an adapter everything else of a request is kept.
type held map[string]weak.Pointer[nn.Adapter]

// mark gives r an adapter of its own, without an update.
func (h held) mark(name string, r engine.Request) engine.Request {
	r.Adapter = &nn.Adapter{ID: len(h) + 1}
	h[name] = weak.Make(r.Adapter)
	return r
}

// collected fails if anything still refers to one of the requests after their last step.
func (h held) collected(t *testing.T, b *bench) {
	t.Helper()
	if err := b.Between(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	for name, p := range h {
		for range 20 { // a collection that runs may have seen it
			if runtime.GC(); p.Value() == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if p.Value() != nil {
			t.Errorf("%s is still referred to", name)
		}
	}
}

// run runs requests of every kind, in a frame of its own, which then refers to none of them. Once some of them answer
// it calls during; then, before the first step.
func (h held) run(t *testing.T, ctx context.Context, b *bench, during, then func()) {
	t.Helper()
	ids := request(4).IDs
	rows := func(position int, _ []float32) error {
		if position == len(ids)-1 {
			during()
		}
		return nil
	}
	streams := b.together(t, ctx, []engine.Request{
		h.mark("plain", engine.Request{IDs: ids, MaxTokens: 30}),
		h.mark("sampled", engine.Request{IDs: ids, MaxTokens: 9, LogProbs: true, Sampling: sample.Params{Temperature: 1}}),
		h.mark("constrained", engine.Request{IDs: ids, MaxTokens: 45, Constraint: course(), End: map[int32]bool{95: true}}),
		h.mark("search", engine.Request{IDs: ids, MaxTokens: 20, Beams: &engine.Beams{Width: 3}}),
		h.mark("rows", engine.Request{IDs: ids, MaxTokens: 12, Rows: rows}),
		h.mark("states", engine.Request{IDs: ids, Hidden: true, Rows: rows}),
		h.mark("tapped", engine.Request{IDs: ids, MaxTokens: 3, Tap: func(string, int, int, []float32) {}}),
		h.mark("failing", engine.Request{IDs: ids, MaxTokens: 3, Rows: func(int, []float32) error { return errors.New("enough") }}),
		h.mark("shaped", engine.Request{IDs: ids[:4], MaxTokens: 5, Shape: &nn.Segment{}}),
	}, then)
	for _, s := range streams {
		finish(s)
	}
}

// What the engine keeps from step to step refers to no request that has ended: by itself, cancelled, or when the rows of
// a step became fewer than its prompt.
func TestKeepsNoRequest(t *testing.T) {
	b := setup{seats: 5, heads: 8, blocks: 10}.start(t)
	for _, round := range []struct{ cancels, shrinks bool }{{}, {}, {cancels: true}, {shrinks: true}} {
		ctx, cancel := context.WithCancel(context.Background())
		during, then := func() {}, func() {}
		if round.cancels {
			during = cancel
		}
		if round.shrinks {
			then = func() { b.SetRows(3, 3, true) }
		}
		h := held{}
		h.run(t, ctx, b, during, then)
		h.collected(t, b)
		cancel()
	}
	if c := b.Counters(); b.State().Preempted == 0 || c.Cancels == 0 || c.Failures < 4 {
		t.Errorf("%+v", c)
	}
	b.settled(t)
}
