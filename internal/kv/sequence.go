package kv

import (
	"errors"
	"fmt"

	"github.com/spillway/spillway/internal/kernel"
)

// Sequence is the cached positions of one sequence. It is not safe for concurrent use.
type Sequence struct {
	cache  *Cache
	blocks []*block
	data   [][]byte
	length int // positions that are written, or will be by the step that Grow was called for

	chain     *chain // nil: the sequence shares nothing
	published int    // of the blocks, from the first
	counted   bool   // as a query
	seen      int    // positions that the sequence once had: to have them again is no hit
}

// NewSequence returns a sequence without positions, which shares nothing.
func (c *Cache) NewSequence() *Sequence { return &Sequence{cache: c} }

func (s *Sequence) put(b *block) {
	s.blocks = append(s.blocks, b)
	s.data = append(s.data, b.buffer.Bytes())
}

// Grow makes room for the positions [0, n): those that the sequence has not got yet can be written. On error
// the sequence is as it was.
func (s *Sequence) Grow(n int) error {
	before := len(s.blocks)
	for i := s.length / BlockTokens; i < before && s.length < n; i++ {
		if err := s.own(i); err != nil {
			return fmt.Errorf("no room for position %d: %w", i*BlockTokens, err)
		}
	}
	for len(s.blocks)*BlockTokens < n {
		b, err := s.cache.take()
		if err != nil {
			return errors.Join(fmt.Errorf("no room for position %d: %w", len(s.blocks)*BlockTokens, err), s.cutBlocks(before))
		}
		s.put(b)
	}
	s.length = max(s.length, n)
	return nil
}

// own makes block i one that only this sequence sees, by a copy if need be.
func (s *Sequence) own(i int) error {
	c, shared := s.cache, s.blocks[i]
	c.mu.Lock()
	alone := shared.refs == 1 && !shared.published
	c.mu.Unlock()
	if alone {
		return nil
	}
	b, err := c.take()
	if err != nil {
		return err
	}
	copy(b.buffer.Bytes(), shared.buffer.Bytes())
	s.blocks[i], s.data[i] = b, b.buffer.Bytes()
	s.forget(i)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Copies++
	return c.drop(shared)
}

// forget makes the index's keys end before block i.
func (s *Sequence) forget(i int) {
	s.published = min(s.published, i)
	if s.chain != nil {
		s.chain.keys = s.chain.keys[:min(len(s.chain.keys), i)]
	}
}

// Fork returns a sequence with the same positions. Blocks are shared until one of the two writes.
func (s *Sequence) Fork() *Sequence {
	f := &Sequence{cache: s.cache, length: s.length, published: s.published, counted: true}
	if s.chain != nil {
		f.chain = &chain{root: s.chain.root, keys: append([]Key(nil), s.chain.keys...)}
	}
	f.blocks = append(f.blocks, s.blocks...)
	f.data = append(f.data, s.data...)
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	for _, b := range f.blocks {
		b.refs++
	}
	return f
}

// Cut forgets the positions from n on and gives back the blocks that held only those.
func (s *Sequence) Cut(n int) error {
	n = max(n, 0)
	s.seen = max(s.seen, s.length)
	s.length = min(s.length, n)
	s.forget(n / BlockTokens)
	return s.cutBlocks(Blocks(n))
}

// Release gives back all blocks; those that were published stay for others. The sequence may grow again.
func (s *Sequence) Release() error {
	keep := s.chain
	if keep != nil {
		keys := keep.keys
		defer func() { keep.keys = keys }() // the tokens are the same ones when it comes again
	}
	return s.Cut(0)
}

// cutBlocks gives back the last blocks first, so that of a prefix the end is forgotten before the beginning.
func (s *Sequence) cutBlocks(keep int) error {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	var errs []error
	for len(s.blocks) > keep {
		last := len(s.blocks) - 1
		errs = append(errs, s.cache.drop(s.blocks[last]))
		s.blocks, s.data = s.blocks[:last], s.data[:last]
	}
	return errors.Join(errs...)
}

// Blocks is the number of blocks that the sequence holds.
func (s *Sequence) Blocks() int { return len(s.blocks) }

// Format implements nn.Cache.
func (s *Sequence) Format() (kernel.CacheType, int) { return s.cache.shape.Type, BlockTokens }

// View implements nn.Cache.
func (s *Sequence) View(layer int, k, v [][]byte) ([][]byte, [][]byte) {
	e := s.cache.offsets[layer]
	for _, b := range s.data {
		k = append(k, b[e.key:e.value])
		v = append(v, b[e.value:e.end])
	}
	return k, v
}
