package mem

import "fmt"

// Arena hands out pieces of a buffer, last in first out. It is for one goroutine. Contents are
// undefined: pieces hold what was there before.
type Arena struct {
	buf  []byte
	used int
	peak int
}

// Mark is a level of an arena to go back to.
type Mark int

// NewArena makes an arena of all bytes of b, which must outlive it.
func NewArena(b *Buffer) *Arena { return &Arena{buf: b.Bytes()} }

// Alloc returns n bytes that start at a multiple of align, a power of two up to a page. Arenas are
// sized by the plan, so running out is a bug and panics.
func (a *Arena) Alloc(n, align int) []byte {
	if align <= 0 || align&(align-1) != 0 || align > pageSize {
		panic(fmt.Sprintf("mem: arena alignment %d is not a power of two up to a page", align))
	}
	start := (a.used + align - 1) &^ (align - 1)
	if n < 0 || n > len(a.buf)-start {
		panic(fmt.Sprintf("mem: arena of %d bytes has %d left, %d asked: planned too small", len(a.buf), a.Left(), n))
	}
	a.used = start + n
	a.peak = max(a.peak, a.used)
	return a.buf[start:a.used:a.used]
}

// Mark is the present level.
func (a *Arena) Mark() Mark { return Mark(a.used) }

// Reset takes back everything that was handed out since m.
func (a *Arena) Reset(m Mark) {
	if m < 0 || int(m) > a.used {
		panic(fmt.Sprintf("mem: arena reset to %d, but %d is used", m, a.used))
	}
	poison(a.buf[m:a.used])
	a.used = int(m)
}

// Left is the bytes that are free, alignment aside.
func (a *Arena) Left() int { return len(a.buf) - a.used }

// Peak is the most bytes that were ever in use.
func (a *Arena) Peak() int { return a.peak }
