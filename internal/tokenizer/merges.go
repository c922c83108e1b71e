package tokenizer

import (
	"math/bits"
	"math/rand/v2"
)

// merges maps a pair of ids to its rank and to the id that it becomes. The rank is the place in the
// list; the index is an open-addressing table of ranks with tags.
type merges struct {
	list  u32s // left, right, merged of each rank
	index u32s
	salt  [2]uint64 // random, so that no file can make all pairs collide
	count uint32
}

// newMerges makes an empty table for n merges.
func newMerges(n int, alloc Alloc) (*merges, error) {
	if n > maxTokens {
		return nil, formatError("the tokenizer has %d merges; at most %d are possible", n, maxTokens)
	}
	m := &merges{salt: [2]uint64{rand.Uint64(), rand.Uint64() | 1}}
	for _, part := range []struct {
		into *u32s
		n    int
	}{{&m.list, 3 * n}, {&m.index, tableSize(n)}} {
		b, err := alloc(4 * part.n)
		if err != nil {
			return nil, err
		}
		*part.into = b
	}
	return m, nil
}

func (m *merges) hash(left, right uint32) uint64 {
	hi, lo := bits.Mul64((uint64(left)<<32|uint64(right))^m.salt[0], m.salt[1])
	return hi ^ lo
}

// merged is the id that the pair of a rank becomes.
func (m *merges) merged(rank uint32) uint32 { return m.list.at(3*rank + 2) }

func (m *merges) is(rank, left, right uint32) bool {
	return m.list.at(3*rank) == left && m.list.at(3*rank+1) == right
}

// add appends a merge; the rank of a pair that is given twice is the first.
func (m *merges) add(left, right, merged uint32) error {
	if 3*int(m.count) >= m.list.len() {
		return formatError("the list of merges changed while it was read")
	}
	rank := m.count
	m.list.set(3*rank, left)
	m.list.set(3*rank+1, right)
	m.list.set(3*rank+2, merged)
	m.count++
	hash := m.hash(left, right)
	mask := uint32(m.index.len() - 1)
	for slot := uint32(hash) & mask; ; slot = (slot + 1) & mask {
		got := m.index.at(slot)
		if got == 0 {
			m.index.set(slot, entry(hash, rank))
			return nil
		}
		if sameTag(got, hash) && m.is(entryOf(got), left, right) {
			return nil
		}
	}
}

// noRank is more than any rank.
const noRank = ^uint32(0)

// rank returns the rank of a pair, or noRank.
func (m *merges) rank(left, right uint32) uint32 {
	hash := m.hash(left, right)
	mask := uint32(m.index.len() - 1)
	for slot := uint32(hash) & mask; ; slot = (slot + 1) & mask {
		got := m.index.at(slot)
		if got == 0 {
			return noRank
		}
		if sameTag(got, hash) && m.is(entryOf(got), left, right) {
			return entryOf(got)
		}
	}
}
