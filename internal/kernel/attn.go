package kernel

const (
	attnTile  = 64            // key positions of a tile
	attnGroup = 16            // of them that lie in one piece of the cache
	attnSpan  = 16 * attnTile // key positions of a span
	attnLines = 64            // query vectors that share a widened key tile, unless one row has more
	splitRows = 8             // segments of at most so many rows are split into spans
)

// KVBlocks is one layer of one sequence's cache. Block b holds the positions from b·Tokens on; K[b]
// is [KVHeads][Tokens][KDim] and V[b] [KVHeads][Tokens][VDim] values of Type, little-endian, without
// gaps; a head has a multiple of Type.BlockValues values. Blocks that no row of a segment sees may be nil.
type KVBlocks struct {
	Type    CacheType
	Tokens  int // positions in a block: 16, 32 or 64
	KVHeads int
	KDim    int
	VDim    int
	K, V    [][]byte
}

// MaskKind says which of the positions before and after it a row sees.
type MaskKind uint8

const (
	// Causal rows see themselves and what is before them.
	Causal MaskKind = iota
	// Bidirectional rows see every position up to the segment's last row.
	Bidirectional
	// Spans is Causal, and rows inside one of Segment.Spans see all of it besides.
	Spans
)

// Span is the positions [Start, End), such as the tokens of one image.
type Span struct{ Start, End int }

// Segment is rows of one sequence: row i is at position First+i, and its own key and value are in KV
// already.
type Segment struct {
	Q         []float32 // Rows × Heads × KDim, row i at i·QStride
	QStride   int
	Out       []float32 // Rows × Heads × VDim, row i at i·OutStride
	OutStride int
	Rows      int
	First     int
	KV        KVBlocks
	Mask      MaskKind
	Spans     []Span // for the mask Spans: rising, disjoint, none cut by the segment's end
}

// Attention is softmax(q·k · Scale) · v over a key-value cache, as docs/numerics.md defines it. Heads
// query heads share KV.KVHeads key heads in equal groups (grouped-query attention, Ainslie et al.,
// 2023). With a Window of w, a row sees itself and the w−1 positions before it; a Bidirectional row
// also the w−1 after it. 0 means no window.
type Attention struct {
	Heads  int
	Scale  float32
	Window int
	Sinks  []float32 // a score for each head that joins every row as a key without a value; nil for none
}

// visible returns the range of positions that the row at position p sees.
func (a Attention) visible(s *Segment, p int) (lo, hi int) {
	end := s.First + s.Rows
	hi = p + 1
	if s.Mask == Bidirectional {
		hi = end
	}
	if a.Window > 0 {
		lo = max(0, p+1-a.Window)
		hi = min(hi, p+a.Window)
	}
	if s.Mask == Spans {
		for _, x := range s.Spans {
			if x.Start <= p && p < x.End {
				lo, hi = min(lo, x.Start), max(hi, min(x.End, end))
			}
		}
	}
	return lo, hi
}

// Run computes attention for all segments of a batch. scratch has at least AttentionScratch bytes for
// the shape, the pool's threads and the longest segment. The result depends neither on the threads
// nor on how the rows of a sequence are cut into segments.
func (a Attention) Run(p *Pool, scratch []byte, segs []Segment) {
	if len(segs) == 0 {
		return
	}
	kv := &segs[0].KV
	shape := AttentionShape{Heads: a.Heads, KVHeads: kv.KVHeads, KDim: kv.KDim, VDim: kv.VDim}
	plan := attnPlans.get()
	plan.start(a, shape, p, scratch)
	for i := range segs {
		plan.add(&segs[i])
	}
	plan.flush()
	plan.end()
	attnPlans.put(plan)
}

// AttentionShape is what the scratch space of attention depends on.
type AttentionShape struct{ Heads, KVHeads, KDim, VDim int }

// AttentionScratch returns the least bytes of scratch for Attention.Run: what each thread works in,
// and the stored partial results, one for each span of 1024 positions and head, of one row of a
// sequence with up to context positions. With more than the least, more rows are in flight at once.
func AttentionScratch(s AttentionShape, threads, context int) int {
	spans := (context + attnSpan - 1) / attnSpan
	return 64 + 4*(threads*s.workerFloats()+spans*s.Heads*s.partialFloats())
}

func roundUp8(n int) int { return (n + 7) &^ 7 }

func roundUp16(n int) int { return (n + 15) &^ 15 }

// groupRows is the rows whose query vectors share a widened key tile.
func (s AttentionShape) groupRows() int { return max(1, attnLines*s.KVHeads/s.Heads) }

func (s AttentionShape) lines() int { return s.groupRows() * (s.Heads / s.KVHeads) }

// partialFloats is the size of one stored partial: maximum, sum, and the value vector.
func (s AttentionShape) partialFloats() int { return 8 + roundUp16(s.VDim) }
