package plan

import (
	"cmp"
	"slices"

	"github.com/spillway/spillway/internal/layout"
)

const (
	// maxGap is read along when neighbours are merged: padding, or a small vector between them.
	maxGap = 16 << 10
	// gapShare: and at most this part of what is merged.
	gapShare = 128
	// maxHome bounds what neighbours share one mapping, so that memory can be given back in parts.
	maxHome = 32 << 20
	// tileStep is a number of rows that kernels like; tiles are multiples of it where they can be.
	tileStep = 8
)

// placer puts the matrices of a model into units.
type placer struct {
	r     *Request
	sweep []*layout.Matrix
	at    []int   // position in the sweep by matrix ID, or -1
	ahead []int64 // bytes of the sweep before each position
	slot  int64   // bytes of a slot for an expert
}

func newPlacer(r *Request) *placer {
	pl := &placer{r: r, sweep: r.Model.Sweep(), at: make([]int, len(r.Model.Matrices))}
	for i := range pl.at {
		pl.at[i] = -1
	}
	var sum int64
	for i, x := range pl.sweep {
		pl.at[x.ID] = i
		pl.ahead = append(pl.ahead, sum)
		sum += x.Bytes()
	}
	pl.ahead = append(pl.ahead, sum)
	pl.slot = pl.expertSlot()
	return pl
}

func (pl *placer) pages(n int64) int64 { return up(n, pl.r.Page) }

func up(n, to int64) int64 { return (n + to - 1) / to * to }

// base is a placement without units.
func (pl *placer) base() *layout.Placement {
	widest := int64(0)
	for _, b := range pl.r.Model.Bundles {
		for _, x := range b.Matrices {
			if b.Kind == layout.Embedding {
				widest = max(widest, x.RowBytes())
			}
		}
	}
	return &layout.Placement{
		Align: pl.r.Align, Page: pl.r.Page, ReadScratch: pl.r.Model.ReadScratch,
		LookupBytes: pl.pages(max(minLookup, widest+2*int64(pl.r.Align))),
	}
}

// resident pins every swept matrix, and the embeddings too if asked.
func (pl *placer) resident(embedding bool) *layout.Placement {
	p := pl.base()
	var parts []layout.Part
	for _, x := range pl.sweep {
		parts = append(parts, whole(x))
	}
	if embedding {
		parts = append(parts, pl.embeddings()...)
	}
	p.Units = pl.homes(parts)
	p.Request = up(min(max(pl.ahead[len(pl.sweep)]/maxReaders, 1<<20), maxSlot), int64(p.Align))
	p.Readers = int(min(max(pl.ahead[len(pl.sweep)]/p.Request, 1), maxReaders))
	pl.slots(p, pl.allExperts())
	p.Sort(pl.r.Model)
	return p
}

func whole(x *layout.Matrix) layout.Part { return layout.Part{Matrix: x, Rows: x.Rows} }

// embeddings are those that are not swept as well.
func (pl *placer) embeddings() []layout.Part {
	var parts []layout.Part
	for _, b := range pl.r.Model.Bundles {
		for _, x := range b.Matrices {
			if b.Kind == layout.Embedding && pl.at[x.ID] < 0 {
				parts = append(parts, whole(x))
			}
		}
	}
	return parts
}

// homes makes pinned units of parts: close neighbours share one. A part is never divided, so that a
// matrix in memory is one tile.
func (pl *placer) homes(parts []layout.Part) []layout.Unit {
	slices.SortStableFunc(parts, inFile)
	var units []layout.Unit
	for _, part := range parts {
		if n := len(units); n > 0 && near(&units[n-1], part, maxGap/4) && units[n-1].Bytes < maxHome {
			add(&units[n-1], part)
			continue
		}
		units = append(units, unitOf(part))
		units[len(units)-1].Pinned = true
	}
	return units
}

func inFile(a, b layout.Part) int {
	return cmp.Or(cmp.Compare(a.Matrix.File, b.Matrix.File), cmp.Compare(a.Offset(), b.Offset()))
}

func unitOf(part layout.Part) layout.Unit {
	return layout.Unit{File: part.Matrix.File, Offset: part.Offset(), Bytes: part.Bytes(), Parts: []layout.Part{part}}
}

// near reports whether part follows u in its file with a gap of at most so many bytes.
func near(u *layout.Unit, part layout.Part, gap int64) bool {
	space := part.Offset() - u.Offset - u.Bytes
	return part.Matrix.File == u.File && space >= 0 && space <= gap
}

func add(u *layout.Unit, part layout.Part) {
	u.Bytes = part.Offset() + part.Bytes() - u.Offset
	u.Parts = append(u.Parts, part)
}

// streamed is a placement with the smallest ring grown by at most extra bytes, and with up to pin
// bytes of mappings.
func (pl *placer) streamed(extra, pin int64) *layout.Placement {
	p := pl.base()
	pl.ring(p, extra)
	pl.tiles(p, extra)
	payload := p.SlotBytes - 2*int64(p.Align)
	p.Request = up(payload, int64(p.Align))
	items := pl.items(p, payload)
	if pin > 0 {
		pl.pin(items, pin, p)
	}
	p.Units = pl.units(items)
	p.Sort(pl.r.Model)
	return p
}

// ring chooses slots and readers: the longest requests for which there are enough slots.
func (pl *placer) ring(p *layout.Placement, extra int64) {
	var row, most int64
	for _, x := range pl.sweep {
		row, most = max(row, x.RowBytes()), max(most, x.Bytes())
	}
	slack := 2 * int64(p.Align) // a request starts and ends anywhere
	p.SlotBytes = pl.pages(max(row+slack, min(most+slack, minSlot)))
	p.Slots, p.Readers = minSlots, min(minSlots, maxReaders)
	room := pl.cost(p) + extra
	full, readers := fullSlots, maxReaders
	if pl.r.Model.Exchanged { // the longest, even if they are few
		full, readers = wideReaders+2, wideReaders
	}
	for size := min(room/int64(full)/slotStep*slotStep, maxSlot); size > p.SlotBytes; size -= slotStep {
		q := *p
		q.SlotBytes, q.Readers = size, readers
		q.Slots = int((room - (pl.cost(&q) - int64(q.Slots)*size)) / size)
		q.Readers = min(q.Slots, readers)
		if q.Slots >= full {
			*p = q
			return
		}
	}
	// Not enough for longer requests: more of the short ones.
	for p.Slots < fullSlots {
		q := *p
		q.Slots++
		q.Readers = min(q.Slots, maxReaders)
		if pl.cost(&q) > room {
			return
		}
		*p = q
	}
}

// reader is what each reader adds to the runtime pool.
func (pl *placer) reader() int64 { return readerStack + pl.r.ReadCache }

// cost is the memory of ring, look-up buffers and readers.
func (pl *placer) cost(p *layout.Placement) int64 {
	return p.StagingMemory() + int64(p.Readers)*pl.reader()
}

// item is what is pinned or streamed together: a matrix, in steps of cut rows, or a few small
// neighbours, as a whole.
type item struct {
	unit   layout.Unit
	cut    int // rows of a step; 0: only the whole
	pinned int // rows of a matrix from its first; of neighbours: 1 or 0
}

func (it *item) matrix() *layout.Matrix { return it.unit.Parts[0].Matrix }

func (it *item) pinnedBytes() int64 {
	if it.cut == 0 {
		return int64(it.pinned) * it.unit.Bytes
	}
	return int64(it.pinned) * it.matrix().RowBytes()
}

// items are in order of first use.
func (pl *placer) items(p *layout.Placement, payload int64) []item {
	merged := pl.merge(payload, int64(max(p.Slots/3, 1))*payload)
	// Every merged unit may hold a slot for long; half of the ring has to stay for what is next.
	for limit := len(pl.sweep); ; limit /= 2 {
		items := pl.itemsOf(merged, limit, payload)
		q := *p
		q.Units = pl.units(items)
		if limit <= 1 || q.Held(pl.r.Model) <= max(p.Slots/2, 1) {
			return items
		}
	}
}

// itemsOf keeps merged units whose use spans at most limit matrices and splits the others.
func (pl *placer) itemsOf(merged []layout.Unit, limit int, payload int64) []item {
	var items []item
	for _, u := range merged {
		if first, last := pl.span(u.Parts); len(u.Parts) > 1 && last-first < limit {
			items = append(items, item{unit: u})
			continue
		}
		for _, part := range u.Parts {
			items = append(items, item{unit: unitOf(part), cut: cutRows(part.Matrix, payload)})
		}
	}
	slices.SortStableFunc(items, func(a, b item) int {
		x, _ := pl.span(a.unit.Parts)
		y, _ := pl.span(b.unit.Parts)
		return cmp.Compare(x, y)
	})
	return items
}

// cutRows divides a matrix into equal tiles that fit a payload.
func cutRows(x *layout.Matrix, payload int64) int {
	most := int(min(payload/x.RowBytes(), int64(x.Rows)))
	tiles := (x.Rows + most - 1) / most
	rows := (x.Rows + tiles - 1) / tiles
	if even := (rows + tileStep - 1) / tileStep * tileStep; even <= most {
		return even
	}
	if most > tileStep {
		return most / tileStep * tileStep
	}
	return most
}

// merge joins file neighbours that fit a payload together if little of the sweep lies between the
// first and the last use: they occupy their slot for so long.
func (pl *placer) merge(payload, reach int64) []layout.Unit {
	parts := make([]layout.Part, len(pl.sweep))
	for i, x := range pl.sweep {
		parts[i] = whole(x)
	}
	slices.SortStableFunc(parts, inFile)
	var units []layout.Unit
	for _, part := range parts {
		if n := len(units); n > 0 && pl.mergeable(&units[n-1], part, payload, reach) {
			add(&units[n-1], part)
			continue
		}
		units = append(units, unitOf(part))
	}
	return units
}

func (pl *placer) mergeable(u *layout.Unit, part layout.Part, payload, reach int64) bool {
	end := part.Offset() + part.Bytes()
	if end-u.Offset > payload || !near(u, part, min(maxGap, (end-u.Offset)/gapShare)) {
		return false
	}
	first, last := pl.span(append(slices.Clip(u.Parts), part))
	return pl.ahead[last+1]-pl.ahead[first] <= reach
}

func (pl *placer) span(parts []layout.Part) (first, last int) {
	first = len(pl.sweep)
	for _, part := range parts {
		first, last = min(first, pl.at[part.Matrix.ID]), max(last, pl.at[part.Matrix.ID])
	}
	return first, last
}

// units makes the units of items.
func (pl *placer) units(items []item) []layout.Unit {
	units := pl.homes(pinnedParts(items))
	for i := range items {
		it := &items[i]
		switch {
		case it.cut == 0 && it.pinned == 0:
			units = append(units, it.unit)
		case it.cut > 0 && it.pinned < it.matrix().Rows:
			x := it.matrix()
			u := unitOf(layout.Part{Matrix: x, Row0: it.pinned, Rows: x.Rows - it.pinned})
			if u.Parts[0].Rows > it.cut {
				u.TileRows = it.cut
			}
			units = append(units, u)
		}
	}
	return units
}

func pinnedParts(items []item) []layout.Part {
	var parts []layout.Part
	for i := range items {
		it := &items[i]
		switch {
		case it.pinned == 0:
		case it.cut == 0:
			parts = append(parts, it.unit.Parts...)
		default:
			parts = append(parts, layout.Part{Matrix: it.matrix(), Rows: it.pinned})
		}
	}
	return parts
}
