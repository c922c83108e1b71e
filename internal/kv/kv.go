// Package kv is the paged key-value cache: fixed blocks of positions, leased from the ledger one by
// one as sequences grow.
package kv

import (
	"errors"
	"fmt"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/nn"
)

// BlockTokens is the positions of a block. It divides attention's tile of 64 positions
// (docs/numerics.md); small blocks waste little at the end of a sequence.
const BlockTokens = 16

// Shape is what one token leaves in the cache.
type Shape struct {
	Layers []nn.CacheLayer
	Type   kernel.CacheType
}

// TokenBytes is the bytes of one token over all layers.
func (s Shape) TokenBytes() int {
	n := 0
	for _, l := range s.Layers {
		n += l.KVHeads * s.Type.RowBytes(l.KDim+l.VDim)
	}
	return n
}

// BlockBytes is what one block takes from the ledger: whole pages.
func (s Shape) BlockBytes() int { return mem.Round(s.TokenBytes() * BlockTokens) }

// Bytes is what n positions of one sequence take from the ledger.
func (s Shape) Bytes(n int) int64 {
	return int64((n+BlockTokens-1)/BlockTokens) * int64(s.BlockBytes())
}

// Cache makes sequences of one shape. Their blocks come out of what was promised to the cache, and
// beyond that out of what is free in the ledger.
type Cache struct {
	ledger  *budget.Ledger
	promise *budget.Lease
	shape   Shape
	offsets []extent // of each layer in a block
}

// extent is where a layer's keys and values lie in a block.
type extent struct{ key, value, end int }

// New leases the bytes that the cache can count on, whatever else is leased, and returns it empty.
func New(l *budget.Ledger, s Shape, promise int64) (*Cache, error) {
	lease, err := l.Reserve(budget.KV, promise, "key-value cache")
	if err != nil {
		return nil, err
	}
	c := &Cache{ledger: l, promise: lease, shape: s}
	at := 0
	for _, layer := range s.Layers {
		value := at + layer.KVHeads*BlockTokens*s.Type.RowBytes(layer.KDim)
		end := value + layer.KVHeads*BlockTokens*s.Type.RowBytes(layer.VDim)
		c.offsets = append(c.offsets, extent{at, value, end})
		at = end
	}
	return c, nil
}

// Close gives back the promise. Sequences that still hold blocks of it make it fail.
func (c *Cache) Close() error { return c.promise.Release() }

// block maps a block.
func (c *Cache) block() (*mem.Buffer, error) {
	if b, err := mem.Map(c.promise, c.shape.BlockBytes()); err == nil {
		return b, nil
	}
	return mem.New(c.ledger, budget.KV, c.shape.BlockBytes(), "key-value cache beyond the plan")
}

// Shape returns the cache's shape.
func (c *Cache) Shape() Shape { return c.shape }

// Sequence is the cached positions of one sequence. It is not safe for concurrent use.
type Sequence struct {
	cache  *Cache
	blocks []*mem.Buffer
	data   [][]byte
}

// NewSequence returns a sequence without positions.
func (c *Cache) NewSequence() *Sequence { return &Sequence{cache: c} }

// Grow makes room for the positions [0, n). On error the sequence is as it was.
func (s *Sequence) Grow(n int) error {
	before := len(s.blocks)
	for len(s.blocks)*BlockTokens < n {
		b, err := s.cache.block()
		if err != nil {
			return errors.Join(fmt.Errorf("no room for position %d: %w", len(s.blocks)*BlockTokens, err), s.cutBlocks(before))
		}
		s.blocks = append(s.blocks, b)
		s.data = append(s.data, b.Bytes())
	}
	return nil
}

// Cut forgets the positions from n on and gives back the blocks that held only those.
func (s *Sequence) Cut(n int) error {
	return s.cutBlocks((max(n, 0) + BlockTokens - 1) / BlockTokens)
}

// Release gives back all blocks. The sequence may grow again.
func (s *Sequence) Release() error { return s.cutBlocks(0) }

func (s *Sequence) cutBlocks(keep int) error {
	var errs []error
	for len(s.blocks) > keep {
		last := len(s.blocks) - 1
		errs = append(errs, s.blocks[last].Free())
		s.blocks, s.data = s.blocks[:last], s.data[:last]
	}
	return errors.Join(errs...)
}

// Capacity is the number of positions that have room.
func (s *Sequence) Capacity() int { return len(s.blocks) * BlockTokens }

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
