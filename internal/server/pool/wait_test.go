package pool_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/server/pool"
)

// asks reports whether n ask for a model.
func asks(t *testing.T, p *pool.Pool, name string, n int) func() bool {
	return func() bool {
		s, err := p.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		return s.Users == n
	}
}

// What does not fit beside a model in use is loaded once that is idle.
func TestWaitsForRoom(t *testing.T) {
	p := two(t, pool.Options{KeepAlive: pool.Forever, Wait: time.Hour})
	a := acquire(t, p, "a")
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			b, err := p.Acquire(t.Context(), "b")
			if err != nil {
				t.Error(err)
				return
			}
			b.Release()
		})
	}
	until(t, "three wait", asks(t, p, "b", 3))
	time.Sleep(50 * time.Millisecond) // they have tried
	if got := loaded(p); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("loaded: %v", got)
	}
	a.Release()
	group.Wait()
	if got := loaded(p); !slices.Equal(got, []string{"b"}) {
		t.Errorf("loaded: %v", got)
	}
}

// The wait has its end, and who leaves before that is not waited for.
func TestWaitEnds(t *testing.T) {
	p := two(t, pool.Options{KeepAlive: pool.Forever, Wait: 20 * time.Millisecond})
	a := acquire(t, p, "a")
	var busy *pool.BusyError
	if _, err := p.Acquire(t.Context(), "b"); !errors.As(err, &busy) || !slices.Equal(busy.Used, []string{"a"}) {
		t.Errorf("%v", err)
	}
	acquire(t, p, "a").Release() // the other's turn ended with it
	a.Release()

	p = two(t, pool.Options{KeepAlive: pool.Forever, Wait: time.Hour})
	defer acquire(t, p, "a").Release()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.Acquire(ctx, "b"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if !asks(t, p, "b", 0)() {
		t.Error("somebody still waits")
	}
}

// A model that is asked for without end leaves its room to another one that waits, and comes back.
func TestTurns(t *testing.T) {
	p := two(t, pool.Options{KeepAlive: pool.Forever, Wait: 12 * time.Second})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var group sync.WaitGroup
	held := make(chan struct{}, 1)
	for i := range 3 { // one at least holds it at any time
		group.Go(func() {
			time.Sleep(time.Duration(i) * 20 * time.Millisecond)
			for ctx.Err() == nil {
				a, err := p.Acquire(context.Background(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case held <- struct{}{}:
				default:
				}
				time.Sleep(60 * time.Millisecond)
				a.Release()
			}
		})
	}
	<-held
	for range 2 {
		b, err := p.Acquire(t.Context(), "b")
		if err != nil {
			t.Error(err)
			break
		}
		<-held // an old one
		until(t, "somebody wants the first model back", func() bool { s, _ := p.Find("a"); return s.Users > 0 })
		b.Release()
		<-held // they came back
	}
	stop()
	group.Wait()
}
