package regular

import (
	"cmp"
	"encoding/binary"
	"slices"
	"unicode"
)

const lastRune = 0x10FFFF

// A runes is a set of characters: ranges in order, without overlap or neighbours. Surrogates are no characters.
type runes []span

type span struct{ lo, hi rune }

var allRunes = runes{{0, 0xD7FF}, {0xE000, lastRune}}

// newRunes puts spans in order and leaves surrogates out.
func newRunes(spans ...span) runes {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	var joined runes
	for _, s := range spans {
		if s.lo > s.hi {
			continue
		}
		if n := len(joined); n > 0 && s.lo <= joined[n-1].hi+1 {
			joined[n-1].hi = max(joined[n-1].hi, s.hi)
			continue
		}
		joined = append(joined, s)
	}
	return joined.and(allRunes)
}

func (r runes) or(o runes) runes { return newRunes(slices.Concat(r, o)...) }

func (r runes) and(o runes) runes {
	var out runes
	for i, j := 0, 0; i < len(r) && j < len(o); {
		lo, hi := max(r[i].lo, o[j].lo), min(r[i].hi, o[j].hi)
		if lo <= hi {
			out = append(out, span{lo, hi})
		}
		if r[i].hi < o[j].hi {
			i++
		} else {
			j++
		}
	}
	return out
}

func (r runes) not() runes {
	var out runes
	next := rune(0)
	for _, s := range r {
		if s.lo > next {
			out = append(out, span{next, s.lo - 1})
		}
		next = s.hi + 1
	}
	if next <= lastRune {
		out = append(out, span{next, lastRune})
	}
	return out.and(allRunes)
}

// fold adds the characters that differ in case alone.
func (r runes) fold() runes {
	out := slices.Clone(r)
	for _, s := range r {
		for c := s.lo; c <= s.hi; c++ {
			for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
				out = append(out, span{f, f})
			}
		}
	}
	return newRunes(out...)
}

func ofTable(t *unicode.RangeTable) runes {
	var out runes
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			out = append(out, span{lo, hi})
			return
		}
		for c := lo; c <= hi; c += stride {
			out = append(out, span{c, c})
		}
	}
	for _, r := range t.R16 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range t.R32 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return newRunes(out...)
}

func (r runes) key() string {
	b := make([]byte, 0, len(r)*8)
	for _, s := range r {
		b = binary.LittleEndian.AppendUint32(b, uint32(s.lo))
		b = binary.LittleEndian.AppendUint32(b, uint32(s.hi))
	}
	return string(b)
}

// clip is the part of the set from lo to hi.
func (r runes) clip(lo, hi rune) runes {
	i, _ := slices.BinarySearchFunc(r, lo, func(s span, lo rune) int { return cmp.Compare(s.hi, lo) })
	var out runes
	for ; i < len(r) && r[i].lo <= hi; i++ {
		out = append(out, span{max(r[i].lo, lo), min(r[i].hi, hi)})
	}
	return out
}

// set is the language of single characters of r.
func (b *Builder) set(r runes) (*DFA, error) {
	key := r.key()
	if d, ok := b.sets[key]; ok {
		return d, nil
	}
	u := utf8Tree{known: map[string]int32{}}
	u.add() // the start
	u.end = u.add()
	for c := range 256 {
		to := u.lead(r, byte(c)) // may move u.next
		u.next[c] = to
	}
	d := &DFA{columns: 256, next: u.next, accept: make([]bool, len(u.next)/256)}
	for c := range d.class {
		d.class[c] = uint8(c)
	}
	d.accept[u.end] = true
	if err := b.step(len(r) + len(u.next)/16); err != nil {
		return nil, err
	}
	d, err := b.minimise(d)
	if err == nil {
		b.sets[key] = d
	}
	return d, err
}

// A utf8Tree has the bytes of characters; equal subtrees that hang below a full block are one.
type utf8Tree struct {
	next  []int32 // 256 a state
	end   int32
	known map[string]int32 // depth and set relative to its block → state
}

func (u *utf8Tree) add() int32 {
	s := int32(len(u.next) / 256)
	for range 256 {
		u.next = append(u.next, dead)
	}
	return s
}

// lead is the state after the first byte of a character.
func (u *utf8Tree) lead(r runes, c byte) int32 {
	switch {
	case c < 0x80:
		return u.below(r.clip(rune(c), rune(c)), rune(c), 0)
	case c >= 0xC2 && c < 0xE0:
		lo := rune(c&0x1F) << 6
		return u.below(r.clip(lo, lo|0x3F), lo, 1)
	case c >= 0xE0 && c < 0xF0:
		lo := rune(c&0x0F) << 12
		return u.below(r.clip(max(lo, 0x800), lo|0xFFF), lo, 2)
	case c >= 0xF0 && c < 0xF5:
		lo := rune(c&0x07) << 18
		return u.below(r.clip(max(lo, 0x10000), lo|0x3FFFF), lo, 3)
	}
	return dead
}

// below is the state before depth more bytes, for a set within the block that begins with base.
func (u *utf8Tree) below(r runes, base rune, depth int) int32 {
	if len(r) == 0 {
		return dead
	}
	if depth == 0 {
		return u.end
	}
	relative := make(runes, len(r))
	for i, s := range r {
		relative[i] = span{s.lo - base, s.hi - base}
	}
	key := string(rune('0'+depth)) + relative.key()
	if s, ok := u.known[key]; ok {
		return s
	}
	s := u.add()
	u.known[key] = s
	size := rune(1) << (6 * (depth - 1))
	for i := range rune(64) {
		lo := base + i*size
		to := u.below(r.clip(lo, lo+size-1), lo, depth-1)
		u.next[int(s)*256+0x80+int(i)] = to
	}
	return s
}
