package kv

import (
	"crypto/sha256"
	"encoding/binary"
)

// Key names the content of a block: a chained hash over everything that its bits depend on. It is
// cryptographic, since a collision that somebody made on purpose would show others' prompts.
type Key [sha256.Size]byte

// Root is the key before the first block: what changes the bits of all blocks beside the tokens.
func Root(parts ...string) Key {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(p))))
		h.Write([]byte(p))
	}
	return Key(h.Sum(nil))
}

// next is the key of the block of these tokens after the block with key k.
func (k Key) next(ids []int32) Key {
	var buf [sha256.Size + 4*BlockTokens]byte
	b := append(buf[:0], k[:]...)
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return sha256.Sum256(b)
}

// chain is the keys of a sequence's blocks, as far as they were asked for.
type chain struct {
	root Key
	keys []Key
}

// at is the key of block i, which holds the tokens ids[16·i:16·i+16].
func (c *chain) at(i int, ids []int32) Key {
	for n := len(c.keys); n <= i; n++ {
		before := c.root
		if n > 0 {
			before = c.keys[n-1]
		}
		c.keys = append(c.keys, before.next(ids[n*BlockTokens:][:BlockTokens]))
	}
	return c.keys[i]
}

// Share makes the sequence, which is empty, take part in the sharing of blocks below a root.
func (s *Sequence) Share(root Key) {
	s.chain = &chain{root: root}
}

// Match is how many blocks beyond those that the sequence has the cache holds for ids, and how many of them are
// idle. The last token does not count: its logits are wanted.
func (s *Sequence) Match(ids []int32) (blocks, idle int) {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	i := s.whole()
	if i < 0 {
		return 0, 0
	}
	for b := s.found(i, ids); b != nil; b = s.found(i+blocks, ids) {
		blocks++
		if b.refs == 0 {
			idle++
		}
	}
	return blocks, idle
}

// whole is the number of the sequence's blocks if all are full and known to the index; else -1.
func (s *Sequence) whole() int {
	if s.chain == nil || s.length != len(s.blocks)*BlockTokens || s.published != len(s.blocks) {
		return -1
	}
	return len(s.blocks)
}

// found is the block that the cache has for block i of ids; nil for none. The lock is held.
func (s *Sequence) found(i int, ids []int32) *block {
	if (i+1)*BlockTokens >= len(ids) {
		return nil
	}
	return s.cache.index[s.chain.at(i, ids)]
}

// Keys appends the keys of the blocks that will be full once ids[:n] are computed, and that the index does not
// know of this sequence.
func (s *Sequence) Keys(keys []Key, ids []int32, n int) []Key {
	for i := s.published; s.chain != nil && (i+1)*BlockTokens <= n; i++ {
		keys = append(keys, s.chain.at(i, ids))
	}
	return keys
}

// Reuse takes the blocks that the cache holds for what follows in ids, as far as Match tells, and returns
// how many positions the sequence has now.
func (s *Sequence) Reuse(ids []int32) int {
	c := s.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	i := s.whole()
	if i < 0 {
		return s.length
	}
	if !s.counted {
		s.counted = true
		c.stats.Queried += int64(len(ids))
	}
	s.seen = max(s.seen, s.length)
	for b := s.found(i, ids); b != nil; b = s.found(i, ids) {
		if b.refs == 0 {
			c.idle.remove(b)
		}
		b.refs++
		s.put(b)
		i++
		s.published = i
	}
	s.length = i * BlockTokens
	c.stats.Hit += int64(max(s.length-s.seen, 0))
	return s.length
}

// Publish lets others use the full blocks of the first n positions, which hold ids. Where another sequence
// has published the same content its block takes the place of this one's: bits are equal.
func (s *Sequence) Publish(ids []int32, n int) error {
	if s.chain == nil {
		return nil
	}
	c := s.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	for ; (s.published+1)*BlockTokens <= n; s.published++ {
		i := s.published
		key, own := s.chain.at(i, ids), s.blocks[i]
		switch other := c.index[key]; {
		case other == own:
		case other != nil:
			if other.refs == 0 {
				c.idle.remove(other)
			}
			other.refs++
			s.blocks[i], s.data[i] = other, other.buffer.Bytes()
			if err := c.drop(own); err != nil {
				return err
			}
		default:
			own.key, own.published = key, true
			c.index[key] = own
		}
	}
	return nil
}
