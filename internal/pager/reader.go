package pager

import (
	"fmt"
	"time"

	"github.com/spillway/spillway/internal/layout"
)

// state of a slot, or of a pinned unit.
type state uint8

const (
	idle    state = iota // a free slot; a unit that was not asked for
	reading              // requests are in flight
	ready                // the bytes are there
	failed               // tried, without success
	queued               // waits for its second try
	dropped              // a slot that is read, although nobody wants it any more
)

// unit is what happens to a unit of the placement.
type unit struct {
	*layout.Unit
	last  int   // position in the sweep of the last matrix that uses it
	kinds kinds // of the bundles that use it in a sweep

	// The rest is for pinned units.
	home       []byte
	at         int64 // of the home in the region
	start, end int64 // aligned range of the file that fills the home
	requests   int   // that it takes
	issued     int
	done       int
	state      state
	tries      uint8  // second tries
	firstUse   uint64 // the sweep that used it first, plus 1
	err        error
}

// slot holds one request of a streamed unit.
type slot struct {
	buf   []byte
	state state
	tries uint8 // second tries
	sweep uint64
	unit  int
	tile  int
	start int64 // offset in the file of buf[0]
	err   error
}

// cursor is what comes next from the drive.
type cursor struct {
	sweep uint64
	unit  int
	tile  int
}

// job is one read.
type job struct {
	unit  int
	slot  int // -1: into the home of a pinned unit
	buf   []byte
	start int64
	need  int // bytes that must arrive; alignment can ask for more than the file has
}

// reader reads until the pager is closed, as number i.
func (p *Pager) reader(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { p.alive[i] = false }()
	for !p.closed && i < p.place.Readers {
		if p.moving && p.experts.next == len(p.experts.queue) {
			p.work.Wait()
			continue
		}
		if b := p.batch; b != nil {
			b.helpers.Add(1)
			p.batchStep(b, i)
			continue
		}
		if p.deep() { // then nothing else is read either
			p.work.Wait()
			continue
		}
		if p.expertStep(i) {
			continue
		}
		j, ok := p.next()
		if !ok {
			if !p.fillStep(i) {
				p.work.Wait()
			}
			continue
		}
		p.takeOff()
		p.mu.Unlock()
		n, err := p.read(j, i)
		p.mu.Lock()
		p.land(n)
		p.finish(j, n, err)
	}
}

// expertStep reads for an expert if there is something to read: it goes before what a sweep reads ahead.
// The lock is held before and after.
func (p *Pager) expertStep(i int) bool {
	j, ok := p.nextExpert()
	if ok {
		p.expertJob(j, i)
	}
	return ok
}

// fillStep reads for an empty slot if there is one, and time for it.
func (p *Pager) fillStep(i int) bool {
	j, ok := p.nextFill()
	if ok {
		p.work.Signal() // there may be time for more
		p.expertJob(j, i)
	}
	return ok
}

// expertJob carries out a read for an expert as reader i.
func (p *Pager) expertJob(j expertJob, i int) {
	x := &p.experts
	x.count(j, 1)
	p.takeOff()
	p.mu.Unlock()
	n, err := p.readExpert(j, i)
	p.mu.Lock()
	p.land(n)
	x.count(j, -1)
	if j.guess {
		p.stats.Guessed += int64(n)
	}
	if j.fill {
		p.stats.Filled += int64(n)
	}
	p.finishExpert(j, err)
	if x.flying == 0 || !p.deep() { // others wait for that
		p.work.Signal()
	}
}

// count counts a read that begins (by 1) or ends (by −1).
func (x *experts) count(j expertJob, by int) {
	switch {
	case j.guess:
		x.guess.flying += by
		return
	case j.fill:
		x.fill.flying += by
		x.fill.bytes += int64(by) * int64(len(j.buf))
		return
	}
	x.flying += by
	x.bytes += int64(by) * int64(len(j.buf))
}

// batchStep helps with a look-up until nothing is left of it. The lock is held before and after.
func (p *Pager) batchStep(b *lookup, i int) {
	p.mu.Unlock()
	b.run(p, i)
	b.helpers.Done()
	p.mu.Lock()
	if p.batch == b {
		p.batch = nil
	}
}

// takeOff and land keep the clock of the drive. The lock is held.
func (p *Pager) takeOff() {
	if p.flying == 0 {
		p.since = time.Now()
	}
	p.flying++
}

func (p *Pager) land(n int) {
	p.flying--
	if p.flying == 0 {
		p.rested.Broadcast()
		p.stats.Busy += time.Since(p.since)
	}
	p.stats.Requests++
	p.stats.Read += int64(n)
}

func (p *Pager) read(j job, i int) (int, error) {
	u := &p.units[j.unit]
	f := p.files[u.File]
	n, err := p.readAt(u.File, j.buf, j.start, i)
	if n >= j.need {
		return n, nil
	}
	return n, fmt.Errorf("%s: %d bytes of %s at offset %d: %w", f.Name(), j.need, u.label(), j.start, short(j.start, n, err))
}

// label names the matrices of a unit.
func (u *unit) label() string {
	name := u.Parts[0].Matrix.Name
	if n := len(u.Parts) - 1; n > 0 {
		name = fmt.Sprintf("%s and %d more", name, n)
	}
	return name
}

// next chooses the next read. The lock is held.
func (p *Pager) next() (job, bool) {
	if p.again {
		if j, ok := p.second(); ok {
			return j, true
		}
	}
	for c := &p.cursor; ; {
		if c.unit == len(p.units) {
			if c.sweep >= p.horizon() {
				return p.fill()
			}
			*c = cursor{sweep: c.sweep + 1}
			continue
		}
		u := &p.units[c.unit]
		if u.Pinned {
			if j, ok := p.request(c.unit); ok {
				return j, true
			}
			c.unit++
			continue
		}
		if p.passedOver(c) {
			*c = cursor{sweep: c.sweep, unit: c.unit + 1}
			continue
		}
		if j, ok := p.assign(c); ok {
			return j, true
		}
		return p.fill()
	}
}

// horizon is the last sweep to read for: the one after the one that runs.
func (p *Pager) horizon() uint64 {
	if p.running != nil {
		return p.sweep + 1
	}
	return p.sweep
}

// passedOver reports whether the sweep that the cursor is in will not use its unit.
func (p *Pager) passedOver(c *cursor) bool {
	return p.running != nil && c.sweep == p.sweep && p.running.skips(&p.units[c.unit])
}

// fill reads pinned units ahead of the cursor: they need no slot.
func (p *Pager) fill() (job, bool) {
	for ; p.load < len(p.units); p.load++ {
		if !p.units[p.load].Pinned {
			continue
		}
		if j, ok := p.request(p.load); ok {
			return j, true
		}
	}
	return job{}, false
}

// request is the next request for a pinned unit.
func (p *Pager) request(i int) (job, bool) {
	u := &p.units[i]
	if u.state == ready || u.state == failed || u.issued == u.requests {
		return job{}, false
	}
	u.state = reading
	from := int64(u.issued) * p.place.Request
	to := min(from+p.place.Request, u.end-u.start)
	u.issued++
	return job{unit: i, slot: -1, buf: u.home[from:to], start: u.start + from,
		need: int(min(u.start+to, u.Offset+u.Bytes) - u.start - from)}, true
}

// assign gives a free slot to the cursor's tile and moves the cursor on.
func (p *Pager) assign(c *cursor) (job, bool) {
	for i := range p.slots {
		s := &p.slots[i]
		if s.state != idle {
			continue
		}
		*s = slot{buf: s.buf, sweep: c.sweep, unit: c.unit, tile: c.tile}
		if c.tile++; c.tile == p.units[c.unit].Tiles() {
			*c = cursor{sweep: c.sweep, unit: c.unit + 1}
		}
		return p.slotJob(i), true
	}
	return job{}, false
}

func (p *Pager) slotJob(i int) job {
	s := &p.slots[i]
	s.state = reading
	offset, n := p.units[s.unit].Tile(s.tile)
	start, end := p.place.Enclosing(offset, n)
	s.start = start
	return job{unit: s.unit, slot: i, buf: s.buf[:end-start], start: start, need: int(offset + n - start)}
}

// second finds what waits for its second try.
func (p *Pager) second() (job, bool) {
	for i := range p.slots {
		if p.slots[i].state == queued {
			return p.slotJob(i), true
		}
	}
	for i := range p.units {
		if p.units[i].tries > 0 {
			if j, ok := p.request(i); ok {
				return j, true
			}
		}
	}
	p.again = false
	return job{}, false
}

// retrySlot queues a failed read for a second try, once. The lock is held.
func (p *Pager) retrySlot(s *slot) bool {
	if s.tries > 0 {
		return false
	}
	s.tries, s.state, s.err = 1, queued, nil
	p.again = true
	p.work.Signal()
	return true
}

// retryUnit is the same for a pinned unit.
func (p *Pager) retryUnit(u *unit) bool {
	if u.tries > 0 {
		return false
	}
	u.tries, u.state, u.err, u.issued, u.done = 1, queued, nil, 0, 0
	p.again = true
	p.work.Broadcast()
	return true
}

// forgive lets pinned units that failed be read afresh. The lock is held.
func (p *Pager) forgive() {
	for i := range p.units {
		if u := &p.units[i]; u.state == failed {
			u.tries, u.state, u.err, u.issued, u.done = 0, idle, nil, 0, 0
			p.load = min(p.load, i)
		}
	}
}

// finish notes the result of a read. The lock is held.
func (p *Pager) finish(j job, n int, err error) {
	if j.slot >= 0 {
		p.finishSlot(&p.slots[j.slot], err)
	} else {
		p.stats.Loaded += int64(n)
		p.finishUnit(&p.units[j.unit], err)
	}
	p.wake()
}

func (p *Pager) finishSlot(s *slot, err error) {
	switch {
	case s.state == dropped:
		p.release(s)
	case err != nil:
		s.state, s.err = failed, err
	default:
		s.state = ready
	}
}

func (p *Pager) finishUnit(u *unit, err error) {
	u.done++
	if err != nil {
		u.err = err
	}
	switch {
	case u.done < u.requests:
	case u.err != nil:
		u.state = failed
	default:
		u.state = ready
	}
}

// release makes a slot free. The lock is held.
func (p *Pager) release(s *slot) {
	poison(s.buf)
	s.state, s.err = idle, nil
	p.work.Signal()
}

// wake lets the one that waits look again. The lock is held.
func (p *Pager) wake() {
	if !p.waiting && !p.closed {
		return
	}
	select {
	case p.arrived <- struct{}{}:
	default:
	}
}
