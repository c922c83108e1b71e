package plan

import "github.com/spillway/spillway/internal/layout"

// shares is the resolution of the pinned part.
const shares = 1 << 20

// pin pins as much as fits into limit bytes of mappings, spread evenly over the sweep.
func (pl *placer) pin(items []item, limit int64, p *layout.Placement) {
	lo, hi := int64(0), int64(shares)
	for lo < hi {
		mid := (lo + hi + 1) / 2
		spread(items, mid)
		if pl.memory(items, p) <= limit {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	spread(items, lo)
	pl.top(items, limit, p)
}

// spread pins share/shares of the bytes: at every place of the sweep the sum so far is as near to
// that share as the items' steps allow (error diffusion), so that the reader neither idles nor falls
// behind.
func spread(items []item, share int64) {
	var passed, pinned int64
	for i := range items {
		it := &items[i]
		passed += it.unit.Bytes
		want := max(mulDiv(passed, share)-pinned, 0)
		if it.cut == 0 {
			it.pinned = int((want + it.unit.Bytes/2) / it.unit.Bytes)
			it.pinned = min(it.pinned, 1)
		} else {
			step := int64(it.cut) * it.matrix().RowBytes()
			it.pinned = int(min((want+step/2)/step*int64(it.cut), int64(it.matrix().Rows)))
		}
		pinned += it.pinnedBytes()
	}
}

// mulDiv is n·share/shares without overflow for every file size.
func mulDiv(n, share int64) int64 { return n/shares*share + n%shares*share/shares }

func (pl *placer) memory(items []item, p *layout.Placement) int64 {
	q := *p
	q.Units = pl.homes(pinnedParts(items))
	return q.PinnedMemory()
}

// top uses what is left for up to a step more of one matrix after the other.
func (pl *placer) top(items []item, limit int64, p *layout.Placement) {
	left := limit - pl.memory(items, p)
	for i := range items {
		it := &items[i]
		if it.cut == 0 {
			continue
		}
		size := it.matrix().RowBytes()
		// A mapping of its own, or a page border, can cost two pages.
		rows := min((left-2*p.Page-2*int64(p.Align))/size, int64(it.matrix().Rows-it.pinned), int64(it.cut))
		if rows <= 0 {
			continue
		}
		before := it.pinned
		it.pinned += int(rows)
		if now := limit - pl.memory(items, p); now >= 0 {
			left = now
		} else {
			it.pinned = before
		}
	}
}
