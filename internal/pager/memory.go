package pager

import (
	"errors"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/mem"
)

// memory is what a pager holds. Pinned weights and slots of experts lie in regions, so that they keep their places
// when there become fewer or more.
type memory struct {
	pinned, slots    area
	vectors, staging *mem.Buffer
	leases           [2]*budget.Lease // of these
}

// area is a region and its lease.
type area struct {
	lease  *budget.Lease
	region *mem.Region
}

// bytes are the addresses of the region.
func (a *area) bytes() []byte {
	if a.region == nil {
		return nil
	}
	return a.region.Bytes()
}

// size is how many of them are memory.
func (a *area) size() int64 {
	if a.region == nil {
		return 0
	}
	return int64(a.region.Len())
}

// errNoRoom is what growing answers while others have the memory.
var errNoRoom = errors.New("pager: no room")

// resize leases and maps n bytes, of at most so many that there will ever be (which only the first call needs). It asks
// nobody for room.
func (a *area) resize(n, most int64) (err error) {
	if a.region == nil {
		if n == 0 {
			return a.lease.Resize(0)
		}
		if a.region, err = mem.NewRegion(a.lease, int(most)); err != nil {
			return err
		}
	}
	before := a.size()
	if n == before { // the end of memory is not to be touched
		return nil
	}
	if !a.room(n) {
		return errNoRoom
	}
	err = a.region.Resize(int(n))
	if err == nil && n >= before {
		return nil
	}
	return errors.Join(err, a.lease.Resize(a.size()))
}

// room makes the lease one for n bytes at least. It asks nobody.
func (a *area) room(n int64) bool { return n <= a.lease.Bytes() || a.lease.TryResize(n) }

func (a *area) free() (err error) {
	if a.region != nil {
		err = a.region.Free()
	}
	if a.lease != nil {
		err = errors.Join(err, a.lease.Release())
	}
	*a = area{}
	return err
}

// Who holds what.
const (
	whatPinned  = "pinned weights"
	whatStaging = "weights on their way from the drive"
	whatExperts = "experts"
)

// reserve leases everything at once, then maps it.
func (p *Pager) reserve(l *budget.Ledger) error {
	m := &p.memory
	vectors := p.place.Pages(p.model.VectorBytes())
	leases, err := l.ReserveAll(
		budget.Want{Pool: budget.Weights, Bytes: p.place.PinnedMemory(), What: whatPinned},
		budget.Want{Pool: budget.Weights, Bytes: p.place.Experts.Memory(), What: whatExperts},
		budget.Want{Pool: budget.Weights, Bytes: vectors, What: whatPinned},
		budget.Want{Pool: budget.Staging, Bytes: p.place.StagingMemory(), What: whatStaging},
	)
	if err != nil {
		return err
	}
	m.pinned.lease, m.slots.lease, m.leases = leases[0], leases[1], [2]*budget.Lease(leases[2:])
	if vectors > 0 {
		if m.vectors, err = mem.MapSlot(m.leases[0], int(vectors)); err != nil {
			return err
		}
		p.vectors = vectorsOf(p.model, m.vectors.Bytes())
	} else {
		p.vectors = vectorsOf(p.model, nil)
	}
	if err := m.pinned.resize(p.place.PinnedMemory(), p.mostPinned()); err != nil {
		return err
	}
	p.kept(nil)
	p.home()
	if err := p.mapSlots(); err != nil {
		return err
	}
	return p.mapStaging()
}

// mostPinned bounds the memory of pinned weights at any placement: every part with its ends, in pages.
func (p *Pager) mostPinned() int64 {
	n := p.place.Page
	for _, x := range p.model.Matrices {
		n += 2 * p.place.Pages(x.Bytes()+2*int64(p.place.Align)+p.place.Page)
	}
	return n
}

// home gives the pinned units the memory at their places.
func (p *Pager) home() {
	b := p.memory.pinned.bytes()
	for i := range p.units {
		if u := &p.units[i]; u.Pinned {
			u.home = b[u.at:][: u.end-u.start : u.end-u.start]
		}
	}
}

// mapSlots leases what experts need for all of their slots, and maps the first ones. Growing maps the others. While others have
// the memory, a row's experts of a layer are enough.
func (p *Pager) mapSlots() error {
	m, x := &p.memory.slots, &p.experts
	place := &p.place.Experts
	if place.Slots > 0 {
		x.slotBytes = place.SlotBytes
	}
	// Up to a whole huge page now: growing maps more while slots are in use.
	size := max(min(hugePages(m.size()), place.Memory()), p.slotMemory(p.firstSlots()))
	if !m.room(place.Memory()) && !m.room(size) {
		if place.Slots == 0 {
			return errNoRoom
		}
		size = max(m.size(), leastSlots(p.model, p.place))
	}
	err := m.resize(size, int64(x.all)*x.slotBytes)
	x.homes = m.bytes()
	return err
}

// mapStaging maps what the placement has of staging, and cuts it up.
func (p *Pager) mapStaging() (err error) {
	m := &p.memory
	n := p.place.StagingMemory()
	if m.staging, err = mem.MapSlot(m.leases[1], int(n)); err != nil {
		return err
	}
	staging := m.staging.Bytes()
	for i := range p.slots {
		p.slots[i].buf = staging[int64(i)*p.place.SlotBytes:][:p.place.SlotBytes]
	}
	p.lookups = staging[int64(p.place.Slots)*p.place.SlotBytes:]
	p.scratch = p.lookups[int64(p.place.Readers+1)*p.place.LookupBytes:]
	p.experts.placeTiles(p.scratch[int64(p.place.Readers+1)*p.place.ScratchBytes():], &p.place.Experts)
	return nil
}

// freeStaging gives staging back, but not its lease.
func (p *Pager) freeStaging() (err error) {
	if p.memory.staging != nil {
		err = p.memory.staging.Free()
	}
	p.memory.staging, p.lookups, p.scratch = nil, nil, nil
	for i := range p.slots {
		p.slots[i].buf = nil
	}
	return err
}

// free gives memory and leases back.
func (p *Pager) free() error {
	m := &p.memory
	errs := []error{m.pinned.free(), m.slots.free(), p.freeStaging()}
	if m.vectors != nil {
		errs = append(errs, m.vectors.Free())
	}
	for _, l := range m.leases {
		if l != nil {
			errs = append(errs, l.Release())
		}
	}
	p.memory, p.vectors = memory{}, nil
	return errors.Join(errs...)
}
