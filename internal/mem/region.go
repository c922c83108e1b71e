package mem

import (
	"errors"
	"fmt"
	"sync"

	"github.com/spillway/spillway/internal/budget"
)

// Region is memory outside the Go heap that becomes smaller and larger in place: its bytes stay where they
// are, up to the size that it was made for. It starts empty, with zeros wherever it grows.
type Region struct {
	lease *budget.Lease

	mu       sync.Mutex
	reserved []byte // addresses; only the first mapped bytes are memory
	mapped   int
}

// NewRegion reserves addresses for up to most > 0 bytes. That is no memory yet; l is what Resize occupies.
func NewRegion(l *budget.Lease, most int) (*Region, error) {
	if err := checkSize(most); err != nil {
		return nil, err
	}
	b, err := reservePages(Round(most))
	if err != nil {
		return nil, fmt.Errorf("mem: addresses for %d bytes of %s: %w", most, l.What(), err)
	}
	return &Region{lease: l, reserved: b}, nil
}

// Len is the bytes that are memory, in whole pages.
func (r *Region) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mapped
}

// Bytes is all addresses of the region. Those from Len on must not be touched.
func (r *Region) Bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reserved
}

// Resize makes n bytes memory, in whole pages, and keeps what the first ones hold. The lease needs room for more
// before, and may be made smaller after. Slices of what goes must not be used any more. On an error the region is as
// it was.
func (r *Region) Resize(n int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reserved == nil {
		return ErrFreed
	}
	if n < 0 || n > len(r.reserved) {
		return fmt.Errorf("mem: %d bytes of %s, which has addresses for %d", n, r.lease.What(), len(r.reserved))
	}
	n = Round(n)
	before := r.mapped
	if n > before {
		if err := r.lease.Occupy(int64(n - before)); err != nil {
			return fmt.Errorf("mem: map %d bytes in whole pages: %w", n-before, err)
		}
	}
	if err := resizePages(r.reserved, before, n); err != nil {
		if n > before {
			r.lease.Vacate(int64(n - before))
		}
		return fmt.Errorf("mem: %s from %d to %d bytes: %w", r.lease.What(), before, n, err)
	}
	if n < before {
		r.lease.Vacate(int64(before - n))
	} else {
		poison(r.reserved[before:n])
	}
	r.mapped = n
	live.Add(int64(n - before))
	return nil
}

// Free gives memory and addresses back. A second Free returns ErrFreed.
func (r *Region) Free() error {
	if err := r.Resize(0); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	err := releasePages(r.reserved)
	r.reserved = nil
	return errors.Join(err)
}
