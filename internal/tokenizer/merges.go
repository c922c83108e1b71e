package tokenizer

import (
	"math/bits"
	"math/rand/v2"
)

// merges maps a pair of ids to its rank and to the id that it becomes. The rank is the place in the
// list; the index is an open-addressing table of ranks + 1.
type merges struct {
	left, right, merged u32s
	index               u32s
	salt                [2]uint64 // random, so that no file can make all pairs collide
	count               uint32
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
	}{{&m.left, n}, {&m.right, n}, {&m.merged, n}, {&m.index, tableSize(n)}} {
		b, err := alloc(4 * part.n)
		if err != nil {
			return nil, err
		}
		*part.into = b
	}
	return m, nil
}

func (m *merges) slot(left, right uint32) uint32 {
	hi, lo := bits.Mul64((uint64(left)<<32|uint64(right))^m.salt[0], m.salt[1])
	return uint32(hi^lo) & uint32(m.index.len()-1)
}

// add appends a merge; the rank of a pair that is given twice is the first.
func (m *merges) add(left, right, merged uint32) error {
	if int(m.count) >= m.left.len() {
		return formatError("the list of merges changed while it was read")
	}
	m.left.set(m.count, left)
	m.right.set(m.count, right)
	m.merged.set(m.count, merged)
	m.count++
	mask := uint32(m.index.len() - 1)
	for slot := m.slot(left, right); ; slot = (slot + 1) & mask {
		got := m.index.at(slot)
		if got == 0 {
			m.index.set(slot, m.count)
			return nil
		}
		if m.left.at(got-1) == left && m.right.at(got-1) == right {
			return nil
		}
	}
}

// noRank is more than any rank.
const noRank = ^uint32(0)

// rank returns the rank of a pair, or noRank.
func (m *merges) rank(left, right uint32) uint32 {
	mask := uint32(m.index.len() - 1)
	for slot := m.slot(left, right); ; slot = (slot + 1) & mask {
		got := m.index.at(slot)
		if got == 0 {
			return noRank
		}
		if m.left.at(got-1) == left && m.right.at(got-1) == right {
			return got - 1
		}
	}
}
