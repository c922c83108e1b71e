package budget

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// script is the state of one text file under testdata/ledger.
type script struct {
	ledger  *Ledger
	leases  map[string]*Lease
	holders map[string]func() // unregister
	log     strings.Builder   // what holders were asked in this command
}

// giver is a holder that releases its leases, in order, until it has given enough.
type giver struct {
	s      *script
	name   string
	leases []string
}

func (g *giver) Shrink(n int64) {
	fmt.Fprintf(&g.s.log, "%s is asked for %d\n", g.name, n)
	for n > 0 && len(g.leases) > 0 {
		lease := g.s.leases[g.leases[0]]
		g.leases = g.leases[1:]
		n -= lease.Bytes()
		if err := lease.Release(); err != nil {
			fmt.Fprintf(&g.s.log, "%s: %v\n", g.name, err)
		}
	}
}

func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/ledger", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.log.Reset()
			err := s.run(t, d)
			out := s.log.String()
			if err != nil {
				out += "error: " + err.Error() + "\n"
			}
			return out + s.state()
		})
	})
}

func (s *script) run(t *testing.T, d *datadriven.TestData) error {
	switch d.Cmd {
	case "new":
		*s = script{ledger: New(arg[int64](t, d, "limit")), leases: map[string]*Lease{}, holders: map[string]func(){}}
	case "reserve":
		return s.reserve(t, d)
	case "resize":
		return s.leases[d.CmdArgs[0].Key].Resize(arg[int64](t, d, "bytes"))
	case "release":
		return s.leases[d.CmdArgs[0].Key].Release()
	case "occupy":
		return s.leases[d.CmdArgs[0].Key].Occupy(arg[int64](t, d, "bytes"))
	case "vacate":
		s.leases[d.CmdArgs[0].Key].Vacate(arg[int64](t, d, "bytes"))
	case "limit":
		return s.ledger.SetLimit(arg[int64](t, d, "bytes"))
	case "holder":
		g := &giver{s: s, name: d.CmdArgs[0].Key}
		if gives, ok := d.Arg("gives"); ok {
			g.leases = gives.Vals
		}
		s.holders[g.name] = s.ledger.Register(arg[int](t, d, "rank"), g)
	case "unregister":
		s.holders[d.CmdArgs[0].Key]()
	default:
		t.Fatalf("unknown command %s", d.Cmd)
	}
	return nil
}

func arg[T any](t *testing.T, d *datadriven.TestData, key string) T {
	var v T
	d.ScanArgs(t, key, &v)
	return v
}

// reserve takes lines such as "a weights 100" and leases them at once.
func (s *script) reserve(t *testing.T, d *datadriven.TestData) error {
	var wants []Want
	for line := range strings.Lines(d.Input) {
		var name, pool string
		var n int64
		if _, err := fmt.Sscan(line, &name, &pool, &n); err != nil {
			t.Fatal(err)
		}
		wants = append(wants, Want{poolOf(t, pool), n, name})
	}
	leases, err := s.ledger.ReserveAll(wants...)
	for i, l := range leases {
		s.leases[wants[i].What] = l
	}
	return err
}

func poolOf(t *testing.T, name string) Pool {
	for p := range Pools {
		if p.String() == name {
			return p
		}
	}
	t.Fatalf("no pool %s", name)
	return 0
}

func (s *script) state() string {
	u := s.ledger.Snapshot()
	out := fmt.Sprintf("used %d of %d, peak %d", u.Used, u.Limit, u.Peak)
	for p, x := range u.Pools {
		if x.Peak > 0 {
			out += fmt.Sprintf("; %v %d, peak %d", Pool(p), x.Used, x.Peak)
		}
	}
	return out + "\n"
}

func TestNoRoomErrorFields(t *testing.T) {
	l := New(100)
	mustReserve(t, l, KV, 30)
	mustReserve(t, l, Weights, 50)
	_, err := l.ReserveAll(Want{Staging, 10, "header"}, Want{Activation, 20, "scratch"})
	var full *NoRoomError
	if !errors.As(err, &full) {
		t.Fatal(err)
	}
	if full.Pool != Activation || full.Asked != 30 || full.Free != 20 || full.Limit != 100 {
		t.Errorf("%+v", full)
	}
	if len(full.Holders) != 2 || full.Holders[0] != (Holding{Weights, "test", 50}) || full.Holders[1].Bytes != 30 {
		t.Errorf("holders %+v", full.Holders)
	}
}

func mustReserve(t testing.TB, l *Ledger, p Pool, n int64) *Lease {
	t.Helper()
	lease, err := l.Reserve(p, n, "test")
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestImpossibleWants(t *testing.T) {
	l := New(1 << 62)
	for _, wants := range [][]Want{
		{{Weights, -1, "x"}},
		{{Pools, 1, "x"}},
		{{Weights, 1 << 62, "x"}, {KV, 1 << 62, "y"}},
	} {
		if _, err := l.ReserveAll(wants...); err == nil {
			t.Errorf("%v was granted", wants)
		}
	}
	if leases, err := l.ReserveAll(); len(leases) != 0 || err != nil {
		t.Errorf("nothing gave %v, %v", leases, err)
	}
	if err := l.SetLimit(-1); err == nil {
		t.Error("a negative limit was taken")
	}
	if u := l.Snapshot(); u.Used != 0 || u.Peak != 0 {
		t.Errorf("%+v", u)
	}
}

// cache is a holder like a weights cache: a lease that shrinks.
type cache struct {
	mu    sync.Mutex
	lease *Lease
}

func (c *cache) Shrink(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.lease.Resize(max(0, c.lease.Bytes()-n)); err != nil {
		panic(err)
	}
}

func TestConcurrentUse(t *testing.T) {
	const limit, workers, rounds = 1000, 8, 300
	l := New(limit)
	c := &cache{lease: mustReserve(t, l, Weights, 900)}
	defer l.Register(0, c)()
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				lease, err := l.Reserve(KV, int64(10+(w*i)%100), "worker")
				if err != nil {
					continue // the others have it
				}
				if u := l.Snapshot(); u.Used > u.Limit {
					t.Errorf("used %d of %d", u.Used, u.Limit)
				}
				_ = lease.Resize(lease.Bytes() / 2)
				if err := lease.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for i := range rounds {
			_ = l.SetLimit(limit - int64(i%2)*100) // fails while others hold too much
		}
	})
	wg.Wait()
	if err := c.lease.Release(); err != nil {
		t.Error(err)
	}
	if u := l.Snapshot(); u.Used != 0 || u.Peak > limit {
		t.Errorf("%+v", u)
	}
}

// While a limit is being lowered, a reservation must not take what a holder gives back for it.
func TestLoweringKeepsRoom(t *testing.T) {
	l := New(100)
	held := mustReserve(t, l, Weights, 90)
	var thief error
	asked := 0
	defer l.Register(0, shrinkFunc(func(int64) {
		if asked++; asked > 1 {
			return // for the thief
		}
		if err := held.Resize(50); err != nil {
			t.Error(err)
		}
		_, thief = l.Reserve(KV, 20, "thief")
	}))()
	if err := l.SetLimit(60); err != nil {
		t.Error(err)
	}
	var full *NoRoomError
	if !errors.As(thief, &full) || full.Limit != 60 {
		t.Errorf("the room of a lower limit was given away: %v", thief)
	}
}

type shrinkFunc func(int64)

func (f shrinkFunc) Shrink(n int64) { f(n) }
