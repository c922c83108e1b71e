package engine_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/spillway/spillway/internal/engine"
	"github.com/spillway/spillway/internal/sample"
)

// mixed is the i-th of requests of every kind, whose values go to *seen.
func mixed(i int, seen *[]string) engine.Request {
	random := rand.New(rand.NewPCG(uint64(i), 21))
	r := request(i)
	for j := range r.IDs[:random.IntN(len(r.IDs))] {
		r.IDs[j] = int32(j % 7) // many begin alike
	}
	r.Priority, r.MaxTokens = random.IntN(3)-1, 1+random.IntN(40)
	note := func(kind string) func(int, []float32) error {
		return func(at int, values []float32) error {
			bits := uint32(0)
			for _, v := range values {
				bits = bits*31 + math.Float32bits(v)
			}
			*seen = append(*seen, fmt.Sprintf("%s %d %08x", kind, at, bits))
			return nil
		}
	}
	switch i % 9 {
	case 0:
		r.Rows = note("row")
	case 1:
		logits := note("logits")
		r.Logits = func(at int, values []float32) { _ = logits(at, values) }
	case 2:
		r.LogProbs, r.TopLogProbs = true, 3
	case 3:
		r.MaxTokens, r.Constraint, r.End = 45, course(), map[int32]bool{95: true}
	case 4:
		r.Beams = &engine.Beams{Width: 1 + random.IntN(3)}
	case 5:
		r.MaxTokens, r.Hidden, r.LastRow, r.Rows = 0, true, i%2 == 0, note("state")
	case 6:
		r.Sampling = sample.Params{Temperature: 1.2, RepeatPenalty: 1.3, DRYMultiplier: 1, MirostatTau: 2, Seed: uint64(i)}
	case 7:
		r.Tap = func(name string, rows, width int, values []float32) {
			if name == "final_norm" {
				_ = note("tap")(rows, values[(rows-1)*width:])
			}
		}
		r.Priority = -1
	}
	return r
}

// outcome is all that a request has given.
func outcome(s *engine.Stream, seen *[]string) string {
	var tokens []string
	for {
		e := s.Next()
		tokens = append(tokens, fmt.Sprintf("%d:%08x%v", e.ID, math.Float32bits(e.LogProb), e.Top))
		if e.Done {
			return fmt.Sprint(*seen, tokens, e.Reason, e.Err, e.Beams)
		}
	}
}

// Requests of every kind, in engines of random sizes, some of them cancelled: whoever ends by itself has what it has
// alone.
func TestRandomCompany(t *testing.T) {
	const kinds = 27
	alone := setup{seats: 4, heads: 16, rows: 64, alone: true}.start(t)
	want := make([]string, kinds)
	for i := range want {
		var seen []string
		r := mixed(i, &seen)
		s, err := alone.Submit(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		want[i] = outcome(s, &seen)
	}
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 22))
		sizes := setup{rows: 4 + random.IntN(40), seats: 3 + random.IntN(10), blocks: 8 + random.IntN(24)}
		sizes.heads = min(sizes.rows, 3+random.IntN(8))
		if seed%3 == 0 {
			sizes.heads = sizes.rows
		}
		b := sizes.start(t)
		var wg sync.WaitGroup
		for _, i := range random.Perm(kinds) {
			var seen []string
			r := mixed(i, &seen)
			if r.Tap != nil && len(r.IDs) > sizes.rows {
				continue // chunks are taps of their own
			}
			cancel := context.CancelFunc(func() {})
			ctx := context.Background()
			if i%5 == int(seed%5) && r.Logits == nil {
				ctx, cancel = context.WithCancel(ctx)
				after := random.IntN(20)
				r.Logits = func(int, []float32) {
					if after--; after < 0 {
						cancel()
					}
				}
				if r.Beams != nil || r.Hidden {
					r.Logits = nil
				}
			}
			s, err := b.Submit(ctx, r)
			if err != nil {
				t.Fatalf("%+v: request %d: %v", sizes, i, err)
			}
			wg.Go(func() {
				defer cancel()
				if got := outcome(s, &seen); ctx.Err() == nil && got != want[i] {
					t.Errorf("%+v: request %d: %s\nalone it was\n%s", sizes, i, got, want[i])
				}
			})
		}
		wg.Wait()
		b.settled(t)
	}
}
