package pager

import (
	"context"
	"time"
)

// Preload waits until all pinned weights are in memory. Progress, if given, is called from time to
// time with bytes; a failed read ends it.
func (p *Pager) Preload(ctx context.Context, progress func(done, total int64)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		done, total, err := p.loaded()
		if progress != nil {
			progress(done, total)
		}
		if err != nil || done == total {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// loaded is how many pinned bytes are in memory.
func (p *Pager) loaded() (done, total int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, 0, ErrClosed
	}
	for i := range p.units {
		u := &p.units[i]
		if !u.Pinned {
			continue
		}
		total += u.Bytes
		switch {
		case u.state == ready:
			done += u.Bytes
		case u.state == failed && !p.retryUnit(u):
			err = u.err
		}
	}
	return done, total, err
}
