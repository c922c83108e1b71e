package budget

import "fmt"

// Lease is a granted, counted claim on bytes of a pool. It is safe for concurrent use.
type Lease struct {
	ledger *Ledger
	pool   Pool
	what   string

	// guarded by ledger.mu
	bytes    int64
	occupied int64 // memory that exists on this lease
	released bool
}

// Pool is the pool that the bytes are charged to.
func (s *Lease) Pool() Pool { return s.pool }

// What names the user, as given to Reserve.
func (s *Lease) What() string { return s.what }

// Bytes is the size of the claim; 0 after Release.
func (s *Lease) Bytes() int64 {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	return s.bytes
}

// Resize changes the claim to n ≥ 0 bytes. Growing asks holders to shrink, as Reserve does, and
// fails with a *NoRoomError; shrinking fails below what is occupied. A failure changes nothing.
func (s *Lease) Resize(n int64) error {
	if n < 0 {
		return fmt.Errorf("budget: resize of %s to %d bytes", s.what, n)
	}
	l := s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	short := func() int64 { return n - s.bytes - (l.ceiling - l.used) }
	fits := n <= s.bytes || n <= l.ceiling && l.shrinkUntil(short)
	// Checked after holders were asked: the lock was free meanwhile.
	switch {
	case s.released:
		return ErrReleased
	case n < s.occupied:
		return fmt.Errorf("budget: resize of %s to %d bytes, but %d are occupied", s.what, n, s.occupied)
	case !fits:
		return l.noRoom(n-s.bytes, []Want{{s.pool, n, s.what}})
	}
	l.charge(s.pool, s.what, n-s.bytes)
	l.peak = max(l.peak, l.used)
	s.bytes = n
	return nil
}

// TryResize is Resize that asks no holder: it may be called under a lock that holders need. It reports whether the claim
// is of n bytes now.
func (s *Lease) TryResize(n int64) bool {
	l := s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.released || n < s.occupied || n > s.bytes && n-s.bytes > l.ceiling-l.used {
		return false
	}
	l.charge(s.pool, s.what, n-s.bytes)
	l.peak = max(l.peak, l.used)
	s.bytes = n
	return true
}

// Release gives the bytes back, exactly once. A second call returns ErrReleased; while memory is
// occupied on the lease it fails and the bytes stay charged.
func (s *Lease) Release() error {
	l := s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case s.released:
		return ErrReleased
	case s.occupied > 0:
		return fmt.Errorf("budget: release of %s, but %d bytes are occupied", s.what, s.occupied)
	}
	s.released = true
	l.charge(s.pool, s.what, -s.bytes)
	s.bytes = 0
	return nil
}

// Occupy notes that n bytes of memory exist on the lease. It fails when they would not fit in it.
func (s *Lease) Occupy(n int64) error {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	switch {
	case s.released:
		return ErrReleased
	case n < 0 || n > s.bytes-s.occupied:
		return fmt.Errorf("budget: %d bytes for %s, but its lease of %d has %d left",
			n, s.what, s.bytes, s.bytes-s.occupied)
	}
	s.occupied += n
	return nil
}

// Vacate notes that n bytes of occupied memory are gone. More than is occupied is a bug and panics.
func (s *Lease) Vacate(n int64) {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	if n < 0 || n > s.occupied {
		panic(fmt.Sprintf("budget: vacate %d bytes of %s, %d are occupied", n, s.what, s.occupied))
	}
	s.occupied -= n
}
