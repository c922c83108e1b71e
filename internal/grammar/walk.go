package grammar

import (
	"github.com/spillway/spillway/internal/grammar/cfg"
)

// walker walks the trie of a vocabulary with a machine. What it finds goes to one of two places: tokens of
// counted parts, with their counts, to found; of all others the bit id + 1 to mask.
type walker struct {
	vocab   *Vocabulary
	machine *cfg.Machine
	class   *[256]uint8
	path    [maxDepth + 1]place
	mask    []uint64
	taken   []uint64 // scratch
	found   []found
	leaves  []leaf
}

// place is where a walk is at one depth: a Config and where its row begins.
type place struct {
	row  int32
	next cfg.Next
}

// found is a token that a counted part allows, and the count that it takes there.
type found struct {
	id    int32
	count int32
}

// leaf is a node that is reached by a byte after a part was left, and the count with which it was left.
type leaf struct {
	node  uint32
	count int32
}

// scope is what a walk is about.
type scope struct {
	counted bool
	most    int32      // counts above it are dead
	follow  *[256]bool // by class: bytes that may come where the part is left; others are no leaves
	runs    *runs      // nil, or what the walk may leave out
}

// start begins at a part's Config at a depth.
func (w *walker) start(c cfg.Config, depth int) {
	w.path[depth] = place{row: w.machine.RowAt(c)}
}

// all walks the whole trie.
func (w *walker) all(c cfg.Config, s *scope) {
	w.start(c, 0)
	row := w.machine.Row(c)
	for b, first := range w.vocab.root {
		if first > 0 && row[w.class[b]] != 0 {
			w.walk(first-1, first-1+nodeSkip(w.vocab.nodes[first-1]), s)
		}
	}
}

// walk goes through the nodes i..end, below the place that path has at their depth. A place is written down
// even where no node is below.
func (w *walker) walk(i, end uint32, s *scope) {
	nodes, rows, mask := w.vocab.nodes[:end], w.machine.Rows(), w.mask
	var whole []uint64
	if s.runs != nil {
		whole = s.runs.whole
	}
	for int(i) < len(nodes) {
		n := nodes[i]
		if whole != nil && whole[i/64]>>(i%64)&1 != 0 {
			i = nextZero(whole, i)
			continue
		}
		depth := nodeDepth(n)
		up := w.path[depth-1]
		class := w.class[uint8(n)]
		next := rows[int(up.row)+int(class)]
		if up.next.Leaves() && s.follow[class] {
			w.leave(i, up.next.Config())
		}
		if next == 0 {
			i += nodeSkip(n)
			continue
		}
		t := nodeToken(n)
		if s.counted {
			count := w.machine.Cost(next.Config())
			if count > s.most {
				i += nodeSkip(n)
				continue
			}
			if t > 0 {
				w.found = append(w.found, found{int32(t - 1), count})
			}
			t = 0
		}
		mask[t/64] |= 1 << (t % 64)
		i++
		if next != up.next {
			if nodeSkip(n) == 1 {
				continue
			}
			up = place{w.machine.RowAt(next.Config()), next}
			rows = w.machine.Rows()
		}
		w.path[depth&maxDepth] = up
	}
}

func (w *walker) leave(node uint32, at cfg.Config) {
	for _, l := range w.machine.Leaves(at) {
		w.leaves = append(w.leaves, leaf{node, l})
	}
}

// take moves the mask's bits to those of their tokens, adds them to dst, and clears the walker's.
func (w *walker) take(dst []uint64) {
	w.mask[0] &^= 1
	for i := range dst {
		dst[i] |= w.mask[i]>>1 | w.mask[i+1]<<63
	}
	clear(w.mask)
	for _, f := range w.found {
		setBit(dst, f.id)
	}
	w.found = w.found[:0]
}
