package sample

import (
	"fmt"

	"github.com/spillway/spillway/internal/mem"
)

// Scratch is working memory that any number of samplers share, one call at a time. It carries nothing
// from call to call.
type Scratch struct {
	logits  []float32 // [vocab] those of the call, changed
	counts  []uint32  // [vocab] how often a token was seen, 0 between calls
	matches []int32   // [context] lengths of repetitions, of DRY
	vocab   int
	draw    drawing
}

// ScratchBytes is the size of the buffer that NewScratch takes for a vocabulary and a context, in
// tokens: 8 bytes for each token of the one, 4 for each of the other.
func ScratchBytes(vocab, context int) int { return 4 * (2*vocab + context) }

// NewScratch returns a scratch over the first ScratchBytes(vocab, context) of buf, which it clears and
// which must outlive it. Besides it a scratch takes 39 KiB of the heap. Sizes of 0 do where no sampler
// changes logits (Params.ChangesLogits, Input.Mask).
func NewScratch(buf []byte, vocab, context int) (*Scratch, error) {
	if vocab < 0 || context < 0 || vocab > maxVocab || len(buf) < ScratchBytes(vocab, context) {
		return nil, fmt.Errorf("a sampler's scratch for %d tokens and a context of %d takes %d bytes, not %d",
			vocab, context, ScratchBytes(vocab, context), len(buf))
	}
	buf = buf[:ScratchBytes(vocab, context)]
	clear(buf)
	v := 4 * vocab
	return &Scratch{
		logits: mem.As[float32](buf[:v]), counts: mem.As[uint32](buf[v : 2*v]), matches: mem.As[int32](buf[2*v:]), vocab: vocab,
	}, nil
}

// fits says whether the scratch has room for what the parameters need.
func (c *Scratch) fits(vocab, history int) bool { return vocab <= c.vocab && history <= len(c.matches) }

// ownScratch is for callers without one: it takes the heap, grown to what is needed.
func (s *Sampler) ownScratch(vocab, history int) *Scratch {
	if s.own == nil {
		s.own = &Scratch{}
	}
	if s.own.fits(vocab, history) {
		return s.own
	}
	context := 1
	for context < history {
		context *= 2
	}
	s.own, _ = NewScratch(make([]byte, ScratchBytes(vocab, context)), vocab, context)
	return s.own
}
