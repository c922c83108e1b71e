package spillway

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// serving is one way to serve requests; none may change a bit of an answer.
type serving struct {
	name      string
	budget    int64 // above the least
	threads   int
	chunk     int
	sequences int
	rounds    int // that often all requests are made; later rounds find their prompts in the cache
}

// client is the i-th of many requests: prompts that begin alike, greedy and drawn answers.
func client(i, vocab int) Request {
	random := rand.New(rand.NewPCG(uint64(i), 11))
	prefix := rand.New(rand.NewPCG(uint64(i%3), 12))
	ids := make([]int32, 0, 100)
	for range []int{50, 33, 0}[i%3] {
		ids = append(ids, int32(prefix.IntN(vocab)))
	}
	for range 1 + random.IntN(30) {
		ids = append(ids, int32(random.IntN(vocab)))
	}
	r := Request{IDs: ids, MaxTokens: 1 + random.IntN(24), IgnoreEnd: true, LogProbs: true, TopLogProbs: 2, Priority: random.IntN(2), Sampling: &Sampling{}}
	switch i % 4 {
	case 1:
		r.Sampling = &Sampling{Temperature: 1, TopP: 0.9, Seed: uint64(i)}
	case 2:
		r.Sampling = &Sampling{Temperature: 0.8, RepeatPenalty: 1.2, MirostatTau: 3, Seed: 7}
	case 3:
		r.PromptLogProbs = i%8 == 3
	}
	return r
}

// outcomeOf is everything in an answer that must be the same wherever it was made.
func outcomeOf(a *Answer, err error) string {
	out := fmt.Sprint(a.IDs, a.FinishReason, err)
	for _, t := range slices.Concat(a.PromptTokens, a.Tokens) {
		out += fmt.Sprintf(" %d:%08x", t.ID, math.Float32bits(t.LogProb))
		for _, p := range t.Top {
			out += fmt.Sprintf("/%d:%08x", p.ID, math.Float32bits(p.LogProb))
		}
	}
	return out
}

// answerAll makes n requests at once, in an order of arrival that the seed gives.
func answerAll(m *Model, n int, seed uint64) []string {
	out := make([]string, n)
	var wg sync.WaitGroup
	for _, i := range rand.New(rand.NewPCG(seed, 13)).Perm(n) {
		wg.Go(func() {
			out[i] = outcomeOf(m.Generate(context.Background(), client(i, m.Layout().Vocab), nil))
		})
	}
	wg.Wait()
	return out
}

func (s serving) run(t *testing.T, path string, n int, want []string) Stats {
	t.Helper()
	o := ModelOptions{Context: 128, Sequences: s.sequences, HeadRows: s.sequences, Chunk: s.chunk, Shared: true}
	rt, m := openNear(t, path, leastFor(t, path, s.threads, o)-heapMoves+s.budget, s.threads, o)
	for round := range s.rounds {
		for i, got := range answerAll(m, n, uint64(round)) {
			if got != want[i] {
				t.Errorf("%+v: request %d in round %d:\n%s\nalone it was\n%s", s, i, round, got, want[i])
			}
		}
	}
	stats := m.Stats()
	if stats.Running+stats.Waiting+stats.BlocksUsed != 0 || stats.Finished[FinishLength] != int64(n*s.rounds) {
		t.Errorf("%+v: at the end %+v", s, stats)
	}
	if err := errors.Join(m.Close(), rt.Close()); err != nil {
		t.Error(err)
	}
	if used := rt.Ledger().Used; used != 0 {
		t.Errorf("%+v: %d bytes are still leased", s, used)
	}
	return stats
}

// The same requests alone and among 32, in any order, with and without hits in the cache, preempted or not, at
// any budget, chunk and number of threads: the same tokens and the same bits of their probabilities.
func TestServingChangesNothing(t *testing.T) {
	path, n := toyFile(t), 33
	rt, m := openNear(t, path, 1<<30, 1, ModelOptions{Context: 128})
	want := make([]string, n)
	for i := range n {
		want[i] = outcomeOf(m.Generate(context.Background(), client(i, m.Layout().Vocab), nil))
	}
	if err := errors.Join(m.Close(), rt.Close()); err != nil {
		t.Fatal(err)
	}
	for _, s := range []serving{
		{"all in memory", 64 << 20, 2, 512, 33, 2},
		{"one by one", 64 << 20, 2, 512, 1, 1},
		{"streamed", 4 << 20, 2, 512, 16, 2},
		{"little of everything", 0, 3, 3, 5, 1},
		{"short chunks", 8 << 20, 1, 7, 8, 1},
	} {
		stats := s.run(t, path, n, want)
		t.Logf("%s: %+v", s.name, stats)
		if s.rounds > 1 && stats.PrefixHit == 0 {
			t.Errorf("%s: nothing was found in the cache", s.name)
		}
	}
}

// A request that gives way in the midst of its answer, and is computed again, has the answer that it has alone.
func TestServingPreempted(t *testing.T) {
	m := teller(t, ModelOptions{Context: 256, Sequences: 1, Shared: true})
	low := Request{Prompt: story, MaxTokens: 40, IgnoreEnd: true, Priority: 1, LogProbs: true, PromptLogProbs: true, Sampling: &Sampling{Temperature: 1, RepeatPenalty: 1.1, MirostatTau: 4}}
	high := Request{Prompt: "What is the opposite of hot?", MaxTokens: 20, IgnoreEnd: true, LogProbs: true}
	wantLow, wantHigh := outcomeOf(m.Generate(context.Background(), low, nil)), outcomeOf(m.Generate(context.Background(), high, nil))
	for round := range 3 {
		other := make(chan string, 1)
		n := 0
		low.Logits = func(int, []float32) { // runs on the engine's goroutine, which waits until the other is there
			if n++; n != 1+round*15 {
				return
			}
			go func() { other <- outcomeOf(m.Generate(context.Background(), high, nil)) }()
			for m.Stats().Waiting == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		if got := outcomeOf(m.Generate(context.Background(), low, nil)); got != wantLow {
			t.Errorf("round %d: %s, alone it was %s", round, got, wantLow)
		}
		if got := <-other; got != wantHigh {
			t.Errorf("round %d: %s, alone it was %s", round, got, wantHigh)
		}
		if got := m.Stats().Preempted; got != int64(round+1) {
			t.Errorf("round %d: %d times somebody gave way", round, got)
		}
	}
}

// Requests that are cancelled at any moment, or run out of time, leave nothing behind and change nobody's answer.
func TestServingCancelled(t *testing.T) {
	path, n := toyFile(t), 24
	o := ModelOptions{Context: 128, Sequences: 6, HeadRows: 6, Chunk: 16, Shared: true}
	rt, m := openNear(t, path, leastFor(t, path, 2, o), 2, o)
	want := answerAll(m, n, 1)
	random := rand.New(rand.NewPCG(3, 4))
	var wg sync.WaitGroup
	for i := range n {
		ctx, cancel := context.WithCancel(context.Background())
		r, after := client(i, m.Layout().Vocab), random.IntN(12)
		switch i % 3 {
		case 0:
			r.OnToken = func(Token) {
				if after--; after < 0 {
					cancel()
				}
			}
		case 1:
			r.Deadline = time.Now().Add(time.Duration(random.IntN(200)) * time.Millisecond)
		}
		wg.Go(func() {
			defer cancel()
			a, err := m.Generate(ctx, r, nil)
			var late *DeadlineError
			switch {
			case a.FinishReason == FinishLength:
				if got := outcomeOf(a, err); got != want[i] {
					t.Errorf("request %d: %s, expected %s", i, got, want[i])
				}
			case a.FinishReason == FinishCancelled && err == nil && i%3 == 0:
			case a.FinishReason == FinishDeadline && errors.As(err, &late) && i%3 == 1:
			default:
				t.Errorf("request %d: %s, %v", i, a.FinishReason, err)
			}
		})
	}
	wg.Wait()
	if s := m.Stats(); s.Running+s.Waiting+s.BlocksUsed != 0 {
		t.Errorf("left behind: %+v", s)
	}
	if err := errors.Join(m.Close(), rt.Close()); err != nil {
		t.Error(err)
	}
}
