package layout

import (
	"cmp"
	"fmt"
	"slices"
)

// Placement says where every byte of the swept matrices lies while a model runs: in a permanent
// mapping (pinned), or on the drive, to be read through a ring of slots in every sweep (streamed).
// The planner makes it, the pager carries it out.
type Placement struct {
	Units []Unit // in order of first use; pinned embeddings, which no sweep uses, come last

	Align     int   // every request starts and ends at a multiple of it, a power of two
	Page      int64 // memory comes in multiples of it
	Slots     int   // slots of the ring; 0 if nothing is streamed
	SlotBytes int64 // size of a slot, a multiple of the page size
	Request   int64 // bytes of a request that fills a pinned unit, a multiple of Align
	Readers   int   // requests in flight at once

	LookupBytes int64 // size of a buffer for one row of an embedding, a multiple of the page size
	ReadScratch int64 // Model.ReadScratch

	Experts ExpertPlacement
}

// Unit is a contiguous range of a file with one home.
type Unit struct {
	Pinned bool
	File   int
	Offset int64
	Bytes  int64
	// TileRows is the rows of each request if the unit is streamed in several; it then has one part.
	// 0: one request, one slot.
	TileRows int
	Parts    []Part // in file order, without overlaps
}

// Part is consecutive rows of a matrix.
type Part struct {
	Matrix *Matrix
	Row0   int
	Rows   int
}

// Offset is where the part starts in its file.
func (p Part) Offset() int64 { return p.Matrix.Offset + int64(p.Row0)*p.Matrix.RowBytes() }

// Bytes is the size of the part.
func (p Part) Bytes() int64 { return int64(p.Rows) * p.Matrix.RowBytes() }

// Tiles is the number of requests that a streamed unit takes.
func (u *Unit) Tiles() int {
	if u.TileRows == 0 {
		return 1
	}
	return (u.Parts[0].Rows + u.TileRows - 1) / u.TileRows
}

// Tile is the file range of the i-th request of a streamed unit.
func (u *Unit) Tile(i int) (offset, bytes int64) {
	if u.TileRows == 0 {
		return u.Offset, u.Bytes
	}
	p := u.Parts[0]
	row := i * u.TileRows
	size := p.Matrix.RowBytes()
	return u.Offset + int64(row)*size, int64(min(u.TileRows, p.Rows-row)) * size
}

// Enclosing is the smallest aligned range around the n bytes at offset.
func (p *Placement) Enclosing(offset, n int64) (start, end int64) {
	a := int64(p.Align)
	return offset &^ (a - 1), (offset + n + a - 1) &^ (a - 1)
}

// ReadBytes is what one sweep reads from the drive, alignment and gaps between merged neighbours
// included (up to one alignment too much at the end of a file).
func (p *Placement) ReadBytes() int64 {
	var total int64
	for i := range p.Units {
		u := &p.Units[i]
		if u.Pinned {
			continue
		}
		for t := range u.Tiles() {
			start, end := p.Enclosing(u.Tile(t))
			total += end - start
		}
	}
	return total
}

// PinnedMemory is the memory of the pinned units, each in whole pages.
func (p *Placement) PinnedMemory() int64 {
	var total int64
	for i := range p.Units {
		if p.Units[i].Pinned {
			total += p.Home(&p.Units[i])
		}
	}
	return total
}

// Home is the memory of a pinned unit.
func (p *Placement) Home(u *Unit) int64 {
	start, end := p.Enclosing(u.Offset, u.Bytes)
	return p.Pages(end - start)
}

// Pages rounds n bytes up to whole pages.
func (p *Placement) Pages(n int64) int64 { return (n + p.Page - 1) / p.Page * p.Page }

// StagingMemory is the memory of the ring, and of look-up buffers and scratch, one for each reader and
// one for whoever asks.
func (p *Placement) StagingMemory() int64 {
	return p.Pages(int64(p.Slots)*p.SlotBytes) + p.Pages(int64(p.Readers+1)*(p.LookupBytes+p.ScratchBytes())) +
		p.Pages(p.Experts.Staging())
}

// ScratchBytes is the scratch of a reader: what files need at least, and as much as it reads at once,
// within bounds.
func (p *Placement) ScratchBytes() int64 {
	const most = 1 << 20
	if p.ReadScratch == 0 {
		return 0
	}
	return p.Pages(p.ReadScratch + min(max(p.SlotBytes, p.Request, p.Experts.TileBytes, p.Experts.request()), most))
}

// Swept returns the bytes of the swept matrices that are pinned and that are streamed.
func (p *Placement) Swept(m *Model) (pinned, streamed int64) {
	swept := make([]bool, len(m.Matrices))
	for _, x := range m.Sweep() {
		swept[x.ID] = true
	}
	for _, u := range p.Units {
		for _, part := range u.Parts {
			switch {
			case !swept[part.Matrix.ID]:
			case u.Pinned:
				pinned += part.Bytes()
			default:
				streamed += part.Bytes()
			}
		}
	}
	return pinned, streamed
}

// Sweep returns the matrices in the order in which a sweep uses them.
func (m *Model) Sweep() []*Matrix {
	var all []*Matrix
	for _, b := range m.Bundles {
		if b.Kind != Embedding {
			all = append(all, b.Matrices...)
		}
	}
	return all
}

// Held is the most slots that a sweep occupies at once while it waits for nothing but its next tile:
// a ring of fewer can never deliver. A unit is held from its first use to its last; one that is cut
// into tiles holds one slot at a time.
func (p *Placement) Held(m *Model) int {
	position := positions(m)
	n := len(m.Sweep())
	change := make([]int, n+1) // slots taken less slots freed before position i
	for i := range p.Units {
		u := &p.Units[i]
		first, last := u.span(position)
		if u.Pinned || first < 0 {
			continue
		}
		change[first]++
		change[last+1]--
	}
	held, most := 0, 0
	for _, c := range change {
		held += c
		most = max(most, held)
	}
	return most
}

// positions maps a matrix's ID to its place in the sweep, or -1.
func positions(m *Model) []int {
	at := make([]int, len(m.Matrices))
	for i := range at {
		at[i] = -1
	}
	for i, x := range m.Sweep() {
		at[x.ID] = i
	}
	return at
}

// span is the first and the last position in the sweep that uses the unit; -1 if none does.
func (u *Unit) span(position []int) (first, last int) {
	first, last = -1, -1
	for _, p := range u.Parts {
		at := position[p.Matrix.ID]
		if at < 0 {
			continue
		}
		if first < 0 || at < first {
			first = at
		}
		last = max(last, at)
	}
	return first, last
}

// Sort puts the units in order of first use.
func (p *Placement) Sort(m *Model) {
	position := positions(m)
	slices.SortStableFunc(p.Units, func(a, b Unit) int { return a.use(position).compare(b.use(position)) })
}

// use is a place in the sweep: the matrix, then the row.
type use struct{ at, row int }

func (a use) compare(b use) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.row, b.row)) }

// use is the unit's first use; behind all others if no sweep uses it.
func (u *Unit) use(position []int) use {
	first, _ := u.span(position)
	for _, p := range u.Parts {
		if first >= 0 && position[p.Matrix.ID] == first {
			return use{first, p.Row0}
		}
	}
	return use{at: len(position)}
}

// Check reports whether the pager can carry out the placement: every row of every swept matrix has
// exactly one home, every request fits its slot, units come in order of first use, and the ring can
// never deadlock.
func (p *Placement) Check(m *Model) error {
	if p.Align <= 0 || p.Align&(p.Align-1) != 0 {
		return fmt.Errorf("placement: alignment %d is not a power of two", p.Align)
	}
	if p.Page < 1 || p.LookupBytes < int64(p.Align) || p.Slots > 0 && p.SlotBytes < int64(p.Align) {
		return fmt.Errorf("placement: pages of %d bytes, slots of %d, look-ups of %d", p.Page, p.SlotBytes, p.LookupBytes)
	}
	if p.Readers < 1 || p.Request < int64(p.Align) || p.Request%int64(p.Align) != 0 {
		return fmt.Errorf("placement: %d readers, requests of %d bytes", p.Readers, p.Request)
	}
	if err := m.CheckSweep(); err != nil {
		return err
	}
	if err := p.checkUnits(positions(m)); err != nil {
		return err
	}
	if err := p.checkExperts(m); err != nil {
		return err
	}
	if held := p.Held(m); held > p.Slots {
		return fmt.Errorf("placement: a sweep holds %d slots at once, the ring has %d", held, p.Slots)
	}
	return p.checkCover(m)
}

// CheckSweep reports matrices that a sweep cannot use: unknown ones, and one that comes twice.
func (m *Model) CheckSweep() error {
	seen := make([]bool, len(m.Matrices))
	for _, x := range m.Sweep() {
		if x.ID < 0 || x.ID >= len(seen) || m.Matrices[x.ID] != x {
			return fmt.Errorf("placement: matrix %s is not number %d of its model", x.Name, x.ID)
		}
		if seen[x.ID] {
			return fmt.Errorf("placement: matrix %s comes twice in a sweep", x.Name)
		}
		seen[x.ID] = true
	}
	return nil
}

func (p *Placement) checkUnits(position []int) error {
	previous := use{at: -1}
	for i := range p.Units {
		u := &p.Units[i]
		if err := p.checkUnit(u); err != nil {
			return fmt.Errorf("placement: unit %d: %w", i, err)
		}
		first := u.use(position)
		if first.at == len(position) && !u.Pinned {
			return fmt.Errorf("placement: unit %d is streamed, but no sweep uses it", i)
		}
		if first.compare(previous) < 0 {
			return fmt.Errorf("placement: unit %d comes after its first use", i)
		}
		previous = first
	}
	return nil
}

func (p *Placement) checkUnit(u *Unit) error {
	end := u.Offset
	for _, part := range u.Parts {
		x := part.Matrix
		switch {
		case x.File != u.File || part.Offset() < end:
			return fmt.Errorf("rows of %s are out of place", x.Name)
		case part.Rows < 1 || part.Row0 < 0 || part.Row0 > x.Rows-part.Rows:
			return fmt.Errorf("rows %d + %d of %s, which has %d", part.Row0, part.Rows, x.Name, x.Rows)
		}
		end = part.Offset() + part.Bytes()
	}
	switch {
	case len(u.Parts) == 0 || u.Parts[0].Offset() != u.Offset || end != u.Offset+u.Bytes:
		return fmt.Errorf("its parts do not fill %d bytes at %d", u.Bytes, u.Offset)
	case u.TileRows < 0 || u.TileRows > 0 && (u.Pinned || len(u.Parts) != 1):
		return fmt.Errorf("it cannot be cut into tiles of %d rows", u.TileRows)
	case u.Pinned:
		return nil
	}
	for t := range u.Tiles() {
		if start, end := p.Enclosing(u.Tile(t)); end-start > p.SlotBytes {
			return fmt.Errorf("a request of %d bytes for a slot of %d", end-start, p.SlotBytes)
		}
	}
	return nil
}

// checkCover walks each swept matrix's parts in unit order, which must be rising row order.
func (p *Placement) checkCover(m *Model) error {
	next := make([]int, len(m.Matrices))
	for _, part := range p.byRow() {
		if part.Row0 != next[part.Matrix.ID] {
			return fmt.Errorf("placement: row %d of %s has no single home", next[part.Matrix.ID], part.Matrix.Name)
		}
		next[part.Matrix.ID] += part.Rows
	}
	for _, x := range m.Sweep() {
		if next[x.ID] != x.Rows {
			return fmt.Errorf("placement: row %d of %s has no home", next[x.ID], x.Name)
		}
	}
	return nil
}

func (p *Placement) byRow() []Part {
	var all []Part
	for _, u := range p.Units {
		all = append(all, u.Parts...)
	}
	slices.SortStableFunc(all, func(a, b Part) int {
		return cmp.Or(cmp.Compare(a.Matrix.ID, b.Matrix.ID), cmp.Compare(a.Row0, b.Row0))
	})
	return all
}
