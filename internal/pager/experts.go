package pager

import (
	"errors"
	"fmt"
	"iter"

	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/policy"
)

// experts is what happens to a model's experts. In slots they stay as long as the policy thinks that they
// are worth it; without slots they pass through a ring of tiles.
type experts struct {
	table     *policy.Table // nil without slots
	slots     []expertSlot
	homes     []byte // memory of the slots, one after the other
	slotBytes int64
	ring      ring
	all       int // experts that there are
	guess     guesses
	fill      filling
	queue     []expertJob // reads that wait for a reader, from next on
	next      int

	// Of the visit that runs:
	layer   int
	visit   policy.Visit
	slotOf  []int32 // by demand, −1 before it has one
	todo    []int32 // demands that need a slot, in order
	arrived []int32 // demands that can be computed, or have failed, in order
	some    []Expert
	reading int    // slots whose reads have not ended
	flying  int    // reads that have begun and not ended
	bytes   int64  // of these
	sweeps  uint64 // since the shares of the layers were last set
}

// expertSlot is memory for one expert.
type expertSlot struct {
	at     [layout.MaxStacks]int64 // where its matrices lie
	err    error
	layer  int32
	expert int32
	left   int32 // reads that have not ended
	demand int32 // of the visit that runs that waits for it, or −1
	state  state // idle, reading, ready or failed
	guess  bool  // held for a layer to come; once that has asked: read for it before
	fill   bool  // filled because it was empty, before a layer asked
	asked  int32 // of its reads that such a fill has asked for
}

// expertJob is one read of an expert: bytes of an extent of a slot, or a tile of the ring.
type expertJob struct {
	slot  int // −1: the ring's
	tile  int
	file  int
	buf   []byte
	start int64
	need  int
	tries int
	guess bool
	fill  bool
}

// Expert is one of those that a visit needs, valid during the loop's step that yields it.
type Expert struct {
	Demand int   // index into the visit's demands
	Err    error // it could not be read
	s      *Sweep
	slot   int // −1: from the ring
	home   []byte
	at     [layout.MaxStacks]int64 // of the stacks in it
}

const (
	// rebalancePeriod is after how many sweeps the shares of the layers are set anew.
	rebalancePeriod = 64
)

// indexExperts makes the tables for the placement's slots or tiles, without an expert; memory comes later.
func (p *Pager) indexExperts() error {
	layers := p.model.Experts
	if len(layers) == 0 {
		return nil
	}
	x := &p.experts
	count := layers[0].Count()
	x.all, x.layer, x.fill = 0, len(layers)-1, filling{} // the next visit is the first layer's
	for i := range layers {
		x.all += layers[i].Count()
	}
	x.slotOf = make([]int32, 0, count)
	x.todo, x.arrived = make([]int32, 0, count), make([]int32, 0, count)
	place := &p.place.Experts
	x.ring.tiles = make([]ringTile, place.Tiles)
	x.table, x.slots = nil, nil
	if place.Slots == 0 {
		return nil
	}
	r, err := policy.New(p.rule, p.shape(), p.profile)
	if err != nil {
		return err
	}
	x.table = policy.NewTable(p.shape(), r)
	x.table.Window = layers[0].Used
	n := p.firstSlots()
	x.slots = make([]expertSlot, 0, place.Slots)
	p.giveSlots(n)
	x.table.SetQuotas(policy.Equal(p.shape(), n-p.transit(n)))
	return nil
}

// giveSlots adds empty slots up to n.
func (p *Pager) giveSlots(n int) {
	x := &p.experts
	for i := len(x.slots); i < n; i++ {
		x.slots = append(x.slots, expertSlot{demand: -1})
		x.table.Give(i)
	}
}

// shape is the experts as policies see them.
func (p *Pager) shape() policy.Shape {
	return policy.Shape{Layers: len(p.model.Experts), Experts: p.model.Experts[0].Count()}
}

// transit is how many of n slots are no layer's.
func (p *Pager) transit(n int) int { return policy.Transit(p.shape(), p.model.Experts[0].Used, n) }

// placeTiles gives the ring's tiles their memory.
func (x *experts) placeTiles(tiles []byte, place *layout.ExpertPlacement) {
	for i := range x.ring.tiles {
		x.ring.tiles[i].buf = tiles[int64(i)*place.TileBytes:][:place.TileBytes]
	}
}

// slotHome is the memory of a slot.
func (p *Pager) slotHome(slot int) []byte {
	n := p.experts.slotBytes
	return p.experts.homes[int64(slot)*n:][:n]
}

// rebalance sets the shares of the layers by their use. The lock is held.
func (p *Pager) rebalance() {
	x := &p.experts
	for i := range x.guess.ahead {
		if r := &x.guess.ahead[i]; r.paused > 0 {
			r.paused--
		}
	}
	if x.table == nil || p.ExpertsResident() {
		return
	}
	if x.sweeps++; x.sweeps%rebalancePeriod == 0 {
		x.table.Rebalance(p.transit(x.table.Slots()))
	}
}

// ExpertsResident reports whether there is a slot for every expert, or will be in a moment.
func (p *Pager) ExpertsResident() bool {
	x := &p.experts
	return len(x.slots) >= x.all || p.growing && p.place.Experts.Slots >= x.all
}

// Ask begins a visit to the experts of a layer, by position in Model.Experts: the reads of all that are not in
// memory start, as far as there are slots. Experts follows, and other matrices may be used before. The visit's
// demands stay the caller's, unchanged until then.
func (s *Sweep) Ask(layer int, v policy.Visit) error {
	if s.err == nil {
		s.err = s.ctx.Err()
	}
	if s.err == nil && s.asked {
		s.err = errors.New("pager: internal error: experts were asked for twice")
	}
	if s.err == nil {
		s.err = s.p.checkVisit(layer, v)
	}
	if s.err != nil {
		return s.err
	}
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	s.asked = true
	p.experts.layer, p.experts.visit = layer, v
	p.stats.Experts += int64(len(v.Demands))
	if p.experts.table == nil {
		p.openRing()
	} else {
		p.beginVisit()
	}
	return nil
}

// Experts yields the experts that were asked for, those in memory first, the others as they arrive, up to most at
// once if so many are there. One that could not be read has an Err of its own; an error of the loop ends the sweep.
func (s *Sweep) Experts(most int) iter.Seq2[[]Expert, error] {
	return func(yield func([]Expert, error) bool) { s.each(most, yield) } // inlined, as Tiles
}

func (s *Sweep) each(most int, yield func([]Expert, error) bool) {
	if s.err == nil {
		s.err = s.ctx.Err()
	}
	if s.err == nil && !s.asked {
		s.err = errors.New("pager: internal error: no experts were asked for")
	}
	if s.err != nil {
		yield(nil, s.err)
		return
	}
	s.err = errLeft
	var err error
	if s.p.experts.table == nil {
		err = s.eachRing(yield)
	} else {
		err = s.eachSlot(max(most, 1), yield)
	}
	s.endVisit()
	if s.err = err; err != nil && err != errLeft {
		yield(nil, err)
	}
}

// endVisit gives up what the visit has not come to; without a visit it does nothing.
func (s *Sweep) endVisit() {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !s.asked:
	case p.experts.table == nil:
		s.closeRing()
	default:
		p.endVisit()
	}
	s.asked = false
}

func (p *Pager) checkVisit(layer int, v policy.Visit) error {
	if layer < 0 || layer >= len(p.model.Experts) {
		return fmt.Errorf("pager: internal error: experts of layer %d of %d", layer, len(p.model.Experts))
	}
	for _, d := range v.Demands {
		if d.Expert < 0 || int(d.Expert) >= p.model.Experts[layer].Count() {
			return fmt.Errorf("pager: internal error: expert %d of %d", d.Expert, p.model.Experts[layer].Count())
		}
	}
	return nil
}

// eachSlot yields the experts of a visit from slots.
func (s *Sweep) eachSlot(most int, yield func([]Expert, error) bool) error {
	p := s.p
	x := &p.experts
	p.mu.Lock()
	defer p.mu.Unlock()
	for left := len(x.visit.Demands); left > 0; {
		if err := s.awaitExpert(); err != nil {
			return err
		}
		n := min(most, len(x.arrived))
		x.some = x.some[:0]
		for _, d := range x.arrived[:n] {
			slot := int(x.slotOf[d])
			t := &x.slots[slot]
			x.some = append(x.some, Expert{Demand: int(d), Err: t.err, s: s, slot: slot, home: p.slotHome(slot), at: t.at})
		}
		x.arrived = append(x.arrived[:0], x.arrived[n:]...)
		p.mu.Unlock()
		more := yield(x.some, nil)
		p.mu.Lock()
		for _, e := range x.some {
			p.vacate(int32(e.Demand))
		}
		p.stats.Passed += int64(n) * p.model.Experts[x.layer].Bytes()
		if !more {
			return errLeft
		}
		left -= n
		p.seat()
	}
	return nil
}

// awaitExpert waits until an expert can be yielded. The lock is held.
func (s *Sweep) awaitExpert() error {
	p := s.p
	x := &p.experts
	for len(x.arrived) == 0 {
		if x.reading == 0 {
			if !p.letGo() {
				return errors.New("pager: internal error: no slot can be had for an expert")
			}
			p.seat()
			continue
		}
		if err := s.wait(); err != nil {
			return err
		}
		p.seat()
	}
	return nil
}

// beginVisit finds what is in memory and asks for the rest. The lock is held.
func (p *Pager) beginVisit() {
	x := &p.experts
	n := len(x.visit.Demands)
	x.slotOf, x.todo, x.arrived = x.slotOf[:n], x.todo[:0], x.arrived[:0]
	p.endGuesses(x.layer)
	p.judge(x.layer)
	x.table.Visit(x.layer, x.visit, x.slotOf)
	for i, slot := range x.slotOf {
		switch {
		case slot < 0:
			x.todo = append(x.todo, int32(i))
			continue
		case x.slots[slot].state == ready:
			x.arrived = append(x.arrived, int32(i))
			if t := &x.slots[slot]; t.guess || t.fill { // it was read for this visit, or one like it
				t.guess, t.fill = false, false
				continue
			}
			p.stats.Hit += p.model.Experts[x.layer].Bytes()
			p.stats.ExpertHits++
		default: // a visit that was given up, a guess or a fill began to read it
			x.slots[slot].demand, x.slots[slot].guess = int32(i), false
			p.promote(int(slot))
			x.table.Release(int(slot)) // their use
		}
	}
	p.seat()
}

// seat finds slots for what has none and starts its reads. The lock is held.
func (p *Pager) seat() {
	x := &p.experts
	for len(x.todo) > 0 {
		d := x.todo[0]
		e := int(x.visit.Demands[d].Expert)
		slot, ok := x.table.Load(x.layer, e)
		if !ok {
			return
		}
		x.todo = append(x.todo[:0], x.todo[1:]...)
		x.slotOf[d] = int32(slot)
		p.loadExpert(slot, x.layer, e, d)
	}
}

// loadExpert queues the reads that fill a slot. The lock is held.
func (p *Pager) loadExpert(slot, layer, expert int, demand int32) {
	x := &p.experts
	if x.next == len(x.queue) {
		x.queue, x.next = x.queue[:0], 0
	}
	before := len(x.queue)
	x.queue = p.fillSlot(x.queue, slot, layer, expert, 0)
	x.slots[slot].demand = demand
	for range len(x.queue) - before {
		p.work.Signal()
	}
}

// fillSlot begins to fill a slot, and adds the reads for that to a list, of about so many bytes each; 0 is what the placement says. The
// lock is held.
func (p *Pager) fillSlot(jobs []expertJob, slot, layer, expert int, request int64) []expertJob {
	x := &p.experts
	t := &x.slots[slot]
	poison(p.slotHome(slot))
	bundle := p.model.Experts[layer].Bundle(expert, p.place.Align)
	*t = expertSlot{at: bundle.At, layer: int32(layer), expert: int32(expert), state: reading, demand: -1}
	x.reading++
	before := len(jobs)
	jobs = p.readsOf(jobs, slot, &bundle, request)
	t.left = int32(len(jobs) - before)
	return jobs
}

// readsOf adds the reads of an expert into a slot to a list, in the order of its file.
func (p *Pager) readsOf(jobs []expertJob, slot int, bundle *layout.ExpertBundle, request int64) []expertJob {
	home := p.slotHome(slot)
	for i := range bundle.N {
		e := &bundle.Extents[i]
		step := p.expertRequest(e.End - e.Start)
		if request > 0 {
			step = (request + int64(p.place.Align) - 1) &^ int64(p.place.Align-1)
		}
		for at := e.Start; at < e.End; at += step {
			end := min(at+step, e.End)
			from := e.Slot + at - e.Start
			jobs = append(jobs, expertJob{slot: slot, file: e.File, buf: home[from:][:end-at], start: at, need: int(min(end, e.Start+e.Need) - at)})
		}
	}
	return jobs
}

// expertRequest cuts an extent of n bytes into equal requests. What is little more than one is read at once.
func (p *Pager) expertRequest(n int64) int64 {
	pieces := max((n+n/4)/p.place.Experts.Request, 1)
	align := int64(p.place.Align)
	return (n/pieces + align) &^ (align - 1)
}

// push adds a read to the queue.
func (x *experts) push(j expertJob) {
	if x.next == len(x.queue) {
		x.queue, x.next = x.queue[:0], 0
	}
	x.queue = append(x.queue, j)
}

// vacate ends the use of a demand's slot. The lock is held.
func (p *Pager) vacate(d int32) {
	x := &p.experts
	x.table.Release(int(x.slotOf[d]))
	x.slotOf[d] = -1
	p.rested.Broadcast()
}

// endVisit gives up what a visit has not come to. The lock is held.
func (p *Pager) endVisit() {
	x := &p.experts
	for d, slot := range x.slotOf {
		if slot < 0 {
			continue
		}
		if t := &x.slots[slot]; t.state == reading {
			t.demand = -1 // its last read releases it
			continue
		}
		p.vacate(int32(d))
	}
	x.slotOf, x.todo, x.arrived = x.slotOf[:0], x.todo[:0], x.arrived[:0]
}

// Reads of experts that are on their way at once: so many bytes, and in any case so many reads. That reaches the speed of the drives that
// we measured, and is so little that experts arrive one after the other and are computed while the next ones are read.
const (
	expertDepth = 12 << 20
	expertReads = 3
)

// nextExpert takes the next read of an expert. The lock is held.
func (p *Pager) nextExpert() (expertJob, bool) {
	x := &p.experts
	if x.next < len(x.queue) {
		x.next++
		return x.queue[x.next-1], true
	}
	if j, ok := p.nextTile(); ok {
		return j, ok
	}
	return p.nextGuess()
}

// deep reports whether so many reads of experts are on their way that the next one has to wait. The lock is held.
func (p *Pager) deep() bool {
	x := &p.experts
	return x.next < len(x.queue) && x.flying >= expertReads && x.bytes+int64(len(x.queue[x.next].buf)) > expertDepth
}

// readExpert reads as reader i.
func (p *Pager) readExpert(j expertJob, i int) (int, error) {
	n, err := p.readAt(j.file, j.buf, j.start, i)
	if n >= j.need {
		return n, nil
	}
	return n, short(j.start, n, err)
}

// finishExpert notes the result of a read of an expert. The lock is held.
func (p *Pager) finishExpert(j expertJob, err error) {
	x := &p.experts
	if err != nil && j.tries == 0 {
		j.tries = 1
		x.push(j)
		p.work.Signal()
		return
	}
	if j.slot < 0 {
		p.finishTile(j, err)
		p.wake()
		return
	}
	t := &x.slots[j.slot]
	if err != nil {
		t.err = fmt.Errorf("%s: %d bytes of expert %d of layer %d at offset %d: %w", p.files[j.file].Name(), j.need,
			t.expert, p.model.Experts[t.layer].Layer, j.start, err)
	}
	if t.left--; t.left > 0 {
		return
	}
	x.reading--
	t.state = ready
	if t.err != nil {
		t.state = failed
		x.table.Discard(j.slot)
		if t.fill && t.err != errDropped {
			p.dropFill()
			x.fill.off = true // who needs an expert shall hear of it
		}
	}
	switch {
	case t.demand < 0 && t.guess: // its layer is still to come
	case t.demand < 0:
		x.table.Release(j.slot)
	default:
		x.arrived = append(x.arrived, t.demand)
		t.demand = -1
	}
	p.rested.Broadcast()
	p.wake()
}

// Stays reports whether tiles are valid for the whole step, not only until the next one comes.
func (e Expert) Stays() bool { return e.slot >= 0 }

// Tiles yields the row tiles of one of the expert's stacks, in rising row order. With several stacks they are
// asked for in their order, each once and to its end.
func (e Expert) Tiles(stack int) iter.Seq2[Tile, error] {
	return func(yield func(Tile, error) bool) { e.tiles(stack, yield) } // inlined, as Sweep.Tiles
}

func (e *Expert) tiles(stack int, yield func(Tile, error) bool) {
	p := e.s.p
	s := &p.model.Experts[p.experts.layer].Stacks[stack]
	if e.slot < 0 {
		e.s.ringTiles(e.Demand, stack, yield)
		return
	}
	yield(Tile{0, s.Rows, e.home[e.at[stack]:][:s.Bytes()]}, nil)
}
