// Package kv is the paged key-value cache: fixed blocks of positions out of what the plan promised,
// shared by sequences that begin alike, kept while nobody needs their memory.
package kv

import (
	"errors"
	"sync"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/nn"
)

// BlockTokens is the positions of a block. It divides attention's tile of 64 positions
// (docs/numerics.md); small blocks waste little at the end of a sequence.
const BlockTokens = 16

// shrinkRank is when the ledger asks for idle blocks: after cached weights, which cost less to get back.
const shrinkRank = 10

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
func (s Shape) Bytes(n int) int64 { return int64(Blocks(n)) * int64(s.BlockBytes()) }

// Blocks is the number of blocks for n positions.
func Blocks(n int) int { return (n + BlockTokens - 1) / BlockTokens }

// Cache makes sequences of one shape. Their blocks come out of what was promised to the cache, and
// beyond that out of what is free in the ledger. Blocks of finished sequences whose content may be of use
// again are idle: they are taken, those used longest ago first, when a block is needed and the promise is
// used up, or when the ledger asks. It is safe for concurrent use.
type Cache struct {
	ledger  *budget.Ledger
	promise *budget.Lease
	shape   Shape
	offsets []extent // of each layer in a block
	leave   func()   // unregisters from the ledger

	mu    sync.Mutex
	keep  int64    // bytes of the promise that the ledger does not get back
	most  int      // blocks at once; 0: any number
	spare []*block // memory of the promise that nobody needs
	index map[Key]*block
	idle  list
	stats Stats
}

// Stats count blocks, and tokens of prompts, of a cache.
type Stats struct {
	Blocks    int   // there are at least, in use or not
	Used      int   // held by sequences
	Idle      int   // kept for prefixes to come
	Queried   int64 // tokens of prompts that were looked for
	Hit       int64 // and found
	Evictions int64 // idle blocks whose memory was needed
	Copies    int64 // shared blocks that were copied to be written
	mapped    int
	beyond    int // of those, mapped on leases of their own
}

// extent is where a layer's keys and values lie in a block.
type extent struct{ key, value, end int }

// block is the memory for BlockTokens positions of all layers.
type block struct {
	buffer *mem.Buffer
	beyond bool // it is not of the promise
	// Guarded by Cache.mu:
	refs       int
	key        Key
	published  bool // in the index
	prev, next *block
}

// New leases the bytes that the cache can count on, whatever else is leased, and returns it empty.
func New(l *budget.Ledger, s Shape, promise int64) (*Cache, error) {
	lease, err := l.Reserve(budget.KV, promise, "key-value cache")
	if err != nil {
		return nil, err
	}
	c := &Cache{ledger: l, promise: lease, shape: s, keep: promise, index: map[Key]*block{}}
	c.idle.init()
	at := 0
	for _, layer := range s.Layers {
		value := at + layer.KVHeads*BlockTokens*s.Type.RowBytes(layer.KDim)
		end := value + layer.KVHeads*BlockTokens*s.Type.RowBytes(layer.VDim)
		c.offsets = append(c.offsets, extent{at, value, end})
		at = end
	}
	c.leave = l.Register(shrinkRank, c)
	return c, nil
}

// Yield lets the ledger take back of the promise what no sequence uses, down to keep bytes. The cache grows again
// when there is memory, up to what was promised.
func (c *Cache) Yield(keep int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep, c.most = min(keep, c.keep), c.promised()
}

// Close gives back everything. Sequences that still hold blocks make it fail.
func (c *Cache) Close() error {
	c.leave()
	return errors.Join(c.Forget(), c.promise.Release())
}

// Forget gives back the memory of all blocks that no sequence holds, and what they remember.
func (c *Cache) Forget() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for b := c.unused(); b != nil; b = c.unused() {
		errs = append(errs, c.free(b))
	}
	return errors.Join(errs...)
}

// Shape returns the cache's shape.
func (c *Cache) Shape() Shape { return c.shape }

// Stats returns the counts so far.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Blocks = c.promised() + s.beyond
	s.Idle = c.idle.n
	s.Used = s.mapped - s.Idle - len(c.spare)
	return s
}

// Room is how many blocks sequences can count on beside those that they hold: of the promise, and of what the ledger
// took of it and has free now.
func (c *Cache) Room() int {
	free := c.ledger.Snapshot().Free() / int64(c.shape.BlockBytes())
	c.mu.Lock()
	defer c.mu.Unlock()
	lost := max(c.most-c.promised()-c.stats.beyond, 0)
	return c.unmapped() + len(c.spare) + c.idle.n + int(max(min(free, int64(lost)), 0))
}

// promised is how many blocks the promise is for now. The lock is held.
func (c *Cache) promised() int { return int(c.promise.Bytes() / int64(c.shape.BlockBytes())) }

// unmapped is how many blocks of the promise have no memory yet. The lock is held.
func (c *Cache) unmapped() int { return c.promised() - (c.stats.mapped - c.stats.beyond) }

var errFull = errors.New("all blocks of the key-value cache are in use")

// take returns a block with one reference: one that nobody needs, else one of the promise, else an idle
// one, else one beyond the promise.
func (c *Cache) take() (*block, error) {
	if b, err := c.takeOwn(); b != nil || err != nil {
		return b, err
	}
	if c.full() {
		return nil, errFull
	}
	buffer, err := mem.New(c.ledger, budget.KV, c.shape.BlockBytes(), "key-value cache beyond the plan")
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.mapped++
	c.stats.beyond++
	return &block{buffer: buffer, beyond: true, refs: 1}, nil
}

// full reports whether there are as many blocks as there may be.
func (c *Cache) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most > 0 && c.stats.mapped >= c.most
}

// takeOwn is take without what is beyond the promise.
func (c *Cache) takeOwn() (*block, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spare) == 0 && c.unmapped() > 0 {
		buffer, err := mem.Map(c.promise, c.shape.BlockBytes())
		if err != nil {
			return nil, err
		}
		c.stats.mapped++
		return &block{buffer: buffer, refs: 1}, nil
	}
	b := c.unused()
	if b != nil {
		b.refs = 1
	}
	return b, nil
}

// unused takes a block that no sequence holds out of the lists; nil if there is none. The lock is held.
func (c *Cache) unused() *block {
	if n := len(c.spare); n > 0 {
		b := c.spare[n-1]
		c.spare = c.spare[:n-1]
		return b
	}
	b := c.idle.first()
	if b != nil {
		c.evict(b)
	}
	return b
}

// evict forgets what an idle block holds. The lock is held.
func (c *Cache) evict(b *block) {
	c.idle.remove(b)
	delete(c.index, b.key)
	b.published = false
	c.stats.Evictions++
}

// drop takes away a reference. The lock is held.
func (c *Cache) drop(b *block) error {
	if b.refs--; b.refs > 0 {
		return nil
	}
	switch {
	case b.published:
		c.idle.push(b)
	case b.beyond:
		return c.free(b)
	default:
		c.spare = append(c.spare, b)
	}
	return nil
}

// free gives back the memory of a block that is in no list. The lock is held.
func (c *Cache) free(b *block) error {
	if err := b.buffer.Free(); err != nil {
		return err
	}
	c.stats.mapped--
	if b.beyond {
		c.stats.beyond--
	}
	return nil
}

// Shrink implements budget.Holder: idle blocks beyond the promise, then what of the promise may go.
func (c *Cache) Shrink(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := int64(c.shape.BlockBytes())
	for b := c.idle.first(); b != nil && n > 0; {
		next := c.idle.after(b)
		if b.beyond {
			c.evict(b)
			if c.free(b) == nil {
				n -= size
			}
		}
		b = next
	}
	give := min(n, c.promise.Bytes()-c.keep)
	if give <= 0 {
		return
	}
	for c.promise.Bytes()-int64(c.stats.mapped-c.stats.beyond)*size < give {
		b := c.unused()
		if b == nil || c.free(b) != nil {
			break
		}
	}
	left := int64(c.stats.mapped-c.stats.beyond) * size
	// What cannot be given back stays where it is; the ledger sees what came.
	_ = c.promise.Resize(max(c.promise.Bytes()-give, left))
}

// list is blocks in order of their last use.
type list struct {
	ends block
	n    int
}

func (l *list) init() { l.ends.prev, l.ends.next = &l.ends, &l.ends }

func (l *list) first() *block { return l.after(&l.ends) }

// after returns the block that was used next; nil for none.
func (l *list) after(b *block) *block {
	if b.next == &l.ends {
		return nil
	}
	return b.next
}

func (l *list) push(b *block) {
	b.prev, b.next = l.ends.prev, &l.ends
	b.prev.next, l.ends.prev = b, b
	l.n++
}

func (l *list) remove(b *block) {
	b.prev.next, b.next.prev = b.next, b.prev
	b.prev, b.next = nil, nil
	l.n--
}
