package engine_test

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/engine"
	"github.com/spillway/spillway/internal/sample"
)

// beginning is a hypothesis of the plain search.
type beginning struct {
	ids []int32
	sum float64
}

// plainBeams is the search spelled out: every beginning is computed from its prompt on.
func (b *bench) plainBeams(t *testing.T, prompt []int32, r engine.Request) []engine.Hypothesis {
	t.Helper()
	alive, found := []beginning{{}}, []engine.Hypothesis(nil)
	w := r.Beams.Width
	for n := 1; n <= r.MaxTokens; n++ {
		var all []beginning
		for _, a := range alive {
			var logits []float32
			b.run(t, engine.Request{IDs: slices.Concat(prompt, a.ids), MaxTokens: 1, Private: true, RopeLength: len(prompt) + r.MaxTokens,
				Logits: func(_ int, l []float32) { logits = slices.Clone(l) }})
			for id := range logits {
				p, _ := sample.LogProbs(logits, int32(id), 0)
				all = append(all, beginning{append(slices.Clone(a.ids), int32(id)), a.sum + float64(p)})
			}
		}
		slices.SortStableFunc(all, func(a, b beginning) int { return cmp.Compare(b.sum, a.sum) })
		alive = nil
		for rank, a := range all {
			end := r.End[a.ids[n-1]]
			h := engine.Hypothesis{IDs: a.ids, LogProb: a.sum, Score: a.sum / math.Pow(float64(n), r.Beams.LengthPenalty), Reason: engine.Length}
			switch {
			case len(alive) == w:
			case end && rank < w:
				h.IDs, h.Reason = a.ids[:n-1], engine.Stop
				found = append(found, h)
			case !end:
				alive = append(alive, a)
				if n == r.MaxTokens {
					found = append(found, h)
				}
			}
		}
	}
	slices.SortStableFunc(found, func(a, b engine.Hypothesis) int { return cmp.Compare(b.Score, a.Score) })
	return found[:min(len(found), w)]
}

// A search finds what the plain one does, in company, while others take its blocks, and in a cache for one sequence.
func TestBeams(t *testing.T) {
	roomy, tight := setup{seats: 8, heads: 8}.start(t), setup{seats: 5, blocks: 8}.start(t)
	for i := range 8 {
		r := request(i)
		r.MaxTokens, r.Sampling, r.End = 4+i, sample.Params{}, map[int32]bool{}
		r.Beams = &engine.Beams{Width: 1 + i%5, LengthPenalty: float64(i%3) - 0.5}
		for id := int32(i % 2); id < 96; id += 9 {
			r.End[id] = true
		}
		want := roomy.plainBeams(t, r.IDs, r)
		for _, b := range []*bench{roomy, tight} {
			streams := b.together(t, context.Background(), []engine.Request{r, {IDs: request(i + 20).IDs, MaxTokens: 30}})
			_, e := finish(streams[0])
			if e.Err != nil || len(e.Beams) != len(want) || e.Reason != want[0].Reason {
				t.Fatalf("search %d: %+v, expected %+v", i, e, want)
			}
			for j, h := range e.Beams {
				w := want[j]
				if !slices.Equal(h.IDs, w.IDs) || h.LogProb != w.LogProb || h.Score != w.Score || h.Reason != w.Reason {
					t.Errorf("search %d, width %d, answer %d: %+v, expected %+v", i, r.Beams.Width, j, h, w)
				}
			}
			finish(streams[1])
			b.settled(t)
		}
	}
	if roomy.State().Cache.Copies == 0 {
		t.Error("no block was shared and then written")
	}
	if tight.Counters().Preempted == 0 {
		t.Error("nobody gave way")
	}
}

// A search that is cancelled or cannot be leaves nothing behind.
func TestBeamsEnd(t *testing.T) {
	b := setup{seats: 4}.start(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	search := engine.Request{IDs: make([]int32, 20), MaxTokens: 100, Beams: &engine.Beams{Width: 3}}
	company := engine.Request{IDs: make([]int32, 20), MaxTokens: 100, Logits: func(position int, _ []float32) {
		if position == 30 { // as far as the search is
			cancel()
		}
	}}
	streams := b.together(t, ctx, []engine.Request{search, company})
	finish(streams[1])
	if _, e := finish(streams[0]); e.Reason != engine.Cancelled || e.Beams != nil {
		t.Errorf("%+v", e)
	}
	b.settled(t)
	_, e := b.run(t, engine.Request{IDs: make([]int32, 20), MaxTokens: 5, Beams: &engine.Beams{Width: 2}, Adapter: b.overflowing()})
	if e.Reason != engine.Failed {
		t.Errorf("%+v", e)
	}
	for _, c := range []struct {
		r    engine.Request
		says string
	}{
		{engine.Request{IDs: []int32{1}, MaxTokens: 1, Beams: &engine.Beams{Width: 5}}, "width 5 is not possible: 1 to 4"},
		{engine.Request{IDs: []int32{1}, MaxTokens: 1, Beams: &engine.Beams{Width: 0}}, "width 0"},
		{engine.Request{IDs: []int32{1}, MaxTokens: 1, Beams: &engine.Beams{Width: 1, LengthPenalty: math.NaN()}}, "length penalty"},
		{engine.Request{IDs: []int32{1}, Beams: &engine.Beams{Width: 1}}, "a plain prompt"},
		{engine.Request{IDs: []int32{1}, MaxTokens: 1, Beams: &engine.Beams{Width: 1}, Constraint: course()}, "a plain prompt"},
	} {
		if _, err := b.Submit(context.Background(), c.r); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("the error %v does not say %q", err, c.says)
		}
	}
}
