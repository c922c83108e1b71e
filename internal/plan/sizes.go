package plan

import (
	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/machine"
)

const (
	maxAlign = 64 << 10

	// The smallest ring is one huge page, or slots of one row if that is larger: reading into small
	// pages reaches half of a fast drive's speed.
	minSlots = 8
	minSlot  = 256 << 10
	maxSlot  = 4 << 20 // larger requests gain nothing on the drives that we measured
	slotStep = 64 << 10
	// More readers add no speed, and the look-up of an embedding waits behind all of their requests
	// while the ring stands full.
	maxReaders = 8
	// fullSlots are twice the readers: tiles are used in order, so that those behind a slow read wait in
	// their slots.
	fullSlots = 16

	minLookup   = 16 << 10
	readerStack = 40 << 10 // a thread that blocks in a read: kernel stack, its own, the goroutine's

	maxRing   = 48 << 20 // reaches the drive's speed
	ringShare = 28       // a ring takes at most this part of what the least leaves,
	wideShare = 3        // or this, where only long tiles are read well,
	wideRing  = 96 << 20 // up to this;
	// each tile then takes many requests of its reader, so that more readers help less than longer tiles.
	wideReaders = 4
	rowShare    = 64 // so does the scratch of a longer prefill chunk
	// A cache that sequences share takes up to this part of what the least leaves where weights are streamed:
	// who shares a sweep reads nothing for it. Where they are in memory it may take half of what they leave.
	cacheShare    = 4
	residentCache = 2

	firstRows    = 16      // of the chunk at the least budget,
	firstScratch = 4 << 20 // or fewer if they need more than this

	tableShare = 512       // page tables: 8 bytes a page of 4 KiB
	tableRest  = 128 << 10 // and tables that are not full
)

// sizes are the parts of a plan that the budget does not change.
type sizes struct {
	r       *Request
	kv      int64
	kvMost  int64 // that a shared cache can use
	vectors int64
	rowMin  int // of a chunk
	rowMax  int
	placer  *placer
}

func newSizes(r *Request) *sizes {
	s := &sizes{r: r}
	blocks := (int64(r.Context) + int64(r.KVBlockTokens) - 1) / int64(r.KVBlockTokens)
	s.kv = blocks * int64(r.KVBlockTokens) * r.KVTokenBytes
	s.kvMost = s.kv * int64(r.Sequences)
	if !r.Shared {
		s.kv = s.kvMost
	}
	s.placer = newPlacer(r)
	s.vectors = s.placer.pages(r.Model.VectorBytes())
	s.rowMin = firstRows
	if n := r.Model.ScratchPerRow; n > 0 {
		s.rowMin = int(min(firstRows, firstScratch/n))
	}
	s.rowMax = min(r.MaxChunk, max(r.Context, 1)*r.Sequences)
	s.rowMin = max(min(s.rowMin, s.rowMax), r.Sequences, 1)
	if r.Shared { // prompts go on beside as many answers
		s.rowMin = r.Sequences + firstRows
	}
	s.rowMax = max(s.rowMax, s.rowMin)
	return s
}

// activation is the scratch for chunks of so many rows.
func (s *sizes) activation(rows int) int64 {
	m := s.r.Model
	return s.placer.pages(s.r.FixedScratch + int64(rows)*m.ScratchPerRow + int64(min(rows, s.r.HeadRows))*m.ScratchPerHeadRow)
}

// growCache gives a shared cache up to n bytes more, in whole blocks, and returns what it took.
func (s *sizes) growCache(n int64) int64 {
	block := max(int64(s.r.KVBlockTokens)*s.r.KVTokenBytes, 1)
	n = max(min(n, s.kvMost-s.kv), 0) / block * block
	s.kv += n
	return n
}

// tables is what page tables may take under a budget.
func tables(limit int64) int64 { return limit/tableShare + tableRest }

// fill writes the pools of a plan for a budget and returns what is left.
func (s *sizes) fill(p *Plan, limit int64) int64 {
	p.model = s.r.Model
	p.Pools[budget.Weights] = p.Placement.PinnedMemory() + s.vectors + p.Placement.Experts.Memory()
	p.Pools[budget.Staging] = p.Placement.StagingMemory()
	p.Pools[budget.KV] = s.kv
	p.Pools[budget.Activation] = s.activation(p.Chunk)
	p.Pools[budget.Runtime] = s.r.Runtime + tables(limit) + int64(p.Placement.Readers)*s.placer.reader()
	for _, n := range p.Pools {
		limit -= n
	}
	return limit
}

// trim plans page tables for what is used alone, not for the whole budget.
func (s *sizes) trim(p *Plan) {
	var used int64
	for _, n := range p.Pools {
		used += n
	}
	p.Pools[budget.Runtime] += tables(used) - tables(p.Budget)
}

// smallest is the plan for the least budget: the smallest ring, or everything in memory if that is
// smaller still.
func (s *sizes) smallest() *Plan {
	p := &Plan{Chunk: s.rowMin, Placement: s.placer.streamed(0, 0)}
	if all := s.placer.resident(false); all.PinnedMemory()+all.Experts.Memory()+s.placer.cost(all) <= s.placer.cost(p.Placement) {
		p.Placement = all
	}
	// Page tables grow with the budget, so that two steps come close and a third settles it.
	for range 3 {
		p.Least = (p.Least - s.fill(p, p.Least) + machine.MiB - 1) / machine.MiB * machine.MiB
	}
	p.Least = max(p.Least, (s.r.Start+machine.MiB-1)/machine.MiB*machine.MiB)
	s.fill(p, p.Least)
	return p
}

// resident keeps every swept matrix in memory, if they fit; then come longer chunks, then the
// embedding.
func (s *sizes) resident(p *Plan) bool {
	try := *p
	try.Chunk, try.Placement = s.rowMin, s.placer.resident(false)
	left := s.fill(&try, p.Budget)
	if left < 0 {
		return false
	}
	try.Resident = true
	left -= s.growCache(left / residentCache)
	try.Chunk = s.rows(s.activation(s.rowMin) + left)
	all := try
	all.Placement = s.placer.resident(true)
	if s.fill(&all, p.Budget) >= 0 {
		try = all
	}
	s.fill(&try, p.Budget)
	try.EmbeddingPinned = embeddingPinned(s.r.Model, try.Placement)
	*p = try
	return true
}

// rows is the longest chunk whose scratch fits in so many bytes.
func (s *sizes) rows(bytes int64) int {
	lo, hi := s.rowMin, s.rowMax
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if s.activation(mid) <= bytes {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	if lo > firstRows && lo < s.rowMax {
		lo = max(lo/firstRows*firstRows, s.rowMin)
	}
	return lo
}

// stream pins what fits beside a ring that reaches the drive's speed and a chunk that keeps the cores
// busy.
func (s *sizes) stream(p *Plan) {
	spare := p.Budget - p.Least
	spare -= s.growCache(spare / cacheShare)
	share := int64(rowShare)
	if len(s.r.Model.Experts) > 0 {
		share = expertRowShare
	}
	p.Chunk = s.rows(s.activation(s.rowMin) + spare/share)
	if len(s.r.Model.Experts) > 0 && s.streamExperts(p) {
		return
	}
	extra := min(spare/ringShare, maxRing)
	if s.r.Model.Exchanged {
		extra = min(spare/wideShare, wideRing)
	}
	p.Placement = s.placer.streamed(extra, 0)
	if left := s.fill(p, p.Budget); left > 0 {
		p.Placement = s.placer.streamed(extra, left)
	}
	s.fill(p, p.Budget)
	p.EmbeddingPinned = embeddingPinned(s.r.Model, p.Placement)
}

// embeddingPinned reports whether every row of the embedding is in memory.
func embeddingPinned(m *layout.Model, p *layout.Placement) bool {
	rows := make([]int, len(m.Matrices))
	for _, u := range p.Units {
		for _, part := range u.Parts {
			if u.Pinned {
				rows[part.Matrix.ID] += part.Rows
			}
		}
	}
	found := false
	for _, b := range m.Bundles {
		for _, x := range b.Matrices {
			if b.Kind == layout.Embedding {
				found = true
				if rows[x.ID] != x.Rows {
					return false
				}
			}
		}
	}
	return found
}
