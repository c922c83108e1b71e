package budget

import (
	"testing"

	"pgregory.net/rapid"
)

// model is what the ledger should be after any calls: plain sums over the leases that live.
type model struct {
	ledger *Ledger
	limit  int64
	live   map[*Lease]int64
	dead   []*Lease
	peak   int64
	free   *hoard
}

// hoard is a holder whose one lease can shrink to nothing.
type hoard struct {
	m     *model
	lease *Lease
}

func (h *hoard) Shrink(n int64) {
	left := max(0, h.m.live[h.lease]-n)
	if h.lease.Resize(left) == nil {
		h.m.live[h.lease] = left
	}
}

func (m *model) used() (n int64) {
	for _, b := range m.live {
		n += b
	}
	return n
}

func (m *model) fits(n int64) bool {
	return n == 0 || m.used()-m.live[m.free.lease]+n <= m.limit
}

func (m *model) pick(t *rapid.T) *Lease {
	var all []*Lease
	for l := range m.live {
		if l != m.free.lease {
			all = append(all, l)
		}
	}
	if len(all) == 0 {
		t.Skip("no lease")
	}
	return all[rapid.IntRange(0, len(all)-1).Draw(t, "lease")]
}

func (m *model) reserve(t *rapid.T) {
	var wants []Want
	var total int64
	for range rapid.IntRange(1, 3).Draw(t, "wants") {
		w := Want{Pool(rapid.IntRange(0, int(Pools)-1).Draw(t, "pool")), rapid.Int64Range(0, 60).Draw(t, "bytes"), "x"}
		wants = append(wants, w)
		total += w.Bytes
	}
	leases, err := m.ledger.ReserveAll(wants...)
	if m.fits(total) != (err == nil) {
		t.Fatalf("%d with %d used of %d: %v", total, m.used(), m.limit, err)
	}
	for i, l := range leases {
		m.live[l] = wants[i].Bytes
	}
}

func (m *model) resize(t *rapid.T) {
	l, n := m.pick(t), rapid.Int64Range(0, 80).Draw(t, "bytes")
	grow := max(0, n-m.live[l])
	err := l.Resize(n)
	if m.fits(grow) != (err == nil) {
		t.Fatalf("%d to %d with %d used of %d: %v", m.live[l], n, m.used(), m.limit, err)
	}
	if err == nil {
		m.live[l] = n
	}
}

func (m *model) release(t *rapid.T) {
	l := m.pick(t)
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	delete(m.live, l)
	m.dead = append(m.dead, l)
}

// misuse does what is refused; check shows that nothing changed.
func (m *model) misuse(t *rapid.T) {
	if len(m.dead) == 0 {
		t.Skip("no released lease")
	}
	l := m.dead[len(m.dead)-1]
	for _, err := range []error{l.Release(), l.Resize(5), l.Occupy(1)} {
		if err != ErrReleased {
			t.Fatalf("misuse gave %v", err)
		}
	}
	if n := l.Bytes(); n != 0 {
		t.Fatalf("a released lease has %d bytes", n)
	}
}

func (m *model) setLimit(t *rapid.T) {
	n := rapid.Int64Range(0, 200).Draw(t, "limit")
	needed := m.used() - m.live[m.free.lease]
	err := m.ledger.SetLimit(n)
	if (needed <= n) != (err == nil) {
		t.Fatalf("limit %d, %d needed: %v", n, needed, err)
	}
	if err == nil {
		m.limit = n
	}
}

// check compares the sums.
func (m *model) check(t *rapid.T) {
	u := m.ledger.Snapshot()
	var pools [Pools]int64
	for l, n := range m.live {
		pools[l.Pool()] += n
		if l.Bytes() != n {
			t.Fatalf("lease of %d bytes, want %d", l.Bytes(), n)
		}
	}
	for p, n := range pools {
		if x := u.Pools[p]; x.Used != n || x.Peak < n {
			t.Fatalf("%v has %+v, want %d", Pool(p), x, n)
		}
	}
	m.peak = max(m.peak, m.used())
	if u.Used != m.used() || u.Limit != m.limit || u.Used > u.Limit || u.Peak < m.peak {
		t.Fatalf("%+v, want %d of %d, peak from %d", u, m.used(), m.limit, m.peak)
	}
}

func TestLedgerAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{ledger: New(150), limit: 150, live: map[*Lease]int64{}}
		first, err := m.ledger.Reserve(Weights, 100, "hoard")
		if err != nil {
			t.Fatal(err)
		}
		m.live[first] = 100
		m.free = &hoard{m, first}
		unregister := m.ledger.Register(1, m.free)
		t.Repeat(map[string]func(*rapid.T){
			"reserve": m.reserve, "resize": m.resize, "release": m.release,
			"misuse": m.misuse, "limit": m.setLimit, "": m.check,
		})
		unregister()
		for l := range m.live {
			if err := l.Release(); err != nil {
				t.Fatal(err)
			}
		}
		if u := m.ledger.Snapshot(); u.Used != 0 || u.Pools != peaksOnly(u.Pools) || len(m.ledger.held) != 0 {
			t.Fatalf("the ledger ends with %+v", u)
		}
	})
}

func peaksOnly(p [Pools]PoolUse) [Pools]PoolUse {
	for i := range p {
		p[i].Used = 0
	}
	return p
}
