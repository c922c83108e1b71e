// Package mem is off-heap memory: mapped only on a lease of the budget, given back at once, and
// never moved or scanned by the Go runtime. Contents start as zeros.
package mem

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"

	"github.com/spillway/spillway/internal/budget"
)

// HugeSize is the size from which MapSlot asks for huge pages.
const HugeSize = 2 << 20

// ErrFreed is returned for a buffer that was freed before.
var ErrFreed = errors.New("mem: the buffer was freed before")

var (
	pageSize = os.Getpagesize()
	live     atomic.Int64
)

// Live is the bytes that are mapped now.
func Live() int64 { return live.Load() }

// Round rounds n bytes up to whole pages: what a mapping of n bytes occupies of its lease.
func Round(n int) int { return (n + pageSize - 1) &^ (pageSize - 1) }

// Buffer is page-aligned memory outside the Go heap.
type Buffer struct {
	lease *budget.Lease
	owned bool // the lease goes with the buffer

	mu     sync.Mutex
	data   []byte // as long as was asked
	mapped []byte // whole pages
}

// Map makes a buffer of n > 0 bytes on a lease with Round(n) bytes left. It uses small pages, so
// that only touched pages count.
func Map(l *budget.Lease, n int) (*Buffer, error) { return mapBuffer(l, n, false) }

// MapSlot is Map with huge pages from HugeSize upwards, for memory that is used as a whole.
func MapSlot(l *budget.Lease, n int) (*Buffer, error) { return mapBuffer(l, n, n >= HugeSize) }

// New leases Round(n) bytes and maps n of them, with huge pages as in MapSlot. Free releases the lease.
func New(l *budget.Ledger, p budget.Pool, n int, what string) (*Buffer, error) {
	if err := checkSize(n); err != nil {
		return nil, err
	}
	lease, err := l.Reserve(p, int64(Round(n)), what)
	if err != nil {
		return nil, err
	}
	b, err := MapSlot(lease, n)
	if err != nil {
		return nil, errors.Join(err, lease.Release())
	}
	b.owned = true
	return b, nil
}

func checkSize(n int) error {
	if n <= 0 || n > math.MaxInt-pageSize {
		return fmt.Errorf("mem: cannot map %d bytes", n)
	}
	return nil
}

func mapBuffer(l *budget.Lease, n int, huge bool) (*Buffer, error) {
	if err := checkSize(n); err != nil {
		return nil, err
	}
	size := Round(n)
	if err := l.Occupy(int64(size)); err != nil {
		return nil, fmt.Errorf("mem: map %d bytes in whole pages: %w", n, err)
	}
	mapped, err := mapPages(size, huge)
	if err != nil {
		l.Vacate(int64(size))
		return nil, fmt.Errorf("mem: map %d bytes for %s: %w", n, l.What(), err)
	}
	live.Add(int64(size))
	poison(mapped)
	return &Buffer{lease: l, data: mapped[:n:n], mapped: mapped}, nil
}

// Bytes is the memory; nil after Free.
func (b *Buffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data
}

// Free gives the memory back to the operating system; no slice of it may be used afterwards. If
// that fails the bytes stay charged and Free can be called again. A second Free returns ErrFreed
// (and panics under the build tag invariants).
func (b *Buffer) Free() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mapped == nil {
		if invariants {
			panic(ErrFreed)
		}
		return ErrFreed
	}
	size := int64(len(b.mapped))
	if err := unmapPages(b.mapped); err != nil {
		return fmt.Errorf("mem: unmap %d bytes of %s: %w", size, b.lease.What(), err)
	}
	b.mapped, b.data = nil, nil
	live.Add(-size)
	b.lease.Vacate(size)
	if b.owned {
		return b.lease.Release()
	}
	return nil
}
