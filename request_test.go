package spillway

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/budget"
)

// teller is the embedded model, as it is served.
func teller(t *testing.T, o ModelOptions) *Model {
	t.Helper()
	rt := newRuntime(t, 1<<30)
	m, err := rt.OpenEmbedded(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s := m.Stats(); s.Running+s.Waiting+s.BlocksUsed != 0 {
			t.Errorf("left behind: %+v", s)
		}
		if err := errors.Join(m.Close(), rt.Close()); err != nil {
			t.Error(err)
		}
	})
	return m
}

func ask(t *testing.T, m *Model, r Request, emit func(string)) *Answer {
	t.Helper()
	if r.Sampling == nil {
		r.Sampling = &Sampling{}
	}
	a, err := m.Generate(context.Background(), r, emit)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

const story = "Tell me a very short story about a cat named Mia."

// Each token is handed out before its text, and together they are the text.
func TestTokensComeBeforeTheirText(t *testing.T) {
	m := teller(t, ModelOptions{Context: 256, Sequences: 2, Shared: true})
	var seen []Token
	var bytes []byte
	shown := 0
	a := ask(t, m, Request{Prompt: story, MaxTokens: 40, LogProbs: true, TopLogProbs: 3, OnToken: func(k Token) {
		seen, bytes = append(seen, k), append(bytes, k.Bytes...)
	}}, func(text string) {
		if shown += len(text); shown > len(bytes) {
			t.Errorf("%d bytes of text are shown, and %d of tokens", shown, len(bytes))
		}
	})
	if len(seen) != len(a.IDs) || len(a.Tokens) != len(a.IDs) || strings.TrimSpace(string(bytes)) != strings.TrimSpace(a.Text) {
		t.Errorf("%d tokens were handed out, %d are in the answer; %q, %q", len(seen), len(a.Tokens), bytes, a.Text)
	}
	for i, k := range seen {
		if k.ID != a.IDs[i] || k.LogProb > 0 || len(k.Top) != 3 || k.Top[0].ID != k.ID || k.Top[0].LogProb != k.LogProb || k.Top[1].LogProb > k.Top[0].LogProb {
			t.Errorf("token %d is %+v", i, k)
		}
	}
	again := ask(t, m, Request{Prompt: story, MaxTokens: 40}, nil)
	if again.Text != a.Text || again.CachedTokens == 0 || a.CachedTokens != 0 || again.Tokens != nil {
		t.Errorf("%d, then %d tokens were in the cache; %q, then %q", a.CachedTokens, again.CachedTokens, a.Text, again.Text)
	}
}

// The probabilities of a prompt's tokens are those that an answer with the same tokens has.
func TestPromptLogProbs(t *testing.T) {
	m := teller(t, ModelOptions{Context: 256, Sequences: 2})
	a := ask(t, m, Request{Prompt: story, MaxTokens: 20, LogProbs: true, TopLogProbs: 2}, nil)
	whole := slices.Concat(a.PromptIDs, a.IDs)
	b := ask(t, m, Request{IDs: whole, MaxTokens: 1, PromptLogProbs: true, TopLogProbs: 2}, nil)
	if len(b.PromptTokens) != len(whole) || b.PromptTokens[0].LogProb != 0 || b.PromptTokens[0].Top != nil {
		t.Fatalf("%d tokens, the first is %+v", len(b.PromptTokens), b.PromptTokens[0])
	}
	for i, want := range a.Tokens {
		got := b.PromptTokens[len(a.PromptIDs)+i]
		if got.ID != want.ID || math.Float32bits(got.LogProb) != math.Float32bits(want.LogProb) || got.Top[1].LogProb != want.Top[1].LogProb {
			t.Errorf("token %d is %+v, in the answer it was %+v", i, got, want)
		}
	}
}

func TestHowAnswersEnd(t *testing.T) {
	m := teller(t, ModelOptions{Context: 256, Sequences: 2, Shared: true})
	a := ask(t, m, Request{Prompt: story, MaxTokens: 60}, nil)
	if a.FinishReason != FinishStop || a.StopSequence != "" {
		t.Fatalf("%+v", a)
	}
	word := strings.Fields(a.Text)[4]
	if b := ask(t, m, Request{Prompt: story, MaxTokens: 60, Stop: []string{"nowhere", word}}, nil); b.FinishReason != FinishStop || b.StopSequence != word || strings.Contains(b.Text, word) {
		t.Errorf("stopped by %q: %q", b.StopSequence, b.Text)
	}
	if s := m.Stats(); s.Finished[FinishStop] != 2 || s.AnswerTokens < int64(len(a.IDs)) {
		t.Errorf("%+v", s)
	}
	id := a.IDs[7]
	first := slices.Index(a.IDs, id)
	if b := ask(t, m, Request{Prompt: story, MaxTokens: 60, StopIDs: []int32{id}}, nil); b.FinishReason != FinishStop || !slices.Equal(b.IDs, a.IDs[:first]) {
		t.Errorf("%v, %s; expected %v", b.IDs, b.FinishReason, a.IDs[:first])
	}
	least := len(a.IDs) + 6
	if b := ask(t, m, Request{Prompt: story, MaxTokens: 80, MinTokens: least}, nil); len(b.IDs) < least || !slices.Equal(b.IDs[:len(a.IDs)], a.IDs) {
		t.Errorf("%d tokens of at least %d: %v", len(b.IDs), least, b.IDs)
	}
	if b := ask(t, m, Request{Prompt: story, MaxTokens: 60, StopIDs: []int32{id}, MinTokens: first + 2}, nil); len(b.IDs) < first+2 || slices.Contains(b.IDs[:first+2], id) {
		t.Errorf("a stop token within the first %d: %v", first+2, b.IDs)
	}
	for _, r := range []Request{{Prompt: story, TopLogProbs: MaxTopLogProbs + 1}, {Prompt: story, MinTokens: -1}} {
		if _, err := m.Generate(context.Background(), r, nil); err == nil || !strings.Contains(err.Error(), "not possible") {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// A shared cache has room for one full context, and what the memory allows beyond it.
func TestPlanOfASharedCache(t *testing.T) {
	rt := newRuntime(t, 1<<30)
	defer rt.Close()
	c, err := rt.LoadEmbedded(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	one, err := c.Plan(ModelOptions{Context: 512})
	if err != nil {
		t.Fatal(err)
	}
	full := one.Pools[budget.KV]
	o := ModelOptions{Context: 512, Sequences: 1000, Shared: true}
	var small *TooSmallError
	o.Memory = 1
	if _, err := c.Plan(o); !errors.As(err, &small) || small.Pools[budget.KV] != full {
		t.Fatalf("the least: %v, with %d bytes for a context", err, full)
	}
	o.Memory = small.Least + 8<<20
	p, err := c.Plan(o)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, n := range p.Pools {
		sum += n
	}
	if kv := p.Pools[budget.KV]; kv < full || kv > full+8<<20 || sum > o.Memory {
		t.Errorf("%d bytes of cache where a context takes %d; %d of %d in all", kv, full, sum, o.Memory)
	}
	o.Memory, o.Sequences = 0, 3
	if p, err = c.Plan(o); err != nil || p.Pools[budget.KV] != 3*full {
		t.Errorf("three contexts of %d where there is room: %d, %v", full, p.Pools[budget.KV], err)
	}
	if p.Chunk < 512+3 {
		t.Errorf("steps of %d rows", p.Chunk)
	}
}

// One more than may wait is told so.
func TestQueueIsBounded(t *testing.T) {
	m := teller(t, ModelOptions{Context: 256, Sequences: 1, Queue: 1, Shared: true})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	second := make(chan error, 1)
	var full *QueueFullError
	tried := false
	_, err := m.Generate(ctx, Request{Prompt: story, MaxTokens: 200, IgnoreEnd: true, OnToken: func(Token) {
		if tried {
			return
		}
		tried = true
		go func() {
			_, err := m.Generate(ctx, Request{Prompt: story, MaxTokens: 2}, nil)
			second <- err
		}()
		for m.Stats().Waiting == 0 {
		}
		if _, err := m.Generate(ctx, Request{Prompt: story, MaxTokens: 2}, nil); !errors.As(err, &full) || full.Running != 1 || full.Waiting != 1 {
			t.Errorf("one more than may wait: %v", err)
		}
		cancel()
	}}, nil)
	if err != nil || !tried {
		t.Errorf("%v", err)
	}
	if err := <-second; err != nil {
		t.Errorf("the one that waited was cancelled: %v", err)
	}
}

// A beam of one is the greedy answer.
func TestBeamOfOneIsGreedy(t *testing.T) {
	m := teller(t, ModelOptions{Context: 256, Sequences: 4, Shared: true})
	a := ask(t, m, Request{Prompt: story, MaxTokens: 60, LogProbs: true}, nil)
	one, err := m.Beam(context.Background(), Request{Prompt: story, MaxTokens: 60}, BeamOptions{Width: 1})
	if err != nil || len(one) != 1 || !slices.Equal(one[0].IDs, a.IDs) || one[0].Text != a.Text || one[0].FinishReason != a.FinishReason {
		t.Fatalf("%+v, %v; greedy it is %q", one, err, a.Text)
	}
	four, err := m.Beam(context.Background(), Request{Prompt: story, MaxTokens: 60}, BeamOptions{Width: 4})
	if err != nil || len(four) != 4 || four[3].Score > four[0].Score || four[0].CachedTokens == 0 {
		t.Errorf("%+v, %v; alone it is %v", four, err, one[0].LogProb)
	}
	if _, err := m.Beam(context.Background(), Request{Prompt: story, Stop: []string{"x"}}, BeamOptions{Width: 1}); err == nil {
		t.Error("a stop text is ignored")
	}
}
