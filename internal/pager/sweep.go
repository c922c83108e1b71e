package pager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/spillway/spillway/internal/layout"
)

var (
	errEnded = errors.New("pager: internal error: the sweep has ended")
	errLeft  = errors.New("pager: internal error: the sweep's last loop over tiles was left early")
)

// kinds is a set of layout.Kind.
type kinds uint8

// Tile is a handle on consecutive rows of a matrix, valid until the loop that yielded it goes on.
type Tile struct {
	Row0, Rows int
	data       []byte
}

// Bytes returns the tile's rows in memory that the processor reads. Tiles may come to live elsewhere
// (GPU memory); only who computes with them asks where.
func (t Tile) Bytes() []byte { return t.data }

// Resident reports whether all weights stay in memory: tiles are then valid for as long as the pager is open.
func (p *Pager) Resident() bool { return len(p.slots) == 0 }

// Sweep is one pass through the matrices in the order of Model.Bundles. It is for one goroutine.
type Sweep struct {
	p    *Pager
	ctx  context.Context
	skip kinds
	at   int   // place in the sweep of the next matrix
	err  error // of the sweep; sticks
	done bool

	asked bool // a visit to experts has begun
}

// Begin starts a sweep. Bundles of the kinds to skip, such as a head that no row reaches, are
// neither read nor asked for. Only one sweep runs at a time. Where every expert has a slot, the first one begins when
// all are there.
func (p *Pager) Begin(ctx context.Context, skip ...layout.Kind) (*Sweep, error) {
	s := new(Sweep)
	if err := p.BeginAt(ctx, s, skip...); err != nil {
		return nil, err
	}
	return s, nil
}

// BeginAt is Begin with a sweep that the caller keeps, one that was not begun or has ended.
func (p *Pager) BeginAt(ctx context.Context, s *Sweep, skip ...layout.Kind) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	*s = Sweep{p: p, ctx: ctx}
	for _, k := range skip {
		s.skip |= 1 << k
	}
	p.pausing = false
	p.startGrowing()
	err := p.mayBegin()
	for ; err == nil && p.preloads(); err = cmp.Or(err, p.mayBegin()) {
		p.work.Broadcast()
		err = s.wait()
	}
	if err != nil {
		return err
	}
	p.started = true
	p.forgive()
	for i := range p.slots {
		if t := &p.slots[i]; t.state != idle && t.sweep == p.sweep && s.skips(&p.units[t.unit]) {
			p.drop(t)
		}
	}
	p.running = s
	p.stats.Sweeps++
	p.rebalance()
	p.rouse()
	return nil
}

// mayBegin reports why no sweep may begin. The lock is held.
func (p *Pager) mayBegin() error {
	switch {
	case p.closed:
		return ErrClosed
	case p.broken != nil:
		return p.broken
	case p.running != nil:
		return errors.New("pager: internal error: a sweep began while another runs")
	}
	return nil
}

// skips reports whether the sweep will not use a unit.
func (s *Sweep) skips(u *unit) bool { return u.kinds&^s.skip == 0 }

// End ends the sweep, also one that was not finished or has failed; what was read for it and not used
// is dropped, what was read for the next one stays. A second End does nothing.
func (s *Sweep) End() {
	if s.done {
		return
	}
	s.done, s.err = true, errEnded
	s.endVisit()
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	p.letGo()
	for i := range p.slots {
		if t := &p.slots[i]; t.state != idle && t.sweep == p.sweep {
			p.drop(t)
		}
	}
	p.sweep++
	if p.cursor.sweep < p.sweep {
		p.cursor = cursor{sweep: p.sweep}
	}
	p.running, s.ctx = nil, nil // who keeps the sweep keeps no request
	p.rouse()
}

// rouse wakes the readers if there is anything that they may read. The lock is held.
func (p *Pager) rouse() {
	if len(p.slots) > 0 || p.load < len(p.units) {
		p.work.Broadcast()
	}
}

// drop gives a slot up, as soon as its read ends. The lock is held.
func (p *Pager) drop(t *slot) {
	if t.state == reading || t.state == dropped {
		t.state = dropped
		return
	}
	p.release(t)
}

// Tiles yields the row tiles of m in rising row order: one if it is in memory, several if it is
// streamed. A tile's bytes are valid until the loop's next step. Each matrix is asked for once, in
// the order of Model.Bundles, and a matrix's loop ends before the next begins. After an error, or a
// loop that was left early, the sweep can only be ended.
func (s *Sweep) Tiles(m *layout.Matrix) iter.Seq2[Tile, error] {
	// So small that it is inlined, which keeps the closure off the heap.
	return func(yield func(Tile, error) bool) { s.tiles(m, yield) }
}

func (s *Sweep) tiles(m *layout.Matrix, yield func(Tile, error) bool) {
	if err := s.enter(m); err != nil {
		yield(Tile{}, err)
		return
	}
	for i := range s.p.parts[m.ID] {
		if !s.piece(&s.p.parts[m.ID][i], yield) {
			return
		}
	}
	s.pass(m)
}

// enter checks that it is m's turn, and keeps the sweep failed until pass.
func (s *Sweep) enter(m *layout.Matrix) error {
	if s.err != nil {
		return s.err
	}
	if s.err = s.ctx.Err(); s.err != nil {
		return s.err
	}
	p := s.p
	for s.at < len(p.order) && p.kind[s.at]&s.skip != 0 {
		s.at++
	}
	next := "the sweep is over"
	if s.at < len(p.order) {
		if p.order[s.at] == m {
			s.err = errLeft
			return nil
		}
		next = p.order[s.at].Name + " is next"
	}
	s.err = fmt.Errorf("pager: internal error: the sweep was asked for %s, but %s", m.Name, next)
	return s.err
}

// pass frees what no later matrix of the sweep uses.
func (s *Sweep) pass(m *layout.Matrix) {
	p := s.p
	s.err = nil
	s.at++
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Passed += m.Bytes()
	for i := range p.slots {
		if t := &p.slots[i]; t.state != idle && t.sweep == p.sweep && p.units[t.unit].last < s.at {
			p.drop(t)
		}
	}
}

// piece yields the tiles of a matrix that one unit holds.
func (s *Sweep) piece(x *piece, yield func(Tile, error) bool) bool {
	p := s.p
	u := &p.units[x.unit]
	size := x.part.Matrix.RowBytes()
	if u.Pinned {
		if err := s.awaitUnit(u, x.part.Bytes()); err != nil {
			return s.fail(yield, err)
		}
		from := u.Offset - u.start + x.offset
		return yield(Tile{x.part.Row0, x.part.Rows, u.home[from : from+x.part.Bytes()]}, nil)
	}
	rows := u.TileRows
	if rows == 0 {
		rows = x.part.Rows
	}
	for i := range u.Tiles() {
		row := i * rows
		n := min(rows, x.part.Rows-row)
		t, err := s.awaitSlot(x.unit, i)
		if err != nil {
			return s.fail(yield, err)
		}
		from := x.part.Offset() + int64(row)*size - t.start
		if !yield(Tile{x.part.Row0 + row, n, t.buf[from : from+int64(n)*size]}, nil) {
			return false
		}
		if u.TileRows > 0 {
			p.mu.Lock()
			p.release(t)
			p.mu.Unlock()
		}
	}
	return true
}

func (s *Sweep) fail(yield func(Tile, error) bool, err error) bool {
	s.err = err
	yield(Tile{}, err)
	return false
}

// awaitUnit waits until a pinned unit is in memory, for n bytes of it.
func (s *Sweep) awaitUnit(u *unit, n int64) error {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case u.state == ready:
			if u.firstUse == 0 {
				u.firstUse = p.sweep + 1
			}
			if u.firstUse != p.sweep+1 {
				p.stats.Hit += n
			}
			return nil
		case u.state == failed && !p.retryUnit(u):
			return u.err
		}
		if err := s.wait(); err != nil {
			return err
		}
	}
}

// awaitSlot waits until a tile of a streamed unit is in a slot.
func (s *Sweep) awaitSlot(unit, tile int) (*slot, error) {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		t := p.find(unit, tile)
		switch {
		case t == nil:
		case t.state == ready:
			return t, nil
		case t.state == failed && !p.retrySlot(t):
			return nil, t.err
		}
		if err := s.wait(); err != nil {
			return nil, err
		}
	}
}

// find is the slot of a tile of this sweep, if one was given to it. The lock is held.
func (p *Pager) find(unit, tile int) *slot {
	for i := range p.slots {
		t := &p.slots[i]
		if t.unit == unit && t.tile == tile && t.sweep == p.sweep && t.state != idle && t.state != dropped {
			return t
		}
	}
	return nil
}

// wait lets the lock go until something was read.
func (s *Sweep) wait() error {
	p := s.p
	start := time.Now()
	p.waiting = true
	p.mu.Unlock()
	var err error
	select {
	case <-p.arrived:
	case <-s.ctx.Done():
		err = s.ctx.Err()
	}
	p.mu.Lock()
	p.waiting = false
	p.stats.Wait += time.Since(start)
	return err
}
