package pager

import "github.com/spillway/spillway/internal/mem"

// growStep is how much memory slots get at once. The system fills it with zeros first, which takes from a few milliseconds to a
// good part of a second; meanwhile what is there is used. Tests take less.
var growStep int64 = 64 << 20

// firstSlots is how many of the placement's slots have memory from the beginning: enough for a row's experts of a layer, or all
// if that is little.
func (p *Pager) firstSlots() int {
	place := &p.place.Experts
	if place.Slots == 0 {
		return 0
	}
	return min(max(int(growStep/place.SlotBytes), p.model.Experts[0].Used), place.Slots)
}

// slotMemory is what n of the placement's slots occupy while slots may be in use: no huge page is cut, unless it is the last one of
// all.
func (p *Pager) slotMemory(n int) int64 {
	return min(hugePages(int64(n)*p.experts.slotBytes), p.place.Experts.Memory())
}

// hugePages rounds up to whole huge pages.
func hugePages(n int64) int64 { return (n + mem.HugeSize - 1) &^ (mem.HugeSize - 1) }

// returnRest gives back what is leased for slots and not mapped, and says how much that was. The lock is held.
func (p *Pager) returnRest() int64 {
	m := &p.memory.slots
	before := m.lease.Bytes()
	if !m.lease.TryResize(m.size()) {
		return 0
	}
	return before - m.lease.Bytes()
}

// startGrowing lets slots that the placement has, and that have no memory yet or lent it to others, get it beside all that runs. The lock is
// held.
func (p *Pager) startGrowing() {
	if p.growing || !p.grows() {
		return
	}
	p.growing = true
	p.readers.Go(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for p.grows() && p.grow() {
		}
		p.growing = false
		p.work.Broadcast()
		p.rested.Broadcast()
		p.wake()
	})
}

// grows reports whether there are slots to come. The lock is held.
func (p *Pager) grows() bool {
	x := &p.experts
	return !p.closed && !p.moving && !p.pausing && p.broken == nil && x.table != nil && len(x.slots) < p.place.Experts.Slots
}

// grow maps memory for some slots more, as far as there is room. The lock is held, and let go meanwhile.
func (p *Pager) grow() bool {
	x, m := &p.experts, &p.memory.slots
	step := max(int(growStep/x.slotBytes), 1)
	for n := min(len(x.slots)+step, p.place.Experts.Slots); n > len(x.slots); n = len(x.slots) + (n-len(x.slots))/2 {
		size := max(p.slotMemory(n), m.size())
		if !m.room(size) {
			continue
		}
		p.mapping = true
		p.mu.Unlock()
		err := m.resize(size, 0)
		p.mu.Lock()
		p.mapping = false
		p.rested.Broadcast()
		if err != nil || x.table == nil {
			return false
		}
		n = min(int(m.size()/x.slotBytes), p.place.Experts.Slots)
		p.giveSlots(n)
		x.table.Share(n - p.transit(n))
		p.work.Broadcast()
		return true
	}
	return false
}
