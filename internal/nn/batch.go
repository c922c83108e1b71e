package nn

import "github.com/spillway/spillway/internal/kernel"

// CacheLayer is what one layer adds to the key-value cache per token: KVHeads × (KDim + VDim) values.
type CacheLayer struct{ KVHeads, KDim, VDim int }

// Cache is one sequence's key-value cache, as layers see it. Block b of a layer holds the positions
// from b·tokens on: keys [KVHeads][tokens][KDim] and values [KVHeads][tokens][VDim].
type Cache interface {
	// Format returns the type of the cached values and the tokens of a block: 16, 32 or 64.
	Format() (t kernel.CacheType, tokens int)
	// View appends the layer's key and value blocks to k and v.
	View(layer int, k, v [][]byte) ([][]byte, [][]byte)
}

// Segment is consecutive rows of one sequence. Prefill chunks and single decode rows are the same.
type Segment struct {
	Cache Cache
	First int     // position of row 0
	IDs   []int32 // token of each row
	// Embeds replaces the token embeddings (images): N × Hidden values. IDs is then nil.
	Embeds []float32
	N      int // rows of Embeds
	// Positions replaces First+i as the rotary position of each row (time, height, width);
	// nil for text.
	Positions [][3]int32
	Mask      kernel.MaskKind
	Spans     []kernel.Span // for the mask kernel.Spans
	// Head lists the rows of the segment, in rising order, whose logits are wanted,
	Head []int
	// or with Hidden their hidden states after the last norm.
	Hidden bool
	// RopeLength is the length that length-dependent rope scalings use: prompt + the request's own
	// max_tokens, or the model's trained limit (docs/numerics.md).
	RopeLength int
	// Prompt says that the rows are of a prompt, not of an answer. No value depends on it.
	Prompt bool
	// Adapter adds low-rank updates to the products of this segment; nil for none.
	Adapter *Adapter

	// Err is set by Forward when this segment alone failed (a value that the cache cannot hold).
	Err error
}

// Rows is the number of rows of the segment.
func (s *Segment) Rows() int {
	if s.Embeds != nil {
		return s.N
	}
	return len(s.IDs)
}

// Batch is the rows of one step: segments of different sequences.
type Batch struct {
	Segments []*Segment
	// Tap receives named intermediate values, rows × width; nil for none. Names are those of
	// TapNames. The slice is valid during the call only.
	Tap func(name string, rows, width int, values []float32)
	// Hidden is set by Forward: the states that segments with Hidden want, rows × the model's Hidden. They are valid
	// until the next pass.
	Hidden []float32
}

// Rows is the number of rows of the batch.
func (b *Batch) Rows() int {
	n := 0
	for _, s := range b.Segments {
		n += s.Rows()
	}
	return n
}

// HeadRows is the number of rows of the batch whose logits are wanted.
func (b *Batch) HeadRows() int {
	n := 0
	for _, s := range b.Segments {
		if !s.Hidden {
			n += len(s.Head)
		}
	}
	return n
}
