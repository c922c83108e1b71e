package plan

import (
	"github.com/spillway/spillway/internal/layout"
)

const (
	// Large reads of experts reach the drive's speed; many in flight hide that some take longer.
	expertRequest = 4 << 20
	expertReaders = 16
	// A chunk of a prompt touches nearly all experts, so that a longer one saves reads: it may take more of
	// what the least leaves.
	expertRowShare = 16
	minTiles       = 4
)

// Experts is what a plan says about a model's experts.
type Experts struct {
	Layers int   // that have some
	Count  int   // of a layer
	Used   int   // by each row
	Bytes  int64 // of all of them
	Cycle  int64 // of those that one row uses in all layers
	Slots  int   // that hold one each; 0: they pass through a ring in tiles
}

// Resident reports whether every expert has a slot.
func (e *Experts) Resident() bool { return e.Slots >= e.Layers*e.Count }

// CycleFits reports whether the experts that one row uses have slots, all at once. If not, a cache hits
// rarely, whatever its policy.
func (e *Experts) CycleFits() bool { return e.Slots >= e.Layers*e.Used }

func (s *sizes) experts(p *layout.Placement) *Experts {
	m := s.r.Model
	if len(m.Experts) == 0 {
		return nil
	}
	return &Experts{
		Layers: len(m.Experts), Count: m.Experts[0].Count(), Used: m.Experts[0].Used,
		Bytes: m.ExpertBytes(), Cycle: m.ExpertCycle(), Slots: p.Experts.Slots,
	}
}

// HitRate is the share of an answer's experts that a prediction expects in memory.
func (e *Experts) HitRate(r Routing) float64 { return 1 - e.missed(r, 1) }

// missed is the part of the experts that a pass needs and does not find in memory: if the routing is not known, every
// expert is as likely as any other.
func (e *Experts) missed(r Routing, rows int) float64 {
	switch {
	case e.Resident():
		return 0
	case r.Known && rows == 1:
		return 1 - r.Hits
	}
	return 1 - float64(e.Slots)/float64(e.Layers*e.Count)
}

// requests are the size and the number of the reads that a layer has in flight for so many missing experts.
func (e *Experts) requests(p *Plan, missed float64) (size int64, depth float64) {
	x := &p.Placement.Experts
	each := e.Bytes / int64(e.Layers*e.Count)
	if e.Slots == 0 {
		return min(x.TileBytes, each), float64(min(x.Tiles, p.Placement.Readers))
	}
	ranges := int64(p.model.Experts[0].Bundle(0, p.Placement.Align).N)
	size = min(each/ranges, x.Request)
	return size, min(missed*float64(each)/float64(size), float64(p.Placement.Readers))
}

// touched is the part of the experts that so many rows use.
func (e *Experts) touched(rows int) float64 {
	none := 1.0
	for range rows {
		none *= 1 - float64(e.Used)/float64(e.Count)
	}
	return 1 - none
}

// expertSlot is the size of a slot for any expert.
func (pl *placer) expertSlot() int64 {
	var most int64
	for i := range pl.r.Model.Experts {
		l := &pl.r.Model.Experts[i]
		for e := range l.Count() {
			most = max(most, l.Bundle(e, pl.r.Align).Bytes)
		}
	}
	return pl.pages(most)
}

// allExperts is how many slots hold every expert.
func (pl *placer) allExperts() int {
	n := 0
	for i := range pl.r.Model.Experts {
		n += pl.r.Model.Experts[i].Count()
	}
	return n
}

// slots gives experts so many slots.
func (pl *placer) slots(p *layout.Placement, n int) {
	if n == 0 {
		return
	}
	p.Experts = layout.ExpertPlacement{Slots: n, SlotBytes: pl.slot, Request: up(expertRequest, int64(p.Align))}
	if layer := pl.slot * int64(pl.r.Model.Experts[0].Used); layer > maxReaders*expertRequest {
		p.Readers = expertReaders
	}
}

// tiles gives experts a ring of at most the smallest one's size and extra bytes.
func (pl *placer) tiles(p *layout.Placement, extra int64) {
	if len(pl.r.Model.Experts) == 0 {
		return
	}
	var row, most int64
	for i := range pl.r.Model.Experts {
		for k := range pl.r.Model.Experts[i].Stacks {
			s := &pl.r.Model.Experts[i].Stacks[k]
			row, most = max(row, s.RowBytes()), max(most, s.Bytes())
		}
	}
	slack := 2 * int64(p.Align)
	x := &p.Experts
	x.TileBytes, x.Tiles = pl.pages(max(row+slack, min(most+slack, minSlot))), minTiles
	x.Request = up(expertRequest, int64(p.Align))
	room := x.Staging() + extra
	if size := min(room/fullSlots/slotStep*slotStep, maxSlot, up(most+slack, slotStep)); size > x.TileBytes {
		x.TileBytes = size
	}
	x.Tiles = int(min(max(room/x.TileBytes, minTiles), 2*fullSlots))
}

// streamExperts keeps the trunk in memory and gives what is left to slots for experts. It fails if that is
// too little for what one row uses in a layer: tiles are faster then.
func (s *sizes) streamExperts(p *Plan) bool {
	try := *p
	try.Placement = s.placer.resident(false)
	s.placer.slots(try.Placement, 1)
	left := s.fill(&try, p.Budget) + try.Placement.Experts.Memory()
	n := min(left/s.placer.slot, int64(s.placer.allExperts()))
	if n < int64(s.r.Model.Experts[0].Used) {
		return false
	}
	try.Placement.Experts.Slots = int(n)
	s.fill(&try, p.Budget)
	try.EmbeddingPinned = embeddingPinned(s.r.Model, try.Placement)
	*p = try
	return true
}
