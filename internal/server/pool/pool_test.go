package pool_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server/pool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// large makes of the embedded model one that fills more than half of the memory: its cache is for many.
var large = spillway.ModelOptions{Context: 512, Sequences: 40}

// two returns a pool of two models of which one fits, and the runtime they share.
func two(t *testing.T, o pool.Options) *pool.Pool {
	t.Helper()
	rt, err := spillway.New(spillway.Options{Memory: memory(t), Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	o.Model = large
	p, err := pool.New(t.Context(), rt, []pool.Spec{{Name: "a"}, {Name: "b", Alias: "other"}}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Close(), rt.Close()); err != nil {
			t.Error(err)
		}
		if used := rt.Ledger().Used; used != 0 {
			t.Errorf("%d bytes are still leased", used)
		}
	})
	return p
}

// memory is what one large model needs, and a little more.
func memory(t *testing.T) int64 {
	t.Helper()
	rt, err := spillway.New(spillway.Options{Memory: 4 << 30, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	c, err := rt.LoadEmbedded(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := c.Plan(large)
	if err != nil {
		t.Fatal(err)
	}
	return p.Least * 3 / 2
}

func loaded(p *pool.Pool) (names []string) {
	for _, s := range p.List() {
		if s.Loaded {
			names = append(names, s.Name)
		}
	}
	return names
}

func acquire(t *testing.T, p *pool.Pool, name string) *pool.Held {
	t.Helper()
	h, err := p.Acquire(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestEviction(t *testing.T) {
	p := two(t, pool.Options{KeepAlive: pool.Forever})
	a := acquire(t, p, "a")
	var busy *pool.BusyError
	if _, err := p.Acquire(t.Context(), "b"); !errors.As(err, &busy) || !slices.Equal(busy.Used, []string{"a"}) {
		t.Fatalf("beside a model in use: %v", err)
	}
	if got := loaded(p); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("loaded: %v", got)
	}
	if answer, err := a.Generate(t.Context(), spillway.Request{Prompt: "Once", MaxTokens: 3}, nil); err != nil || len(answer.IDs) == 0 {
		t.Fatalf("the model in use: %v", err)
	}
	a.Release()
	a.Release() // does no harm
	b := acquire(t, p, "other")
	if got := loaded(p); !slices.Equal(got, []string{"b"}) || b.Name != "b" {
		t.Errorf("loaded: %v", got)
	}
	b.Release()
	acquire(t, p, "a:latest").Release()
	if got := loaded(p); !slices.Equal(got, []string{"a"}) {
		t.Errorf("loaded: %v", got)
	}
}

func TestUnknown(t *testing.T) {
	p := two(t, pool.Options{})
	var unknown *pool.UnknownError
	if _, err := p.Acquire(t.Context(), "c"); !errors.As(err, &unknown) || !slices.Equal(unknown.Known, []string{"a", "b"}) {
		t.Errorf("%v", err)
	}
	if _, err := p.Find("c"); !errors.As(err, &unknown) {
		t.Errorf("%v", err)
	}
	if err := p.Unload(t.Context(), "c"); !errors.As(err, &unknown) {
		t.Errorf("%v", err)
	}
}

// until waits for a state that comes by itself.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("waited in vain: %s", what)
}

func TestKeepAlive(t *testing.T) {
	p := two(t, pool.Options{KeepAlive: 10 * time.Millisecond})
	none := func() bool { return len(loaded(p)) == 0 }
	h := acquire(t, p, "a")
	time.Sleep(30 * time.Millisecond)
	if none() {
		t.Fatal("a model in use was unloaded")
	}
	h.Release()
	until(t, "the idle model goes", none)

	h = acquire(t, p, "a")
	h.KeepAlive(pool.Forever)
	h.Release()
	if s, _ := p.Find("a"); !s.Expires.IsZero() {
		t.Errorf("it goes at %s", s.Expires)
	}
	time.Sleep(30 * time.Millisecond)
	if none() {
		t.Fatal("a model that was to stay was unloaded")
	}
	if err := p.Unload(t.Context(), "a"); err != nil || !none() {
		t.Errorf("unloaded by name: %v %v", err, loaded(p))
	}
	h = acquire(t, p, "a")
	if err := p.Unload(t.Context(), "a"); err != nil || none() {
		t.Errorf("unloaded while in use: %v", err)
	}
	h.KeepAlive(0)
	h.Release()
	until(t, "the model goes at once", none)
}

// Many that ask for a model that is not there load it once.
func TestLoadsOnce(t *testing.T) {
	var loads atomic.Int32
	p := two(t, pool.Options{KeepAlive: pool.Forever, Loaded: func(string, *spillway.Model) { loads.Add(1) }})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			h, err := p.Acquire(t.Context(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			h.Release()
		})
	}
	group.Wait()
	if n := loads.Load(); n != 1 {
		t.Errorf("loaded %d times", n)
	}
}

// A client that leaves while its model loads does not stop the load.
func TestLeavesWhileLoading(t *testing.T) {
	p := two(t, pool.Options{KeepAlive: pool.Forever})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Acquire(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	until(t, "the model is loaded", func() bool { return slices.Equal(loaded(p), []string{"a"}) })
	if s, _ := p.Find("a"); s.Users != 0 {
		t.Errorf("%d users", s.Users)
	}
}

func TestClosed(t *testing.T) {
	p := two(t, pool.Options{KeepAlive: pool.Forever})
	if err := p.Load(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Close(), p.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Acquire(t.Context(), "a"); !errors.Is(err, spillway.ErrClosed) {
		t.Errorf("%v", err)
	}
}

func TestTwins(t *testing.T) {
	rt, err := spillway.New(spillway.Options{Memory: 256 << 20, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if _, err := pool.New(t.Context(), rt, []pool.Spec{{}, {}}, pool.Options{}); err == nil {
		t.Error("two models of one name are accepted")
	}
	p, err := pool.New(t.Context(), rt, []pool.Spec{{}}, pool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	f := p.List()[0]
	if f.Name != "storyteller" || f.Context == 0 || f.Parameters == 0 || f.Type == "" || f.Identity == "" || !f.Embedded || f.Loaded {
		t.Errorf("%+v", f)
	}
}
