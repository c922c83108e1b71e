package server

import (
	"context"
	"sync"
)

// A purse is memory that the server has leased before its models took the rest. What does not fit is leased
// from the runtime where there is room, else it waits.
type purse struct {
	s       *Server
	total   int64
	release func()

	mu    sync.Mutex
	free  int64
	given chan struct{} // closed and replaced when bytes come back
}

func (s *Server) newPurse(bytes int64, what string) (*purse, error) {
	release, err := s.rt.Reserve(bytes, what)
	if err != nil {
		return nil, err
	}
	return &purse{s: s, total: bytes, release: release, free: bytes, given: make(chan struct{})}, nil
}

// take leases n bytes until release is called, for who holds so many of the purse already. It waits for others only for
// who holds nothing: two that wait for each other's part would wait for ever. Where there is no room it fails with a
// *NoRoomError; it says so to the client where there never will be.
func (p *purse) take(ctx context.Context, n, held int64, what string) (release func(), err error) {
	for {
		given, ok := p.try(n)
		if ok {
			return sync.OnceFunc(func() { p.give(n) }), nil
		}
		release, err := p.s.borrow(n, what)
		if err == nil || n > p.total || held > 0 {
			return release, p.s.orNever(err, p.total, held)
		}
		select {
		case <-given:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (p *purse) try(n int64) (given <-chan struct{}, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > p.free {
		return p.given, false
	}
	p.free -= n
	return nil, true
}

func (p *purse) give(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free += n
	close(p.given)
	p.given = make(chan struct{})
}

// lease takes from a purse until the exchange ends.
func (x *Exchange) lease(p *purse, n int64, what string) error {
	release, err := p.take(x.ctx, n, x.holds[p], what)
	if err != nil {
		return err
	}
	if x.holds == nil {
		x.holds = map[*purse]int64{}
	}
	x.holds[p] += n
	x.Defer(release)
	return nil
}

// Lease leases memory for what an answer puts on the heap beyond the 64 KiB that each has, until the exchange
// ends.
func (x *Exchange) Lease(n int64, what string) error { return x.lease(x.Server.answers, n, what) }
