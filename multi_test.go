package spillway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/testutil"
)

// shared is a model in a runtime that has others.
type shared struct {
	path    string // "" is the embedded model
	options ModelOptions
}

// sharing are three models: the embedded one twice, and another file.
func sharing(t *testing.T) []shared {
	t.Helper()
	small := ModelOptions{Context: 256, Sequences: 3}
	return []shared{{"", small}, {toyFile(t), ModelOptions{Context: 128, Sequences: 2, Chunk: 16}}, {"", small}}
}

func newRuntime(t *testing.T, memory int64) *Runtime {
	t.Helper()
	rt, err := New(Options{Memory: memory, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func (s shared) open(t *testing.T, rt *Runtime) *Model {
	t.Helper()
	m, err := openAt(rt, s.path, s.options)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// request is the i-th of a model: some greedy, some drawn.
func (s shared) request(m *Model, i int) Request {
	r := Request{IDs: promptFor(i, m.Layout().Vocab), MaxTokens: 20 + 7*i, IgnoreEnd: true, Sampling: &Sampling{}}
	if i%2 == 1 {
		r.Sampling = &Sampling{Temperature: 1, TopP: 0.9, Seed: uint64(i)}
	}
	return r
}

const requestsEach = 3

// answers runs a model's requests, all at once or one after the other.
func (s shared) answers(m *Model, atOnce bool) ([][]int32, error) {
	all, errs := make([][]int32, requestsEach), make([]error, requestsEach)
	var wg sync.WaitGroup
	for i := range all {
		run := func() {
			a, err := m.Generate(context.Background(), s.request(m, i), nil)
			if errs[i] = err; err == nil {
				all[i] = a.IDs
			}
		}
		if atOnce {
			wg.Go(run)
		} else {
			run()
		}
	}
	wg.Wait()
	return all, errors.Join(errs...)
}

// alone is what a model answers in a runtime of its own, and what it leases there while idle.
func (s shared) alone(t *testing.T) ([][]int32, budget.Usage) {
	t.Helper()
	rt := newRuntime(t, 1<<30)
	m := s.open(t, rt)
	idle := rt.Ledger()
	ids, err := s.answers(m, false)
	if err := errors.Join(err, m.Close(), rt.Close()); err != nil {
		t.Fatal(err)
	}
	return ids, idle
}

// modelPools are the pools that belong to models; the runtime pool is the process's own.
var modelPools = []budget.Pool{budget.Weights, budget.KV, budget.Activation, budget.Staging}

// Models of one runtime answer at the same time what each answers alone, and the ledger is the sum
// of what they lease.
func TestModelsShareARuntime(t *testing.T) {
	all := sharing(t)
	rt := newRuntime(t, 1<<30)
	defer rt.Close()
	want := make([][][]int32, len(all))
	var sum [budget.Pools]int64
	models := make([]*Model, len(all))
	for i, s := range all {
		var idle budget.Usage
		want[i], idle = s.alone(t)
		models[i] = s.open(t, rt)
		for _, p := range modelPools {
			sum[p] += idle.Pools[p].Used
			if got := rt.Ledger().Pools[p].Used; got != sum[p] {
				t.Errorf("%d models lease %d bytes of the pool %s, alone they lease %d", i+1, got, p, sum[p])
			}
		}
	}
	got := make([][][]int32, len(all))
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() { got[i], errs[i] = s.answers(models[i], true) })
	}
	wg.Wait()
	for i := range all {
		if errs[i] != nil || !slices.EqualFunc(got[i], want[i], slices.Equal[[]int32]) {
			t.Errorf("model %d answers %v beside the others and %v alone (%v)", i, got[i], want[i], errs[i])
		}
	}
	if u := rt.Ledger(); u.Peak > u.Limit || u.Limit != rt.Memory() {
		t.Errorf("the peak is %d under a limit of %d, the memory is %d", u.Peak, u.Limit, rt.Memory())
	}
	for _, m := range models {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The same weights give the same answer from another file format.
func TestEmbeddedBesideItsFolder(t *testing.T) {
	folder := shared{testutil.Shared(t, "models/storyteller/hf"), ModelOptions{Context: 256}}
	rt := newRuntime(t, 1<<30)
	defer rt.Close()
	a, b := shared{options: folder.options}.open(t, rt), folder.open(t, rt)
	r := Request{Prompt: "What is the opposite of hot?", Sampling: &Sampling{}, MaxTokens: 40}
	var texts [2]string
	var errs [2]error
	var wg sync.WaitGroup
	for i, m := range []*Model{a, b} {
		wg.Go(func() {
			answer, err := m.Generate(context.Background(), r, nil)
			if errs[i] = err; err == nil {
				texts[i] = answer.Text
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil || texts[0] != "The opposite of hot is cold." || texts[1] != texts[0] {
		t.Errorf("the answers are %q (%v)", texts, err)
	}
	if err := errors.Join(b.Close(), a.Close()); err != nil {
		t.Error(err)
	}
}

// Whatever the order in which models are closed, what each leased is given back then, and nothing
// stays when the runtime is closed.
func TestCloseInAnyOrder(t *testing.T) {
	all := sharing(t)
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			rt := newRuntime(t, 1<<30)
			models := make([]*Model, len(all))
			var leased [3]int64 // by each model
			for i, s := range all {
				before := ofModels(rt)
				models[i] = s.open(t, rt)
				leased[i] = ofModels(rt) - before
			}
			if err := rt.Close(); err == nil || !strings.Contains(err.Error(), "3 models are still open") {
				t.Errorf("closing the runtime under its models: %v", err)
			}
			for _, i := range order {
				before := ofModels(rt)
				if err := models[i].Close(); err != nil {
					t.Error(err)
				}
				if got := before - ofModels(rt); got != leased[i] {
					t.Errorf("model %d leased %d bytes and gave %d back", i, leased[i], got)
				}
			}
			if err := rt.Close(); err != nil {
				t.Error(err)
			}
			if used := rt.Ledger().Used; used != 0 {
				t.Errorf("%d bytes are still leased", used)
			}
		})
	}
}

// ofModels is what is leased, apart from the process itself and the tokenizers.
func ofModels(rt *Runtime) (n int64) {
	u := rt.Ledger()
	for _, p := range modelPools {
		n += u.Pools[p].Used
	}
	return n
}

// A second model that does not fit beside the first is refused, with what it would need; the first
// goes on as before, and so does the second once the first is gone.
func TestSecondModelTooLarge(t *testing.T) {
	startTakes(t, 0) // else there would be memory for both
	toy := shared{toyFile(t), ModelOptions{Context: 128, Sequences: requestsEach, Chunk: 16}}
	want, _ := toy.alone(t)
	rt := newRuntime(t, leastFor(t, toy.path, 2, toy.options))
	defer rt.Close()
	first := toy.open(t, rt)
	if first.CurrentPlan().StreamedBytes == 0 {
		t.Fatal("the first model leaves memory")
	}
	before := rt.Ledger().Used
	for _, second := range []shared{toy, {"", ModelOptions{Context: 512, Sequences: 8}}} {
		m, err := openAt(rt, second.path, second.options)
		var small *TooSmallError
		if !errors.As(err, &small) || small.Least <= small.Budget || small.Budget >= rt.Memory() {
			t.Errorf("a second model in the memory of one: %v, %v", m, err)
		}
		if used := rt.Ledger().Used; used != before {
			t.Errorf("%d bytes are leased, %d before the second model", used, before)
		}
	}
	if got, err := toy.answers(first, true); err != nil || !slices.EqualFunc(got, want, slices.Equal[[]int32]) {
		t.Errorf("the first model answers %v afterwards, %v alone (%v)", got, want, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again := toy.open(t, rt)
	if got, err := toy.answers(again, true); err != nil || !slices.EqualFunc(got, want, slices.Equal[[]int32]) {
		t.Errorf("the next model answers %v, %v alone (%v)", got, want, err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// A second model takes nothing of what the first was promised, such as the cache of requests that
// have not come yet.
func TestPromisesAreKept(t *testing.T) {
	large := shared{options: ModelOptions{Context: 512, Sequences: 12}}
	toy := shared{toyFile(t), ModelOptions{Context: 128, Chunk: 16}}
	// Enough for both at their least, not for all weights of the second.
	memory := leastFor(t, large.path, 2, large.options) + 10<<20
	rt := newRuntime(t, memory)
	defer rt.Close()
	first := large.open(t, rt)
	second := toy.open(t, rt)
	if second.CurrentPlan().Resident {
		t.Fatal("the second model takes less than there is")
	}
	errs := make([]error, large.options.Sequences)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			r := Request{IDs: promptFor(i%4, 2048), IgnoreEnd: true}
			r.MaxTokens = large.options.Context - len(r.IDs)
			_, errs[i] = first.Generate(context.Background(), r, nil)
		})
	}
	_, err := toy.answers(second, true)
	wg.Wait()
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Errorf("a request within what was planned: %v", err)
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
}

// What is closed refuses to work, and a second Close changes nothing.
func TestClosed(t *testing.T) {
	rt := newRuntime(t, 1<<30)
	a, b := shared{}.open(t, rt), shared{}.open(t, rt)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("a second Close of a model: %v", err)
	}
	if _, err := a.Generate(context.Background(), Request{IDs: []int32{1}}, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a request to a closed model: %v", err)
	}
	if err := rt.Close(); err == nil {
		t.Error("a runtime was closed under a model")
	}
	if _, err := b.Generate(context.Background(), Request{IDs: []int32{1}, MaxTokens: 3}, nil); err != nil {
		t.Error(err)
	}
	if err := errors.Join(b.Close(), rt.Close()); err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("a second Close of a runtime: %v", err)
	}
	if _, err := rt.OpenEmbedded(context.Background(), ModelOptions{}); !errors.Is(err, ErrClosed) {
		t.Errorf("a model in a closed runtime: %v", err)
	}
	if used := rt.Ledger().Used; used != 0 {
		t.Errorf("%d bytes are still leased", used)
	}
}
