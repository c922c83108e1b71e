package engine_test

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/spillway/spillway/internal/engine"
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/kv"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/nn"
	"github.com/spillway/spillway/internal/nn/nntest"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/sample"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is an engine on a tiny model.
type bench struct {
	*engine.Engine
	*nntest.Machine
	weights *nntest.Weights
	cache   *kv.Cache
}

// setup is what an engine of a test has; zero fields are those of most tests.
type setup struct {
	rows, heads, seats, queue int
	blocks                    int  // of the cache, all that there are
	alone                     bool // nobody shares blocks
	scaling                   nn.Scaling
}

func start(t *testing.T) *bench { return setup{}.start(t) }

func (s setup) start(t *testing.T) *bench {
	t.Helper()
	s.rows, s.heads, s.blocks = cmp.Or(s.rows, 16), cmp.Or(s.heads, 4), cmp.Or(s.blocks, 32*8)
	w := nntest.NewWeights(quant.Q8_0, 1)
	m := nntest.Start(t, nntest.Tiny(&nn.Rope{Dim: 16, Base: 100, Scaling: s.scaling}), w, nntest.Options{Rows: s.rows, HeadRows: s.heads, Context: 128})
	shape := kv.Shape{Layers: m.Model.Cache, Type: kernel.CacheF16}
	cache, err := kv.New(m.Ledger, shape, int64(s.blocks*shape.BlockBytes()))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{weights: w, Machine: m, cache: cache}
	c := engine.Config{Model: m.Model, Env: m.Env, Ledger: m.Ledger, Cache: cache, Rows: s.rows, HeadRows: s.heads, Sequences: s.seats, Queue: s.queue, Context: 128, Identity: "tiny"}
	if s.alone {
		c.Identity = ""
	}
	b.Engine = engine.New(c)
	if err := errors.Join(b.PrepareSampling(), m.Ledger.SetLimit(m.Ledger.Snapshot().Used)); err != nil {
		t.Fatal(err) // nothing beyond the plan
	}
	t.Cleanup(func() {
		b.Close()
		b.settled(t)
		if err := cache.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// settled fails unless every request gave its blocks back.
func (b *bench) settled(t *testing.T) {
	t.Helper()
	if s := b.State(); s.Cache.Used != 0 || s.Running != 0 || s.Waiting != 0 {
		t.Errorf("left behind: %+v", s)
	}
}

// finish reads a stream to its end.
func finish(s *engine.Stream) (ids []int32, last engine.Event) {
	for {
		e := s.Next()
		if e.Done {
			return ids, e
		}
		ids = append(ids, e.ID)
	}
}

func (b *bench) run(t *testing.T, r engine.Request) ([]int32, engine.Event) {
	t.Helper()
	s, err := b.Submit(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return finish(s)
}

// together submits requests between two steps, and then calls what else is to be done there: they begin with the
// same step.
func (b *bench) together(t *testing.T, ctx context.Context, requests []engine.Request, then ...func()) (streams []*engine.Stream) {
	t.Helper()
	err := b.Between(func() error {
		for _, r := range requests {
			s, err := b.Submit(ctx, r)
			if err != nil {
				return err
			}
			streams = append(streams, s)
		}
		for _, f := range then {
			f()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return streams
}

// request is the i-th of many: prompts of 1 to 40 tokens, some greedy, some drawn.
func request(i int) engine.Request {
	random := rand.New(rand.NewPCG(uint64(i), 5))
	r := engine.Request{IDs: make([]int32, 1+random.IntN(40)), MaxTokens: random.IntN(20)}
	for j := range r.IDs {
		r.IDs[j] = int32(random.IntN(96))
	}
	if i%3 > 0 {
		r.Sampling = sample.Params{Temperature: 1, Seed: uint64(i % 5), TopP: 0.9}
	}
	return r
}

// recorded is a request whose logits, of the prompt and the answer, go to *bits.
func recorded(i int, bits *[]uint32) engine.Request {
	r := request(i)
	add := func(values []float32) {
		for _, v := range values {
			*bits = append(*bits, math.Float32bits(v))
		}
	}
	if i%2 == 0 {
		r.Rows = func(_ int, values []float32) error { add(values); return nil }
	}
	r.Logits = func(_ int, values []float32) { add(values) }
	return r
}

// Answers and every logit on the way are those of each request alone, whoever shares the steps.
func TestCompanyChangesNothing(t *testing.T) {
	const n = 24
	b := start(t)
	type result struct {
		ids  []int32
		bits []uint32
	}
	alone, together := make([]result, n), make([]result, n)
	for i := range n {
		alone[i].ids, _ = b.run(t, recorded(i, &alone[i].bits))
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			s, err := b.Submit(context.Background(), recorded(i, &together[i].bits))
			if err != nil {
				t.Error(err)
				return
			}
			var last engine.Event
			if together[i].ids, last = finish(s); last.Reason != engine.Length || last.Err != nil {
				t.Errorf("request %d ended with %+v", i, last)
			}
		})
	}
	wg.Wait()
	for i := range n {
		if len(alone[i].ids) != request(i).MaxTokens || !slices.Equal(alone[i].ids, together[i].ids) || !slices.Equal(alone[i].bits, together[i].bits) {
			t.Errorf("request %d: %v alone, %v in company, or other logits", i, alone[i].ids, together[i].ids)
		}
	}
	if c := b.Counters(); c.PromptRows+c.AnswerRows <= c.Steps {
		t.Errorf("no step was shared: %+v", c)
	} else if c.AnswerSteps < 1 || c.AnswerSteps >= c.Steps || c.AnswerTime <= 0 || c.AnswerTime >= c.StepTime {
		t.Errorf("steps of answers alone: %+v", c)
	}
	b.settled(t)
}

func TestRefused(t *testing.T) {
	b := start(t)
	m := b.Model.Layout.Matrices[1]
	prompt := make([]int32, 20)
	seq := b.cache.NewSequence()
	for _, c := range []struct {
		r    engine.Request
		says string
	}{
		{engine.Request{}, "the prompt has no tokens"},
		{engine.Request{IDs: []int32{1, 96}}, "token 96 at position 1 is not in the vocabulary of 96"},
		{engine.Request{IDs: []int32{-1}}, "token -1 at position 0"},
		{engine.Request{IDs: prompt, MaxTokens: 109}, "the prompt of 20 tokens and 109 more do not fit in a context of 128"},
		{engine.Request{IDs: prompt, MaxTokens: math.MaxInt}, "do not fit in a context of 128"},
		{engine.Request{IDs: make([]int32, 129)}, "the prompt of 129 tokens and 0 more"},
		{engine.Request{IDs: prompt, MaxTokens: -1}, "-1 tokens"},
		{engine.Request{IDs: prompt, Sampling: sample.Params{TopP: 2}}, "top-p is 2"},
		{engine.Request{IDs: prompt, Cache: seq, Cached: 20}, "20 cached positions leave none of 20"},
		{engine.Request{IDs: prompt, Shape: &nn.Segment{}}, "20 rows does not fit a step of 16"},
		{engine.Request{IDs: prompt[:5], Shape: &nn.Segment{}, Rows: func(int, []float32) error { return nil }}, "all 5 rows"},
		{engine.Request{IDs: prompt[:5], Shape: &nn.Segment{N: 5, Embeds: make([]float32, 4*64)}}, "5 embeddings of 256 values are given for 5 rows"},
		{engine.Request{IDs: prompt[:5], Shape: &nn.Segment{Positions: make([][3]int32, 4)}}, "4 positions are given for 5 rows"},
		{engine.Request{IDs: prompt, Adapter: &nn.Adapter{Parts: map[*layout.Matrix]nn.LowRank{m: {Rank: 1}}}}, "the update of " + m.Name},
	} {
		if _, err := b.Submit(context.Background(), c.r); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("the error %v does not say %q", err, c.says)
		}
	}
	var long *engine.TooLongError
	if _, err := b.Submit(context.Background(), engine.Request{IDs: prompt, MaxTokens: math.MaxInt}); !errors.As(err, &long) {
		t.Errorf("%T", err)
	}
	if ids, e := b.run(t, engine.Request{IDs: prompt, MaxTokens: 108}); len(ids) != 108 || e.Reason != engine.Length {
		t.Errorf("a request that fills the context: %d tokens, %+v", len(ids), e)
	}
	b.settled(t)
}

func TestEnds(t *testing.T) {
	b := start(t)
	r := request(3) // greedy
	r.MaxTokens = 12
	all, _ := b.run(t, r)
	r.End = map[int32]bool{all[5]: true}
	if ids, e := b.run(t, r); e.Reason != engine.Stop || !slices.Equal(ids, all[:slices.Index(all, all[5])]) {
		t.Errorf("%v, then %+v; without the end it is %v", ids, e, all)
	}
	r.End = nil
	wrong := errors.New("enough")
	r.Rows = func(position int, _ []float32) error {
		if position == 1 {
			return wrong
		}
		return nil
	}
	if ids, e := b.run(t, r); e.Reason != engine.Failed || !errors.Is(e.Err, wrong) || len(ids) > 0 {
		t.Errorf("%v, then %+v", ids, e)
	}
	b.settled(t)
}

// A request that is cancelled, in its prompt or its answer, gives everything back; its neighbour
// does not notice.
func TestCancel(t *testing.T) {
	b := start(t)
	var want, got []uint32
	b.run(t, recorded(4, &want))
	for _, during := range []string{"before", "prompt", "answer"} {
		ctx, cancel := context.WithCancel(context.Background())
		r := engine.Request{IDs: make([]int32, 50), MaxTokens: 70}
		switch during {
		case "before":
			cancel()
		case "prompt":
			r.Rows = func(position int, _ []float32) error {
				if position == 30 {
					cancel()
				}
				return nil
			}
		case "answer":
			r.Logits = func(position int, _ []float32) {
				if position == 60 {
					cancel()
				}
			}
		}
		got = nil
		s, err := b.Submit(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		b.run(t, recorded(4, &got))
		ids, e := finish(s)
		if e.Reason != engine.Cancelled || !errors.Is(e.Err, context.Canceled) {
			t.Errorf("cancelled %s: %+v", during, e)
		}
		if n := map[string]int{"answer": 11}[during]; len(ids) != n {
			t.Errorf("cancelled %s: %d tokens, expected %d", during, len(ids), n)
		}
		if !slices.Equal(got, want) {
			t.Errorf("cancelled %s: a neighbour has other logits", during)
		}
		cancel()
	}
	b.settled(t)
}

func TestCloseEndsRequests(t *testing.T) {
	b := start(t)
	var streams []*engine.Stream
	begun := make(chan struct{})
	var once sync.Once
	for range 5 {
		s, err := b.Submit(context.Background(), engine.Request{IDs: make([]int32, 10), MaxTokens: 118,
			Logits: func(int, []float32) { once.Do(func() { close(begun) }) }})
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, s)
	}
	<-begun
	b.Close()
	for _, s := range streams {
		if _, e := finish(s); e.Reason != engine.Cancelled && e.Reason != engine.Length {
			t.Errorf("%+v", e)
		}
	}
	if _, err := b.Submit(context.Background(), request(1)); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("a request after the close: %v", err)
	}
	b.settled(t)
}

// overflowing is an adapter that takes layer 1's values beyond f16.
func (b *bench) overflowing() *nn.Adapter {
	m := b.Model.Layout.Bundles[3].Matrices[2]
	p := nn.LowRank{Rank: 1, A: make([]float32, m.Cols), B: make([]float32, m.Rows)}
	for i := range p.A {
		p.A[i] = 1
	}
	for i := range p.B {
		p.B[i] = 1
	}
	return &nn.Adapter{Scale: 1e9, Parts: map[*layout.Matrix]nn.LowRank{m: p}}
}

// What does not fit the cache's type ends its own request, is counted, and does not stay in a cache
// that is kept.
func TestCacheOverflow(t *testing.T) {
	b := start(t)
	ids := request(1).IDs
	want, _ := b.run(t, engine.Request{IDs: ids, MaxTokens: 6})
	seq := b.cache.NewSequence()
	neighbour, err := b.Submit(context.Background(), engine.Request{IDs: ids, MaxTokens: 6})
	if err != nil {
		t.Fatal(err)
	}
	_, e := b.run(t, engine.Request{IDs: ids, MaxTokens: 6, Cache: seq, Adapter: b.overflowing()})
	var overflow *nn.CacheRangeError
	if e.Reason != engine.Failed || !errors.As(e.Err, &overflow) || overflow.Layer != 1 || e.Cached != 0 {
		t.Errorf("%+v; expected a failure in layer 1 and nothing kept", e)
	}
	if got, e := finish(neighbour); e.Reason != engine.Length || !slices.Equal(got, want) {
		t.Errorf("a neighbour answered %v (%+v), expected %v", got, e, want)
	}
	if got, e := b.run(t, engine.Request{IDs: ids, MaxTokens: 6, Cache: seq, Cached: e.Cached}); !slices.Equal(got, want) || e.Cached < len(ids) {
		t.Errorf("the next request on the cache: %v (%+v), expected %v", got, e, want)
	}
	if n := b.Counters().CacheOverflow; n != 1 {
		t.Errorf("%d overflows are counted", n)
	}
	if err := seq.Release(); err != nil {
		t.Error(err)
	}
	b.settled(t)
}

// Embeddings instead of ids, in one chunk, give the same answer.
func TestShape(t *testing.T) {
	b := start(t)
	ids := slices.Repeat(request(2).IDs, 2)
	want, _ := b.run(t, engine.Request{IDs: ids, MaxTokens: 8})
	shape := &nn.Segment{N: len(ids)}
	table := b.weights.Values[nntest.Key(-1, "embed.weight")]
	for _, id := range ids {
		shape.Embeds = append(shape.Embeds, table[id*64:][:64]...)
	}
	got, e := b.run(t, engine.Request{IDs: make([]int32, len(ids)), MaxTokens: 8, Shape: shape})
	if !slices.Equal(got, want) || e.Reason != engine.Length {
		t.Errorf("%v (%+v), expected %v", got, e, want)
	}
}

// Requests that do not fit together take turns; every one is answered as if it were alone.
func TestNoRoom(t *testing.T) {
	b := setup{blocks: 10}.start(t)
	want, _ := b.run(t, engine.Request{IDs: make([]int32, 60), MaxTokens: 40})
	var streams []*engine.Stream
	for range 6 {
		s, err := b.Submit(context.Background(), engine.Request{IDs: make([]int32, 60), MaxTokens: 40, Private: true})
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, s)
	}
	for i, s := range streams {
		if ids, e := finish(s); e.Reason != engine.Length || !slices.Equal(ids, want) {
			t.Errorf("request %d: %d tokens, %+v", i, len(ids), e)
		}
	}
	if b.Counters().Preempted == 0 {
		t.Error("nobody gave way")
	}
}
