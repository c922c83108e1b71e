package pager

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/mem"
)

// holderRank is when the ledger asks for slots of experts: after caches of what nobody needs now.
const holderRank = 10

// slotHolder gives memory of experts back when somebody else needs it.
type slotHolder struct{ p *Pager }

// Shrink gives back slots, as far as one row's experts of a layer keep theirs. Those in use go when their layer is done with
// them, at the latest.
func (h slotHolder) Shrink(n int64) {
	p := h.p
	p.mu.Lock()
	defer p.mu.Unlock()
	x := &p.experts
	p.pausing = true
	for p.mapping {
		p.rested.Wait()
	}
	if p.closed || p.moving || x.table == nil {
		return
	}
	if n -= p.returnRest(); n <= 0 {
		return
	}
	// Memory goes by whole huge pages: slots of the last one that is to go must all go.
	has := p.memory.slots.size()
	keep := max(int(max(has-n, 0)&^(mem.HugeSize-1)/x.slotBytes), p.model.Experts[0].Used)
	if p.slotMemory(keep) >= has {
		return
	}
	p.shrinkSlots(keep)
	if size := p.slotMemory(len(x.slots)); size < p.memory.slots.size() {
		p.broken = errors.Join(p.broken, p.memory.slots.resize(size, 0))
	}
}

// shrinkSlots takes the last slots out of use, until there are n. What is worth more than what others hold moves there.
// The lock is held, and let go while slots are in use.
func (p *Pager) shrinkSlots(n int) {
	x := &p.experts
	if n >= len(x.slots) {
		return
	}
	x.table.Share(n - p.transit(n))
	p.dropFill()
	x.fill.held++
	defer func() {
		x.fill.held--
		p.work.Broadcast()
		p.wake()
	}()
	for !p.closed && len(x.slots) > n {
		last := len(x.slots) - 1
		to, ok := x.table.Vacate(last)
		if !ok {
			if !p.letGo() {
				p.rested.Wait()
			}
			continue
		}
		if to >= 0 {
			copy(p.slotHome(to), p.slotHome(last))
			x.slots[to] = x.slots[last]
		}
		x.slots = x.slots[:last]
	}
}

// Resize makes the weights lie as another placement of the same model says, between two sweeps. What both keep in memory
// is not read again; what is to go is given back before anything grows. It fails while a sweep runs. When it fails midway, which a placement
// within the ledger's limit has no reason to, no sweep begins any more.
func (p *Pager) Resize(place *layout.Placement) error {
	if err := place.Check(p.model); err != nil {
		return err
	}
	if place.Align != p.place.Align || place.Page != p.place.Page || place.ReadScratch != p.place.ReadScratch {
		return errors.New("pager: internal error: a placement for other files")
	}
	// Who can do without memory is asked before anything changes.
	room, err := p.reserveMove(place)
	if err != nil {
		return err
	}
	p.looking.Lock()
	defer p.looking.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { _ = room.Release() }()
	switch {
	case p.closed:
		return ErrClosed
	case p.running != nil:
		return errors.New("pager: internal error: a resize while a sweep runs")
	case p.broken != nil:
		return p.broken
	}
	p.moving = true
	p.dropFill()
	for p.flying > 0 || p.mapping || p.experts.next < len(p.experts.queue) {
		p.rested.Wait()
	}
	if err = room.Release(); err == nil {
		err = p.move(place)
	}
	p.moving = false
	if err != nil {
		p.broken = fmt.Errorf("pager: the memory could not be divided anew: %w", err)
	}
	p.startReaders()
	p.pausing = false
	p.startGrowing()
	p.work.Broadcast()
	return p.broken
}

// reserveMove leases what a placement needs beyond what is leased: all of it, or at least what it cannot do without. Its other slots
// come when there is room.
func (p *Pager) reserveMove(place *layout.Placement) (*budget.Lease, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	m := &p.memory
	has := m.pinned.lease.Bytes() + m.slots.lease.Bytes() + m.leases[1].Bytes()
	p.mu.Unlock()
	room, err := p.ledger.Reserve(budget.Weights, max(total(place)-has, 0), whatPinned)
	if err != nil && place.Experts.Slots > 0 {
		least := total(place) - place.Experts.Memory() + leastSlots(p.model, place)
		room, err = p.ledger.Reserve(budget.Weights, max(least-has, 0), whatPinned)
	}
	return room, err
}

// leastSlots is the memory of a row's experts of a layer.
func leastSlots(m *layout.Model, place *layout.Placement) int64 {
	return min(hugePages(int64(m.Experts[0].Used)*place.Experts.SlotBytes), place.Experts.Memory())
}

// total is the memory of a placement without vectors, which are always there.
func total(p *layout.Placement) int64 {
	return p.PinnedMemory() + p.Experts.Memory() + p.StagingMemory()
}

// Break lets no sweep begin any more, because of err, which it returns.
func (p *Pager) Break(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = err
	return err
}

// move carries out a resize. The lock is held, and nothing is read.
func (p *Pager) move(place *layout.Placement) error {
	m := &p.memory
	err := p.freeStaging()
	if err == nil {
		err = m.leases[1].Resize(0)
	}
	if err == nil {
		err = p.dropSlots(place)
	}
	if err != nil {
		return err
	}
	before := p.units
	p.place = place
	p.index()
	kept := p.kept(before)
	size := place.PinnedMemory()
	if size > m.pinned.size() {
		err = m.pinned.resize(size, p.mostPinned())
	}
	if err != nil {
		return err
	}
	shift(m.pinned.bytes(), kept)
	if size < m.pinned.size() {
		err = m.pinned.resize(size, p.mostPinned())
	}
	p.home()
	p.cursor, p.load, p.again = cursor{sweep: p.sweep}, 0, false
	if err == nil && !m.leases[1].TryResize(place.StagingMemory()) {
		err = fmt.Errorf("no room for %s", whatStaging)
	}
	if err == nil {
		err = p.addSlots()
	}
	if err == nil {
		err = p.mapStaging()
	}
	return err
}

// dropSlots gives back the slots that a placement does not have any more.
func (p *Pager) dropSlots(place *layout.Placement) error {
	x := &p.experts
	if x.table == nil {
		return nil
	}
	if place.Experts.Slots == 0 {
		x.table, x.slots = nil, nil
	} else {
		p.shrinkSlots(place.Experts.Slots)
	}
	p.returnRest()
	// Huge pages are not cut while there is more to come.
	if size := min(hugePages(int64(len(x.slots))*x.slotBytes), place.Experts.Memory()); size < p.memory.slots.size() {
		return p.memory.slots.resize(size, 0)
	}
	return nil
}

// addSlots gives the placement's experts their slots or tiles.
func (p *Pager) addSlots() error {
	x := &p.experts
	if len(p.model.Experts) == 0 {
		return nil
	}
	if x.table == nil || p.place.Experts.Slots == 0 {
		if err := p.indexExperts(); err != nil {
			return err
		}
		if err := p.mapSlots(); err != nil {
			return err
		}
		if x.table != nil {
			p.shrinkSlots(p.mappedSlots())
		}
		return nil
	}
	if err := p.mapSlots(); err != nil {
		return err
	}
	n := max(len(x.slots), min(p.firstSlots(), p.mappedSlots()))
	p.giveSlots(n)
	x.table.Share(n - p.transit(n))
	return nil
}

// mappedSlots is how many slots have memory.
func (p *Pager) mappedSlots() int { return int(p.memory.slots.size() / p.experts.slotBytes) }

// shifted is bytes of a region that move.
type shifted struct{ to, from, n int64 }

// kept gives the pinned units their places, and finds what need not be read again: it lay in memory before, in units of another
// placement. Those units come first, in the order in which they lay, and are marked accordingly.
func (p *Pager) kept(before []unit) []shifted {
	type source struct {
		u *unit
		shifted
	}
	var found []source
	for i := range p.units {
		if u := &p.units[i]; u.Pinned {
			s := source{u: u}
			s.from, s.n = holding(before, u)
			if s.n < u.end-u.start { // whole requests
				s.n = s.n / p.place.Request * p.place.Request
			}
			if s.n == 0 {
				s.from = math.MaxInt64
			}
			found = append(found, s)
		}
	}
	slices.SortStableFunc(found, func(a, b source) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.u.start, b.u.start)) })
	var to int64
	var moves []shifted
	for _, s := range found {
		s.u.at, s.to = to, to
		to += p.place.Home(s.u.Unit)
		if s.n > 0 {
			moves = append(moves, s.shifted)
			s.u.keep(s.n, p.place.Request)
		}
	}
	return moves
}

// keep marks a unit's first n bytes, whole requests or all, as read.
func (u *unit) keep(n, request int64) {
	u.issued = int((n + request - 1) / request)
	u.done = u.issued
	if u.done == u.requests {
		u.state, u.firstUse = ready, math.MaxUint64
	}
}

// holding is where the first bytes of a unit lay before, and how many.
func holding(before []unit, u *unit) (from, n int64) {
	for i := range before {
		b := &before[i]
		if b.Pinned && b.state == ready && b.File == u.File && b.start <= u.start && b.end > u.start {
			return b.at + u.start - b.start, min(b.end, u.end) - u.start
		}
	}
	return 0, 0
}

// shift carries out moves that are in rising order at both ends: those down from the first on, those up from the last on, so that
// none overwrites what another one needs. Two of them may share a block: everything moves by whole blocks.
func shift(b []byte, moves []shifted) {
	for _, m := range moves {
		if m.to < m.from {
			copy(b[m.to:m.to+m.n], b[m.from:])
		}
	}
	for i := len(moves) - 1; i >= 0; i-- {
		if m := moves[i]; m.to > m.from {
			copy(b[m.to:m.to+m.n], b[m.from:])
		}
	}
}

// startReaders starts those of the placement's readers that do not run. Those beyond end by themselves. The lock is held.
func (p *Pager) startReaders() {
	for len(p.alive) < p.place.Readers {
		p.alive = append(p.alive, false)
	}
	for i := range p.place.Readers {
		if !p.alive[i] {
			p.alive[i] = true
			p.readers.Go(func() { p.reader(i) })
		}
	}
}
