package grammar

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// levels is up to which count a counted part has a mask for each; tokens that take more are few.
const levels = 12

// partMask is what a part allows by itself, and where in the trie it may be left. It may be shared by
// grammars that have the same part.
type partMask struct {
	few  []found    // the tokens, by count, if they are few; else
	mask []uint64   // the tokens
	upTo [][]uint64 // of a counted part: the tokens that take at most 0, 1, .. levels
	over []found    // of a counted part: the tokens that take more, by count

	leaves      []leaf
	least, most int32 // of the leaves' counts
	below       int   // nodes of the leaves' subtrees

	mu    sync.Mutex // of tails
	tails tails

	bytes int // without tails
}

// newPartMask takes what a walker found in the whole trie, and clears it. r is what the walk left out.
func newPartMask(w *walker, counted bool, r *runs) *partMask {
	words := w.vocab.Words()
	p := &partMask{leaves: slices.Clone(w.leaves), least: math.MaxInt32}
	for i, l := range p.leaves {
		p.least, p.most = min(p.least, l.count), max(p.most, l.count)
		if i == 0 || p.leaves[i-1].node != l.node {
			p.below += int(nodeSkip(w.vocab.nodes[l.node]))
		}
	}
	switch {
	case counted && len(w.found) <= 2*words:
		p.few = slices.Clone(w.found)
		slices.SortStableFunc(p.few, byCount)
	case counted:
		p.addLevels(w.found, words)
	default:
		p.addAll(w, words, r)
	}
	w.found, w.leaves = w.found[:0], w.leaves[:0]
	p.bytes = 256 + 8*(len(p.few)+len(p.over)+len(p.leaves)+len(p.mask)+len(p.upTo)*words)
	p.tails.begin(p.leaves, w.vocab)
	return p
}

// addAll is of a part that is not counted.
func (p *partMask) addAll(w *walker, words int, r *runs) {
	if w.taken == nil {
		w.taken = make([]uint64, words)
	}
	clear(w.taken)
	if r != nil {
		copy(w.taken, r.mask)
	}
	w.take(w.taken)
	if n := countBits(w.taken); n <= 2*words {
		p.few = make([]found, 0, n)
		eachBit(w.taken, func(id int32) { p.few = append(p.few, found{id: id}) })
		return
	}
	p.mask = slices.Clone(w.taken)
}

func byCount(a, b found) int { return cmp.Compare(a.count, b.count) }

func (p *partMask) addLevels(all []found, words int) {
	p.mask = make([]uint64, words)
	p.upTo = make([][]uint64, levels+1)
	for i := range p.upTo {
		p.upTo[i] = make([]uint64, words)
	}
	for _, f := range all {
		setBit(p.mask, f.id)
		if f.count > levels {
			p.over = append(p.over, f)
			continue
		}
		setBit(p.upTo[f.count], f.id)
	}
	for i := 1; i <= levels; i++ {
		orMask(p.upTo[i], p.upTo[i-1])
	}
	slices.SortStableFunc(p.over, byCount)
}

// or adds the tokens that take at most a count.
func (p *partMask) or(mask []uint64, most int32) {
	switch {
	case p.mask == nil:
		orFew(mask, p.few, most)
	case p.upTo == nil || len(p.over) == 0 && most >= levels || len(p.over) > 0 && most >= p.over[len(p.over)-1].count:
		orMask(mask, p.mask)
	case most <= levels:
		orMask(mask, p.upTo[most])
	default:
		orMask(mask, p.upTo[levels])
		orFew(mask, p.over, most)
	}
}

func orFew(mask []uint64, few []found, most int32) {
	for _, f := range few {
		if f.count > most {
			break
		}
		setBit(mask, f.id)
	}
}

func orMask(dst, src []uint64) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] |= src[i]
	}
}

func setBit(mask []uint64, id int32) { mask[uint32(id)/64] |= 1 << (uint32(id) % 64) }
