package grammar

import (
	"math"
	"slices"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// allowed finds masks, and keeps those of parts.
type allowed struct {
	walk    walker
	parts   map[partKey]*partMask
	rests   map[cfg.Part][]uint64 // what goes on where a part is left, if that is far from it
	follows map[cfg.Stack]*follow
	sets    map[[256]bool]*[256]bool
	bytes   int
	limit   int // of bytes
	scratch []cfg.Part

	seen map[seenKey]struct{}

	runClasses []uint8
	runSeen    []cfg.Config
}

// partKey is a part and the bytes that may follow it.
type partKey struct {
	config cfg.Config
	follow *[256]bool
}

// follow is what goes on where a part was left.
type follow struct {
	parts []cfg.Part
	bytes *[256]bool // by class
}

// seenKey is a node that a part goes on from. Where a grammar is ambiguous many ways lead to the same one, and their number can grow with
// every byte of a token; what was seen in a mask is not walked again.
type seenKey struct {
	node uint32
	part cfg.Part
}

// seenDepth is from how many parts on, one left after the other, that is noted: before there are few ways.
const seenDepth = 2

// again reports whether a part has gone on from a node before, depth parts into a token.
func (a *allowed) again(node uint32, p *cfg.Part, depth int) bool {
	if depth < seenDepth {
		return false
	}
	key := seenKey{node, *p}
	_, ok := a.seen[key]
	if !ok {
		a.seen[key] = struct{}{}
	}
	return ok
}

func newAllowed(v *Vocabulary, m *cfg.Machine, limit int) *allowed {
	a := &allowed{limit: limit, seen: map[seenKey]struct{}{}, walk: walker{vocab: v, machine: m, class: m.Classes(), mask: make([]uint64, v.Words()+1)}}
	a.forget()
	return a
}

// forget drops what is kept.
func (a *allowed) forget() {
	a.parts, a.rests = map[partKey]*partMask{}, map[cfg.Part][]uint64{}
	a.follows, a.sets = map[cfg.Stack]*follow{}, map[[256]bool]*[256]bool{}
	a.bytes = 0
}

// factor is the parts of c, with bounds that always hold where nothing is counted.
func (a *allowed) factor(dst []cfg.Part, c cfg.Config) []cfg.Part {
	dst = a.walk.machine.Factor(dst, c)
	for i := range dst {
		if p := &dst[i]; !p.Counted {
			p.Least, p.Most = 0, math.MaxInt32
		}
	}
	return dst
}

// after is what goes on where a part with k below was left.
func (a *allowed) after(k cfg.Stack) *follow {
	if f := a.follows[k]; f != nil {
		return f
	}
	machine := a.walk.machine
	f := &follow{parts: a.factor(nil, machine.Pop(k))}
	var set [256]bool
	for _, p := range f.parts {
		for class, next := range machine.Row(p.Config) {
			if next != 0 {
				set[class] = true
			}
		}
	}
	if f.bytes = a.sets[set]; f.bytes == nil {
		f.bytes = &set
		a.sets[set] = f.bytes
		a.bytes += 600
	}
	a.follows[k] = f
	a.bytes += 96 + 24*len(f.parts)
	return f
}

// of is the mask of a part.
func (a *allowed) of(p *cfg.Part, f *follow) *partMask {
	key := partKey{p.Config, f.bytes}
	m := a.parts[key]
	if m == nil {
		m = a.make(p, f)
		a.parts[key] = m
		a.bytes += m.bytes
	}
	return m
}

// Parts of which at least wideBytes bytes may come next are likely to allow many tokens, and to be found in
// other grammars as well: bodies of strings, free text. They are shared if they are small.
const (
	wideBytes    = 48
	sharedStates = 200
)

func (a *allowed) make(p *cfg.Part, f *follow) *partMask {
	w := &a.walk
	key, ok := "", false
	if a.width(p.Config) >= wideBytes {
		key, ok = a.signature(p, f)
	}
	if ok {
		if m := w.vocab.shared.get(key); m != nil {
			return m
		}
	}
	r := a.runsOf(p)
	w.all(p.Config, &scope{counted: p.Counted, most: math.MaxInt32, follow: f.bytes, runs: r})
	m := newPartMask(w, p.Counted, r)
	if ok {
		w.vocab.shared.put(key, m)
	}
	return m
}

// width is how many bytes may come next.
func (a *allowed) width(c cfg.Config) int {
	row, n := a.walk.machine.Row(c), 0
	for _, class := range a.walk.class {
		if row[class] != 0 {
			n++
		}
	}
	return n
}

func (a *allowed) signature(p *cfg.Part, f *follow) (string, bool) {
	key := make([]byte, 32, 256)
	for b, class := range a.walk.class {
		if f.bytes[class] {
			key[b/8] |= 1 << (b % 8)
		}
	}
	key, ok := a.walk.machine.Signature(key, p.Config, sharedStates)
	return string(key), ok
}

// mask sets the bits of the tokens that go on from c.
func (a *allowed) mask(c cfg.Config, mask []uint64) {
	if a.bytes > a.limit {
		a.forget()
	}
	a.scratch = a.factor(a.scratch[:0], c)
	for _, p := range a.scratch {
		f := a.after(p.Below)
		m := a.of(&p, f)
		clear(a.seen)
		m.or(mask, p.Most)
		switch {
		case len(m.leaves) == 0 || m.most < p.Least || m.least > p.Most:
		case m.below < manyNodes && p.Least <= m.least && m.most <= p.Most:
			m.mu.Lock()
			for _, q := range f.parts {
				a.tail(m, 0, &q, 0, mask)
			}
			m.mu.Unlock()
		case m.below < manyNodes:
			a.leave(&p, m.leaves, f, 0, mask)
		default:
			orMask(mask, a.left(&p, m, f))
		}
	}
}

// left is what goes on where a part is left, kept because it takes long to find.
func (a *allowed) left(p *cfg.Part, m *partMask, f *follow) []uint64 {
	mask := a.rests[*p]
	if mask == nil {
		mask = make([]uint64, a.walk.vocab.Words())
		a.leave(p, m.leaves, f, 0, mask)
		a.rests[*p] = mask
		a.bytes += 8*len(mask) + 64
	}
	return mask
}

// manyNodes is from how many nodes on a walk below leaves is kept.
const manyNodes = 1 << 13

// leave goes on from those leaves that the part may leave at, with what is below it.
func (a *allowed) leave(p *cfg.Part, leaves []leaf, f *follow, depth int, mask []uint64) {
	w := &a.walk
	for _, q := range f.parts {
		after := a.after(q.Below)
		s := scope{counted: q.Counted, most: q.Most, follow: after.bytes}
		row := w.machine.Row(q.Config)
		done := uint32(math.MaxUint32)
		for _, l := range leaves {
			n := w.vocab.nodes[l.node]
			if l.count < p.Least || l.count > p.Most || l.node == done || row[w.class[uint8(n)]] == 0 {
				continue
			}
			if done = l.node; a.again(l.node, &q, depth) {
				continue
			}
			w.start(q.Config, nodeDepth(n)-1)
			w.walk(l.node, l.node+nodeSkip(n), &s)
		}
		w.take(mask)
		if len(w.leaves) > 0 {
			next := sortLeaves(slices.Clone(w.leaves))
			w.leaves = w.leaves[:0]
			a.leave(&q, next, after, depth+1, mask)
		}
	}
}

// tail walks the tails of a part from a node on, with the part that goes on there, depth parts into a token.
func (a *allowed) tail(m *partMask, from int32, q *cfg.Part, depth int, mask []uint64) {
	if a.again(uint32(from), q, depth) {
		return
	}
	var left []int32
	a.tailWalk(m, from, q, q.Config, &left, mask)
	if len(left) == 0 {
		return
	}
	for _, r := range a.after(q.Below).parts {
		for _, i := range left {
			a.tail(m, i, &r, depth+1, mask)
		}
	}
}

func (a *allowed) tailWalk(m *partMask, i int32, q *cfg.Part, c cfg.Config, left *[]int32, mask []uint64) {
	machine := a.walk.machine
	if !m.tails.nodes[i].grown {
		a.bytes += m.tails.grow(i, a.walk.vocab)
	}
	at := int(machine.RowAt(c))
	for _, child := range m.tails.nodes[i].children {
		t := &m.tails.nodes[child]
		next := machine.Rows()[at+int(a.walk.class[t.b])]
		if next == 0 || q.Counted && machine.Cost(next.Config()) > q.Most {
			continue
		}
		for _, id := range t.tokens {
			setBit(mask, id)
		}
		if t.last() {
			continue
		}
		if next.Leaves() && a.mayLeave(q, next.Config()) {
			*left = append(*left, child)
		}
		if !next.Ends() {
			a.tailWalk(m, child, q, next.Config(), left, mask)
		}
	}
}

func (a *allowed) mayLeave(p *cfg.Part, c cfg.Config) bool {
	for _, l := range a.walk.machine.Leaves(c) {
		if l >= p.Least && l <= p.Most {
			return true
		}
	}
	return false
}
