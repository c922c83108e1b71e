package pager

import (
	"cmp"
	"slices"
)

// filling is experts that are read into empty slots before a layer asks. Where every expert has a slot all are read once, and the
// first sweep waits for them (see preloads): then they are read whenever no read that is needed waits, else while nothing else is
// read. Nothing is displaced for them, and they decide nothing but what is in memory.
type filling struct {
	layer  int        // of those that are read
	parts  []fillPart // their reads in the order of the file, from next on
	next   int
	jobs   []expertJob // scratch
	flying int
	bytes  int64 // of these
	held   int   // who wants that none begins
	off    bool  // one has failed
}

// fillPart is one read: a number of those that an expert takes.
type fillPart struct {
	start  int64
	file   int32
	expert int32
	number int32
}

// mayFill reports whether a read for an empty slot may begin. The lock is held.
func (p *Pager) mayFill() bool {
	x := &p.experts
	f := &x.fill
	// While slots still come, those that are there are for what is needed.
	if x.table == nil || f.off || f.held > 0 || p.moving || x.next < len(x.queue) || len(x.todo) > 0 || p.growing && p.running != nil {
		return false
	}
	flying, bytes := f.flying, f.bytes
	switch {
	case p.ExpertsResident():
		flying, bytes = flying+x.flying, bytes+x.bytes
	case x.flying > 0 || x.guess.flying > 0:
		return false
	}
	return flying < expertReads || bytes < expertDepth
}

// preloads reports whether experts are still read that the first sweep waits for: all, where each has a slot. The lock is held.
func (p *Pager) preloads() bool {
	x := &p.experts
	if p.started || x.table == nil || x.fill.off || !p.ExpertsResident() {
		return false
	}
	held := 0
	for l := range p.model.Experts {
		held += x.table.Held(l)
	}
	return p.growing || x.reading > 0 || held < x.all
}

// nextFill takes the next read for an empty slot. The lock is held.
func (p *Pager) nextFill() (expertJob, bool) {
	x := &p.experts
	f := &x.fill
	for p.mayFill() && (f.next < len(f.parts) || p.nextBatch()) {
		part := f.parts[f.next]
		slot, ok := x.table.Holds(f.layer, int(part.expert))
		if !ok && part.number == 0 {
			if slot, ok = x.table.LoadEmpty(f.layer, int(part.expert)); !ok {
				break
			}
			f.jobs = p.fillSlot(f.jobs[:0], slot, f.layer, int(part.expert), 0)
			x.slots[slot].fill = true
		}
		f.next++
		if !ok || !p.fills(slot) {
			continue // a layer has asked for it meanwhile
		}
		t := &x.slots[slot]
		j := p.fillReads(slot)[part.number]
		j.fill = true
		t.asked = part.number + 1
		return j, true
	}
	return expertJob{}, false
}

// fills reports whether a slot has reads of a fill to come, or in flight.
func (p *Pager) fills(slot int) bool {
	t := &p.experts.slots[slot]
	return t.fill && t.state == reading
}

// fillReads are all reads that fill a slot, valid until the next call.
func (p *Pager) fillReads(slot int) []expertJob {
	f, t := &p.experts.fill, &p.experts.slots[slot]
	bundle := p.model.Experts[t.layer].Bundle(int(t.expert), p.place.Align)
	f.jobs = p.readsOf(f.jobs[:0], slot, &bundle, 0)
	return f.jobs
}

// nextBatch finds what to read next: all of a layer that is not in memory, if there is a slot for every expert, else the expert that is
// probably needed most.
func (p *Pager) nextBatch() bool {
	x := &p.experts
	f := &x.fill
	f.parts, f.next = f.parts[:0], 0
	if x.table.Empty() == 0 {
		return false
	}
	if !p.ExpertsResident() {
		layer, expert, ok := x.table.Missing()
		if ok {
			f.layer = layer
			p.addParts(expert)
		}
		return ok
	}
	for i := range p.model.Experts {
		f.layer = (x.layer + 1 + i) % len(p.model.Experts)
		for e := range p.model.Experts[f.layer].Count() {
			if _, ok := x.table.Holds(f.layer, e); !ok {
				p.addParts(e)
			}
		}
		if len(f.parts) > 0 {
			slices.SortFunc(f.parts, func(a, b fillPart) int { return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.start, b.start)) })
			return true
		}
	}
	return false
}

// addParts adds the reads of an expert of the fill's layer.
func (p *Pager) addParts(expert int) {
	f := &p.experts.fill
	bundle := p.model.Experts[f.layer].Bundle(expert, p.place.Align)
	f.jobs = p.readsOf(f.jobs[:0], 0, &bundle, 0)
	for i, j := range f.jobs {
		f.parts = append(f.parts, fillPart{j.start, int32(j.file), int32(expert), int32(i)})
	}
}

// promote makes a fill that a layer asks for one that is needed: its other reads begin. The lock is held.
func (p *Pager) promote(slot int) {
	x := &p.experts
	t := &x.slots[slot]
	if !p.fills(slot) {
		return
	}
	t.fill = false
	for _, j := range p.fillReads(slot)[t.asked:] {
		x.push(j)
		p.work.Signal()
	}
}

// dropFill ends fills whose reads have not all begun, so that no slot stays in use for them. The lock is held.
func (p *Pager) dropFill() {
	x := &p.experts
	f := &x.fill
	rest := f.parts[f.next:]
	f.parts, f.next = f.parts[:0], 0
	for _, part := range rest {
		slot, ok := x.table.Holds(f.layer, int(part.expert))
		if !ok || !p.fills(slot) || x.slots[slot].asked != part.number {
			continue
		}
		t := &x.slots[slot]
		t.err = errDropped
		x.table.Discard(slot)
		if t.left -= int32(len(p.fillReads(slot))) - t.asked; t.left == 0 {
			x.reading--
			t.state, t.fill = failed, false
			x.table.Release(slot)
		}
	}
}
