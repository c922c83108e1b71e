package pager

import (
	"errors"
	"fmt"
	"io"
)

// ring is the tiles through which experts pass that have no slots: the tiles of a visit are numbered in the
// order in which they are used, tile n lies in place n modulo the ring's length.
type ring struct {
	tiles  []ringTile
	end    int // of the visit's tiles that were asked for
	used   int // of them that are free again
	cursor tileCursor
	open   bool // a visit runs
	flying int  // reads that have not ended
}

type ringTile struct {
	buf   []byte
	start int64
	state state
	err   error
}

// tileCursor is a place in a visit: which demand, which of its stacks, from which row on.
type tileCursor struct{ demand, stack, row int }

// eachRing yields the experts of a visit in the order of its demands; their tiles follow each other through the ring.
func (s *Sweep) eachRing(yield func([]Expert, error) bool) error {
	p := s.p
	x := &p.experts
	p.mu.Lock()
	defer p.mu.Unlock()
	for d := range x.visit.Demands {
		p.mu.Unlock()
		x.some = append(x.some[:0], Expert{Demand: d, s: s, slot: -1})
		more := yield(x.some, nil)
		p.mu.Lock()
		if !more {
			return errLeft
		}
		p.stats.Passed += p.model.Experts[x.layer].Bytes()
	}
	return nil
}

// openRing starts the reads of a visit. The lock is held.
func (p *Pager) openRing() {
	r := &p.experts.ring
	r.end, r.used, r.cursor, r.open = 0, 0, tileCursor{}, true
	p.work.Broadcast()
}

// closeRing waits until no read into the ring is on its way. The lock is held.
func (s *Sweep) closeRing() {
	p := s.p
	r := &p.experts.ring
	r.open = false
	for r.flying > 0 { // reads end, whatever becomes of the request
		p.waiting = true
		p.mu.Unlock()
		<-p.arrived
		p.mu.Lock()
		p.waiting = false
	}
	for i := range r.tiles {
		poison(r.tiles[i].buf)
		r.tiles[i].state, r.tiles[i].err = idle, nil
	}
}

// nextTile asks for the next tile if there is room for it. The lock is held.
func (p *Pager) nextTile() (expertJob, bool) {
	x := &p.experts
	r := &x.ring
	if !r.open || r.end == r.used+len(r.tiles) || r.cursor.demand == len(x.visit.Demands) {
		return expertJob{}, false
	}
	l, c := &p.model.Experts[x.layer], &r.cursor
	s := &l.Stacks[c.stack]
	expert := int(x.visit.Demands[c.demand].Expert)
	rows := min(p.place.Experts.TileRows(s, p.place.Align), s.Rows-c.row)
	offset, n := s.At[expert].Offset+int64(c.row)*s.RowBytes(), int64(rows)*s.RowBytes()
	start, end := p.place.Enclosing(offset, n)
	t := &r.tiles[r.end%len(r.tiles)]
	t.state, t.start, t.err = reading, start, nil
	j := expertJob{slot: -1, tile: r.end, file: int(s.At[expert].File), buf: t.buf[:end-start], start: start, need: int(offset + n - start)}
	r.end++
	r.flying++
	if c.row += rows; c.row == s.Rows {
		c.row = 0
		if c.stack++; c.stack == len(l.Stacks) {
			c.stack = 0
			c.demand++
		}
	}
	return j, true
}

// finishTile notes the result of a read. The lock is held.
func (p *Pager) finishTile(j expertJob, err error) {
	r := &p.experts.ring
	t := &r.tiles[j.tile%len(r.tiles)]
	r.flying--
	t.state = ready
	if err != nil {
		t.state = failed
		t.err = fmt.Errorf("%s: %d bytes of an expert of layer %d at offset %d: %w", p.files[j.file].Name(), j.need,
			p.model.Experts[p.experts.layer].Layer, j.start, err)
	}
}

// ringTiles yields the tiles of the next stack.
func (s *Sweep) ringTiles(demand, stack int, yield func(Tile, error) bool) {
	p := s.p
	x := &p.experts
	l := &p.model.Experts[x.layer]
	st := &l.Stacks[stack]
	expert := int(x.visit.Demands[demand].Expert)
	step := p.place.Experts.TileRows(st, p.place.Align)
	for row := 0; row < st.Rows; row += step {
		rows := min(step, st.Rows-row)
		t, err := s.awaitTile()
		if err != nil {
			yield(Tile{}, err)
			return
		}
		from := st.At[expert].Offset + int64(row)*st.RowBytes() - t.start
		if !yield(Tile{row, rows, t.buf[from:][:int64(rows)*st.RowBytes()]}, nil) {
			return
		}
		p.mu.Lock()
		poison(t.buf)
		t.state = idle
		x.ring.used++
		p.work.Signal()
		p.mu.Unlock()
	}
}

// awaitTile waits for the tile that is used next.
func (s *Sweep) awaitTile() (*ringTile, error) {
	p := s.p
	r := &p.experts.ring
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		t := &r.tiles[r.used%len(r.tiles)]
		if r.used < r.end && t.state == ready {
			return t, nil
		}
		if r.used < r.end && t.state == failed {
			return nil, t.err
		}
		if err := s.wait(); err != nil {
			return nil, err
		}
	}
}

// short is the error of a read that has brought too little.
func short(start int64, n int, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("the file ends at %d: %w", start+int64(n), io.ErrUnexpectedEOF)
	}
	return err
}
