package layout

import (
	"fmt"

	"github.com/spillway/spillway/internal/quant"
)

// MaxStacks is the most matrices that an expert has: gate, up, down.
const MaxStacks = 3

// ExpertLayer is the experts of one layer. Each is a bundle of its own: a row needs Used of them, which
// the router chooses.
type ExpertLayer struct {
	Layer  int     // that they belong to
	Used   int     // by each row
	Stacks []Stack // up to MaxStacks, in the order in which they are used
}

// Stack is one matrix of every expert of a layer, Rows × Cols values each.
type Stack struct {
	Name string // in the checkpoint; %d stands for the expert if each has a tensor of its own
	Type quant.Type
	Rows int
	Cols int
	At   []Place // by expert
}

// Place is where a matrix begins.
type Place struct {
	Offset int64
	File   int32
}

// RowBytes is the size of one row in bytes.
func (s *Stack) RowBytes() int64 { return int64(s.Type.RowBytes(s.Cols)) }

// Bytes is the size of one expert's matrix.
func (s *Stack) Bytes() int64 { return s.RowBytes() * int64(s.Rows) }

// Count is how many experts there are.
func (l *ExpertLayer) Count() int { return len(l.Stacks[0].At) }

// Bytes is the size of one expert.
func (l *ExpertLayer) Bytes() int64 {
	var n int64
	for i := range l.Stacks {
		n += l.Stacks[i].Bytes()
	}
	return n
}

// ExpertBytes is the size of all experts.
func (m *Model) ExpertBytes() int64 {
	var n int64
	for i := range m.Experts {
		n += int64(m.Experts[i].Count()) * m.Experts[i].Bytes()
	}
	return n
}

// ExpertCycle is the size of the experts that one row uses in all layers.
func (m *Model) ExpertCycle() int64 {
	var n int64
	for i := range m.Experts {
		n += int64(m.Experts[i].Used) * m.Experts[i].Bytes()
	}
	return n
}

// Extent is an aligned range of a file that holds matrices of one expert, and where it goes in a slot.
type Extent struct {
	File       int
	Start, End int64 // aligned; the file may end before
	Need       int64 // bytes from Start that must be there
	Slot       int64 // offset in the slot
}

// ExpertBundle is what fills a slot with an expert, and where its matrices lie then.
type ExpertBundle struct {
	Extents [MaxStacks]Extent
	N       int              // extents
	At      [MaxStacks]int64 // offsets of the stacks in the slot
	Bytes   int64            // of the slot
}

// maxExpertGap is read along between two matrices of an expert.
const maxExpertGap = 16 << 10

// Bundle finds the extents of an expert for reads with the given alignment: close neighbours in a file are
// read together.
func (l *ExpertLayer) Bundle(expert, align int) (b ExpertBundle) {
	order := l.inFile(expert)
	a := int64(align)
	for _, i := range order[:len(l.Stacks)] {
		s := &l.Stacks[i]
		at := s.At[expert]
		last := &b.Extents[max(b.N-1, 0)]
		if gap := at.Offset - last.Start - last.Need; b.N == 0 || int(at.File) != last.File || gap < 0 || gap > maxExpertGap {
			last = &b.Extents[b.N]
			*last = Extent{File: int(at.File), Start: at.Offset &^ (a - 1), Slot: b.Bytes}
			b.N++
		}
		last.Need = at.Offset + s.Bytes() - last.Start
		last.End = (at.Offset + s.Bytes() + a - 1) &^ (a - 1)
		b.At[i] = last.Slot + at.Offset - last.Start
		b.Bytes = last.Slot + last.End - last.Start
	}
	return b
}

// inFile is the stacks in the order of an expert's places.
func (l *ExpertLayer) inFile(expert int) (order [MaxStacks]int) {
	before := func(a, b Place) bool { return a.File < b.File || a.File == b.File && a.Offset < b.Offset }
	for i := range l.Stacks {
		k := i
		for ; k > 0 && before(l.Stacks[i].At[expert], l.Stacks[order[k-1]].At[expert]); k-- {
			order[k] = order[k-1]
		}
		order[k] = i
	}
	return order
}

// ExpertPlacement says where experts lie: each in one of Slots, or, if there are none, on the drive, to
// pass through a ring of tiles of rows whenever they are used.
type ExpertPlacement struct {
	Slots     int
	SlotBytes int64 // a multiple of the page size
	Request   int64 // about the most bytes of a read, a multiple of the alignment

	Tiles     int   // of the ring
	TileBytes int64 // likewise
}

// Memory is the memory of the slots, Staging that of the ring, both in whole pages.
func (p *ExpertPlacement) Memory() int64  { return int64(p.Slots) * p.SlotBytes }
func (p *ExpertPlacement) Staging() int64 { return int64(p.Tiles) * p.TileBytes }

// request is what a reader of slots reads at once.
func (p *ExpertPlacement) request() int64 {
	if p.Slots == 0 {
		return 0
	}
	return min(p.Request, p.SlotBytes)
}

// TileRows is how many rows of a stack a tile of the ring takes.
func (p *ExpertPlacement) TileRows(s *Stack, align int) int {
	return int(min((p.TileBytes-2*int64(align))/s.RowBytes(), int64(s.Rows)))
}

// checkExperts reports experts that the placement has no place for.
func (p *Placement) checkExperts(m *Model) error {
	x := &p.Experts
	if len(m.Experts) == 0 {
		return nil
	}
	if x.Slots < 0 || x.Slots == 0 && x.Tiles < 1 || x.Request < int64(p.Align) || x.Request%int64(p.Align) != 0 {
		return fmt.Errorf("placement: %d slots and %d tiles for experts, requests of %d bytes", x.Slots, x.Tiles, x.Request)
	}
	for i := range m.Experts {
		if err := p.checkExpertLayer(m, &m.Experts[i]); err != nil {
			return fmt.Errorf("placement: experts of layer %d: %w", m.Experts[i].Layer, err)
		}
	}
	return nil
}

func (p *Placement) checkExpertLayer(m *Model, l *ExpertLayer) error {
	if len(l.Stacks) < 1 || len(l.Stacks) > MaxStacks || l.Used < 1 || l.Used > l.Count() || l.Count() != m.Experts[0].Count() {
		return fmt.Errorf("%d of %d are used, each of %d matrices", l.Used, l.Count(), len(l.Stacks))
	}
	for i := range l.Stacks {
		s := &l.Stacks[i]
		if len(s.At) != l.Count() || s.Rows < 1 || s.RowBytes() < 1 {
			return fmt.Errorf("%s has %d matrices of %d rows", s.Name, len(s.At), s.Rows)
		}
		if p.Experts.Slots == 0 && p.Experts.TileRows(s, p.Align) < 1 {
			return fmt.Errorf("a row of %s does not fit a tile of %d bytes", s.Name, p.Experts.TileBytes)
		}
	}
	for e := range l.Count() {
		if n := l.Bundle(e, p.Align).Bytes; p.Experts.Slots > 0 && n > p.Experts.SlotBytes {
			return fmt.Errorf("expert %d needs %d bytes, a slot has %d", e, n, p.Experts.SlotBytes)
		}
	}
	return nil
}
