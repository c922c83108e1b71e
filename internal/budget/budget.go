// Package budget is the ledger: arithmetic on bytes. Whoever wants memory leases it here before it
// exists, so that the sum never passes the limit. It does no I/O and has no goroutines.
package budget

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
)

// Pool says what bytes are for.
type Pool uint8

// The pools.
const (
	Weights    Pool = iota // pinned, cached and streamed weights
	KV                     // key-value cache and recurrent state
	Activation             // scratch of the forward pass
	Staging                // what is read but not a weight slot: headers, measurements
	Runtime                // Go heap, stacks, the binary's pages
	Pools                  // how many there are
)

func (p Pool) String() string {
	if p < Pools {
		return [...]string{"weights", "kv", "activation", "staging", "runtime"}[p]
	}
	return fmt.Sprintf("pool %d", uint8(p))
}

// Holder has memory that it can do without, such as cached weights or idle key-value blocks.
type Holder interface {
	// Shrink gives back at least n bytes if it can, by releasing or resizing its leases before it
	// returns. The ledger's lock is not held. Shrink must not reserve, and nobody may reserve while
	// holding a lock that Shrink needs.
	Shrink(n int64)
}

// Want is one part of ReserveAll.
type Want struct {
	Pool  Pool
	Bytes int64
	What  string // for errors: who holds it
}

// Ledger counts leased bytes against a limit. It is safe for concurrent use.
type Ledger struct {
	setting sync.Mutex // serializes SetLimit

	mu       sync.Mutex
	limit    int64
	ceiling  int64 // what Reserve respects; below limit while SetLimit waits for holders
	used     int64
	peak     int64
	released int64 // bytes ever given back; tells whether asking holders helped
	pools    [Pools]PoolUse
	held     map[heldBy]int64
	holders  []*registration
}

type heldBy struct {
	pool Pool
	what string
}

type registration struct {
	rank   int
	holder Holder
}

// New makes a ledger for limit bytes.
func New(limit int64) *Ledger {
	return &Ledger{limit: limit, ceiling: limit, held: map[heldBy]int64{}}
}

// Reserve leases n ≥ 0 bytes of a pool. When they do not fit it asks the holders to shrink, in rank
// order; when that is not enough it fails with a *NoRoomError. What names the user in errors.
func (l *Ledger) Reserve(p Pool, n int64, what string) (*Lease, error) {
	leases, err := l.ReserveAll(Want{p, n, what})
	if err != nil {
		return nil, err
	}
	return leases[0], nil
}

// ReserveAll leases all wants or none, in their order.
func (l *Ledger) ReserveAll(wants ...Want) ([]*Lease, error) {
	total, err := sum(wants)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.makeRoom(total) {
		return nil, l.noRoom(total, wants)
	}
	leases := make([]*Lease, len(wants))
	for i, w := range wants {
		leases[i] = &Lease{ledger: l, pool: w.Pool, what: w.What, bytes: w.Bytes}
		l.charge(w.Pool, w.What, w.Bytes)
	}
	l.peak = max(l.peak, l.used)
	return leases, nil
}

func sum(wants []Want) (int64, error) {
	var total int64
	for _, w := range wants {
		switch {
		case w.Pool >= Pools:
			return 0, fmt.Errorf("budget: no such pool %d for %s", w.Pool, w.What)
		case w.Bytes < 0:
			return 0, fmt.Errorf("budget: %d bytes asked for %s", w.Bytes, w.What)
		case w.Bytes > math.MaxInt64-total:
			return 0, fmt.Errorf("budget: the sum with %d bytes for %s overflows", w.Bytes, w.What)
		}
		total += w.Bytes
	}
	return total, nil
}

// makeRoom reports whether n more bytes fit, after asking holders if need be. It is called with the
// lock held and lets it go while a holder shrinks.
func (l *Ledger) makeRoom(n int64) bool {
	if n == 0 {
		return true
	}
	return n <= l.ceiling && l.shrinkUntil(func() int64 { return n - (l.ceiling - l.used) })
}

// shrinkUntil asks holders in rank order until short, called with the lock held, is at most 0. A
// round in which nothing was given back ends it.
func (l *Ledger) shrinkUntil(short func() int64) bool {
	for short() > 0 {
		before := l.released
		for _, r := range slices.Clone(l.holders) {
			missing := short()
			if missing <= 0 {
				return true
			}
			if !slices.Contains(l.holders, r) {
				continue // left while another was asked
			}
			l.mu.Unlock()
			r.holder.Shrink(missing)
			l.mu.Lock()
		}
		if l.released == before {
			return short() <= 0
		}
	}
	return true
}

// charge adds n bytes, which may be negative, to the books. The lock is held.
func (l *Ledger) charge(p Pool, what string, n int64) {
	l.used += n
	pool := &l.pools[p]
	pool.Used += n
	pool.Peak = max(pool.Peak, pool.Used)
	key := heldBy{p, what}
	l.held[key] += n
	if l.held[key] == 0 {
		delete(l.held, key)
	}
	if n < 0 {
		l.released -= n
	}
}

// SetLimit changes the limit. A lower one takes effect for new leases at once; holders are asked to
// shrink, in rank order, and SetLimit returns when the limit holds. When they cannot, the old limit
// stays and the *NoRoomError says who holds what.
func (l *Ledger) SetLimit(n int64) error {
	if n < 0 {
		return fmt.Errorf("budget: a limit of %d bytes", n)
	}
	l.setting.Lock()
	defer l.setting.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ceiling = min(n, l.limit)
	if !l.shrinkUntil(func() int64 { return l.used - n }) {
		err := &NoRoomError{Free: n - l.used, Limit: n, Holders: l.holdings(), lowering: true}
		l.ceiling = l.limit
		return err
	}
	l.limit, l.ceiling = n, n
	return nil
}

// Register adds a holder. Lower ranks are asked first, equal ones in order of registration. The
// returned function takes it off again; a Shrink that runs may still end after that.
func (l *Ledger) Register(rank int, h Holder) (unregister func()) {
	r := &registration{rank, h}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holders = append(l.holders, r)
	slices.SortStableFunc(l.holders, func(a, b *registration) int { return cmp.Compare(a.rank, b.rank) })
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.holders = slices.DeleteFunc(l.holders, func(x *registration) bool { return x == r })
	}
}

// Usage is the ledger at one moment, in bytes.
type Usage struct {
	Limit int64
	Used  int64
	Peak  int64 // highest Used
	Pools [Pools]PoolUse
}

// PoolUse is one pool's part. The pools' peaks need not have been at the same time.
type PoolUse struct{ Used, Peak int64 }

// Free is what can be leased without asking a holder.
func (u Usage) Free() int64 { return u.Limit - u.Used }

// Snapshot returns the state of the ledger.
func (l *Ledger) Snapshot() Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Usage{Limit: l.limit, Used: l.used, Peak: l.peak, Pools: l.pools}
}

// ErrReleased is returned for a lease that was released before.
var ErrReleased = errors.New("budget: the lease was released before")
