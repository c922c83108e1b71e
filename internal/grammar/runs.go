package grammar

import (
	"math/bits"
	"slices"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// runs are the tokens of up to runLength bytes that are all of one set, say of letters and digits. Where a part goes
// on with every such text, as in the middle of a host name, a walk need not look at them: they are most of what it
// would find. States that count characters are many, each with a mask of its own; these masks are made so.
type runs struct {
	mask  []uint64 // the tokens
	whole []uint64 // by node of the trie: no other tokens are in its subtree
}

const (
	runLength = 16 // few tokens are longer
	leastRun  = 24 // bytes of a set; of smaller ones there are few tokens
	runStates = 64 // that texts of a set may lead to
	manyAsked = 64 // sets that are counted
)

// byteSet is a set of bytes.
type byteSet [4]uint64

func (s *byteSet) has(b byte) bool { return s[b/64]>>(b%64)&1 != 0 }

// nextZero is the first bit from i on that is not set: siblings that are whole are passed over together.
func nextZero(set []uint64, i uint32) uint32 {
	at := int(i / 64)
	for word := ^set[at] >> (i % 64) << (i % 64); ; word = ^set[at] {
		if word != 0 {
			return uint32(64*at + bits.TrailingZeros64(word))
		}
		if at++; at == len(set) {
			return uint32(64 * at)
		}
	}
}

// runBytes is the memory of runs.
func (v *Vocabulary) runBytes() int { return 8*(v.Words()+(len(v.nodes)+63)/64) + 128 }

// newRuns walks the trie as far as the set goes.
func newRuns(v *Vocabulary, set *byteSet) *runs {
	r := &runs{mask: make([]uint64, v.Words()), whole: make([]uint64, (len(v.nodes)+63)/64)}
	for _, first := range v.root {
		if first > 0 {
			r.add(v, set, first-1)
		}
	}
	return r
}

// add is of a node below which all bytes are in the set; it says whether its subtree is whole.
func (r *runs) add(v *Vocabulary, set *byteSet, i uint32) bool {
	n := v.nodes[i]
	if !set.has(uint8(n)) || nodeDepth(n) > runLength {
		return false
	}
	if t := nodeToken(n); t > 0 {
		setBit(r.mask, int32(t-1))
	}
	whole := true
	for j, end := i+1, i+nodeSkip(n); j < end; j += nodeSkip(v.nodes[j]) {
		if !r.add(v, set, j) {
			whole = false
		}
	}
	if whole {
		r.whole[i/64] |= 1 << (i % 64)
	}
	return whole
}

// runsOf finds runs that a part goes on with, nil if there are none or they are not worth it.
func (a *allowed) runsOf(p *cfg.Part) *runs {
	if p.Counted {
		return nil
	}
	next, n := a.commonest(p.Config)
	if n < leastRun {
		return nil
	}
	row := a.walk.machine.Row(p.Config)
	classes := a.runClasses[:0]
	for class, to := range row {
		if to == next {
			classes = append(classes, uint8(class))
		}
	}
	a.runClasses = classes
	if !a.goesOn(p.Config, classes) {
		return nil
	}
	var set byteSet
	for b, class := range a.walk.class {
		if row[class] == next {
			set[b/64] |= 1 << (b % 64)
		}
	}
	return a.walk.vocab.runs(&set)
}

// commonest is where the most bytes lead from c, and how many.
func (a *allowed) commonest(c cfg.Config) (next cfg.Next, most int) {
	var to []cfg.Next
	var n []int
	row, last := a.walk.machine.Row(c), -1
	for _, class := range a.walk.class {
		one := row[class]
		if one == 0 {
			continue
		}
		if last < 0 || to[last] != one {
			if last = slices.Index(to, one); last < 0 {
				last = len(to)
				to, n = append(to, one), append(n, 0)
			}
		}
		if n[last]++; n[last] > most {
			next, most = one, n[last]
		}
	}
	return next, most
}

// goesOn says that every text of up to runLength bytes of some classes goes on from c. Where the part may be left within
// one, what is below allows no tokens of it that are not allowed anyway.
func (a *allowed) goesOn(c cfg.Config, classes []uint8) bool {
	machine := a.walk.machine
	seen := append(a.runSeen[:0], c)
	defer func() { a.runSeen = seen }()
	for k, from := 0, 0; k < runLength && from < len(seen); k++ {
		for to := len(seen); from < to; from++ {
			row, last := machine.Row(seen[from]), cfg.Next(0)
			for _, class := range classes {
				next := row[class]
				if next == 0 {
					return false
				}
				if next != last && !slices.Contains(seen, next.Config()) {
					if len(seen) == runStates {
						return false
					}
					seen = append(seen, next.Config())
				}
				last = next
			}
		}
	}
	return true
}

// runs are those of a set, nil when it is asked for the first time: making them takes as long as a walk.
func (v *Vocabulary) runs(set *byteSet) *runs {
	r, worth := v.shared.runsOf(set, v.runBytes())
	if worth {
		r = newRuns(v, set)
		v.shared.putRuns(set, r, v.runBytes())
	}
	return r
}
