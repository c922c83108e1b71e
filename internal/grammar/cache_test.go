package grammar

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// pot is memory to lease.
type pot struct {
	mu         sync.Mutex
	free, most int64
}

var errPot = errors.New("the pot is empty")

func (p *pot) lease(n int64, _ string) (func(), error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > p.free {
		return nil, errPot
	}
	p.free -= n
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.free += n
	}), nil
}

func (p *pot) left() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.free
}

func potCache(t *testing.T, bytes, idle int64) (*Cache, *pot) {
	t.Helper()
	v, err := NewVocabulary(wordTokens{"<end>", "a", "b", "ab"}, []int32{0}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &pot{free: bytes, most: bytes}
	return NewCache(v, CacheOptions{Limits: cfg.Limits{Nodes: 1 << 10, Memory: 64 << 10}, Idle: idle, Lease: p.lease}), p
}

func get(t *testing.T, c *Cache, s Source) *Kept {
	t.Helper()
	k, err := c.Get(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestCacheShares(t *testing.T) {
	c, p := potCache(t, 10<<20, 1<<20)
	first := get(t, c, Source{Kind: Regex, Text: "a+"})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			again, err := c.Get(context.Background(), Source{Kind: Regex, Text: "a+"})
			if err != nil || again.e != first.e {
				t.Errorf("another constraint, %v", err)
				return
			}
			if err := again.Matcher().Accept(1); err != nil {
				t.Error(err)
			}
			again.Close()
		})
	}
	all.Wait()
	other := get(t, c, Source{Kind: GBNF, Text: `root ::= "a+"`})
	if other.e == first.e {
		t.Error("the same constraint for another source")
	}
	for range 2 {
		if _, err := c.Get(context.Background(), Source{Kind: Regex, Text: "("}); err == nil {
			t.Error("no error")
		}
	}
	get(t, c, Source{Kind: StructuralTag, Format: Literal("a")}).Close() // nobody can ask for it again
	if s := c.Stats(); s.Compiled != 3 || s.Hits != 8 || s.Refused != 2 || len(c.entries) != 2 {
		t.Errorf("%+v, %d entries", s, len(c.entries))
	}
	first.Close()
	first.Close() // does nothing
	other.Close()
	if again := get(t, c, Source{Kind: Regex, Text: "a+"}); again.e != first.e {
		t.Error("it was not kept")
	} else {
		again.Close()
	}
	if p.left() == p.most {
		t.Error("idle constraints are not leased")
	}
	if c.Close(); p.left() != p.most || len(c.entries) != 0 {
		t.Errorf("%d of %d bytes are left", p.left(), p.most)
	}
}

// Everything is leased before it exists, the idle ones make room, and there is an error where nothing helps.
func TestCacheLeases(t *testing.T) {
	c, p := potCache(t, 1000<<10, 40<<10) // for one that is used, or being compiled
	for i := range 50 {
		k := get(t, c, Source{Kind: Choice, Choices: []string{fmt.Sprint("a", i), "b"}})
		if used := p.most - p.left(); used < 4*64<<10 {
			t.Fatalf("%d bytes are leased for one that is used", used)
		}
		if k.Close(); p.most-p.left() > 40<<10 {
			t.Fatalf("%d bytes are kept", p.most-p.left())
		}
	}
	k := get(t, c, Source{Kind: Regex, Text: "a+"})
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := c.Get(ctx, Source{Kind: Regex, Text: "b+"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	var all sync.WaitGroup
	all.Go(func() { get(t, c, Source{Kind: Regex, Text: "b+"}).Close() }) // waits for the other
	k.Close()
	all.Wait()
	p.free -= 500 << 10 // somebody else has the memory
	if _, err := c.Get(context.Background(), Source{Kind: Regex, Text: "ab"}); !errors.Is(err, errPot) {
		t.Errorf("%v", err)
	}
	p.free += 500 << 10
	if c.Close(); p.left() != p.most {
		t.Errorf("%d of %d bytes are left", p.left(), p.most)
	}
}

func TestCacheWaitsNoLongerThanItsContext(t *testing.T) {
	c, p := potCache(t, 10<<20, 1<<20)
	c.compile <- struct{}{} // somebody compiles
	ctx, cancel := context.WithCancel(context.Background())
	var all, left sync.WaitGroup
	left.Go(func() {
		if _, err := c.Get(ctx, Source{Kind: Regex, Text: "a+"}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
	all.Go(func() { // waits for the same, or for the one that left
		k, err := c.Get(context.Background(), Source{Kind: Regex, Text: "a+"})
		if err != nil {
			t.Error(err)
			return
		}
		k.Close()
	})
	cancel()
	left.Wait()
	<-c.compile
	all.Wait()
	if c.Close(); p.left() != p.most {
		t.Errorf("%d of %d bytes are left", p.left(), p.most)
	}
}
