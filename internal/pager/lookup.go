package pager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/vfs"
)

// lookup is rows of a matrix that are read one by one, by several at once.
type lookup struct {
	helpers sync.WaitGroup

	mu    sync.Mutex // also serializes visit
	ctx   context.Context
	m     *layout.Matrix
	rows  []int32
	order []int32 // indices into rows that must be read, by row
	next  int     // in order
	visit func(i int, raw []byte) error
	err   error
}

// Rows visits the given rows of m, such as the embeddings of a batch's tokens: raw is the bytes of
// rows[i], valid during the call. The order of the visits is not defined, and they may come from
// other goroutines, but never two at once. Rows in memory cost nothing, the others a small read
// each; a row that occurs several times is read once.
func (p *Pager) Rows(ctx context.Context, m *layout.Matrix, rows []int32, visit func(i int, raw []byte) error) error {
	p.looking.Lock()
	defer p.looking.Unlock()
	if err := p.checkRows(m, rows); err != nil {
		return err
	}
	b := &p.look
	b.ctx, b.m, b.rows, b.visit = ctx, m, rows, visit
	b.order, b.next, b.err = b.order[:0], 0, nil
	err := p.visitPinned(b)
	if err == nil && len(b.order) > 0 {
		err = p.readRows(b)
	}
	b.ctx, b.m, b.rows, b.visit = nil, nil, nil, nil
	return err
}

func (p *Pager) checkRows(m *layout.Matrix, rows []int32) error {
	if m.ID < 0 || m.ID >= len(p.parts) || p.model.Matrices[m.ID] != m {
		return fmt.Errorf("pager: internal error: %s is not a matrix of this model", m.Name)
	}
	if need := vfs.SpanSize(int(m.RowBytes()), p.place.Align); int64(need) > p.place.LookupBytes {
		return fmt.Errorf("pager: internal error: a row of %s needs %d bytes, look-ups are planned with %d",
			m.Name, need, p.place.LookupBytes)
	}
	for _, r := range rows {
		if r < 0 || int(r) >= m.Rows {
			return fmt.Errorf("pager: row %d of %s, which has %d", r, m.Name, m.Rows)
		}
	}
	return nil
}

// visitPinned visits the rows that are in memory and lists the others.
func (p *Pager) visitPinned(b *lookup) error {
	for i, r := range b.rows {
		raw, err := p.pinnedRow(b.m, int(r))
		if err != nil {
			return err
		}
		if raw == nil {
			b.order = append(b.order, int32(i))
			continue
		}
		if err := b.visit(i, raw); err != nil {
			return err
		}
	}
	slices.SortFunc(b.order, func(x, y int32) int {
		return cmp.Or(cmp.Compare(b.rows[x], b.rows[y]), cmp.Compare(x, y))
	})
	return nil
}

// pinnedRow is the bytes of a row, or nil if it is not in memory.
func (p *Pager) pinnedRow(m *layout.Matrix, row int) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	for i := range p.parts[m.ID] {
		x := &p.parts[m.ID][i]
		u := &p.units[x.unit]
		if row < x.part.Row0 || row >= x.part.Row0+x.part.Rows || u.state != ready {
			continue
		}
		from := u.Offset - u.start + x.offset + int64(row-x.part.Row0)*m.RowBytes()
		return u.home[from : from+m.RowBytes()], nil
	}
	return nil, nil
}

// readRows shares the reads among the readers and the caller.
func (p *Pager) readRows(b *lookup) error {
	if len(b.order) > 1 {
		p.mu.Lock()
		p.batch = b
		p.work.Broadcast()
		p.mu.Unlock()
	}
	b.run(p, p.place.Readers)
	p.mu.Lock()
	p.batch = nil
	p.mu.Unlock()
	b.helpers.Wait()
	return b.err
}

// run reads rows until none is left or one has failed, with the buffers of reader i.
func (b *lookup) run(p *Pager, i int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.err == nil && b.next < len(b.order) {
		if err := b.ctx.Err(); err != nil {
			b.err = err
			return
		}
		same := b.claim()
		b.mu.Unlock()
		raw, err := p.readRow(b.m, int(b.rows[same[0]]), i)
		b.mu.Lock()
		for _, i := range same {
			if err == nil && b.err == nil {
				err = b.visit(int(i), raw)
			}
		}
		if err != nil && b.err == nil {
			b.err = err
		}
	}
}

// claim takes the next row: the indices that want it. The lock is held.
func (b *lookup) claim() []int32 {
	from := b.next
	for b.next < len(b.order) && b.rows[b.order[b.next]] == b.rows[b.order[from]] {
		b.next++
	}
	return b.order[from:b.next]
}

// readRow reads one row, with a second try.
func (p *Pager) readRow(m *layout.Matrix, row, i int) ([]byte, error) {
	offset := m.Offset + int64(row)*m.RowBytes()
	raw, err := p.readSmall(m.File, offset, int(m.RowBytes()), i)
	if err != nil {
		raw, err = p.readSmall(m.File, offset, int(m.RowBytes()), i)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: row %d of %s at offset %d: %w", p.files[m.File].Name(), row, m.Name, offset, err)
	}
	return raw, nil
}

// readSmall reads n bytes through the look-up buffer of reader i.
func (p *Pager) readSmall(file int, offset int64, n, i int) ([]byte, error) {
	buf := p.lookupBuffer(i)
	start, size := vfs.Span(offset, n, p.place.Align)
	p.mu.Lock()
	p.takeOff()
	p.mu.Unlock()
	got, err := p.readAt(file, buf[:size], start, i)
	p.mu.Lock()
	p.land(got)
	p.stats.Looked += int64(got)
	p.mu.Unlock()
	lead := int(offset - start)
	switch {
	case got >= lead+n:
		return buf[lead : lead+n], nil
	case err == nil || errors.Is(err, io.EOF):
		err = fmt.Errorf("the file ends at %d: %w", start+int64(got), io.ErrUnexpectedEOF)
	}
	return nil, err
}
