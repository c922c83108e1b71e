package tokenizer

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// lexicon is the vocabulary in alphabetical order, to find all tokens that a text begins with. It is a trie
// without nodes: a node is a range of tokens that begin alike.
type lexicon struct {
	vocab *vocab
	order u32s
	keys  []byte      // keySize bytes of each token in order, or all it has
	first [257]uint32 // where the tokens begin that begin with a byte
	pairs u32s        // where the longer tokens begin that begin with two bytes
}

const keySize = 8

// maxLexical bounds the bytes of a token of a lexicon, since a text may begin with all of it at every place.
const maxLexical = 1 << 10

// newLexicon orders the tokens that are to be found. Of equal tokens the last one counts.
func newLexicon(v *vocab, alloc Alloc, keep func(id uint32) bool) (*lexicon, error) {
	type entry struct {
		key uint64 // the first 8 bytes
		id  uint32
	}
	var all []entry
	for id := range uint32(v.count()) {
		if token := v.bytes(id); v.flags[id] != 0 && len(token) > 0 && keep(id) {
			if len(token) > maxLexical {
				return nil, formatError("token %d has %d bytes; at most %d are possible in such a vocabulary", id, len(token), maxLexical)
			}
			var key [8]byte
			copy(key[:], token)
			all = append(all, entry{binary.BigEndian.Uint64(key[:]), id})
		}
	}
	slices.SortFunc(all, func(a, b entry) int {
		if c := cmp.Compare(a.key, b.key); c != 0 {
			return c
		}
		if c := bytes.Compare(v.bytes(a.id), v.bytes(b.id)); c != 0 {
			return c
		}
		return cmp.Compare(b.id, a.id)
	})
	all = slices.CompactFunc(all, func(a, b entry) bool {
		return a.key == b.key && bytes.Equal(v.bytes(a.id), v.bytes(b.id))
	})
	l := &lexicon{vocab: v}
	if err := l.allocate(len(all), alloc); err != nil {
		return nil, err
	}
	pair := 0
	for i, e := range all {
		token := v.bytes(e.id)
		l.order.set(uint32(i), e.id)
		binary.BigEndian.PutUint64(l.keys[keySize*i:], e.key)
		l.first[int(token[0])+1]++
		if len(token) > 1 {
			for ; pair <= int(token[0])<<8|int(token[1]); pair++ {
				l.pairs.set(uint32(pair), uint32(i))
			}
		}
	}
	for ; pair <= 1<<16; pair++ {
		l.pairs.set(uint32(pair), uint32(len(all)))
	}
	for i := range 256 {
		l.first[i+1] += l.first[i]
	}
	return l, nil
}

func (l *lexicon) allocate(n int, alloc Alloc) error {
	for _, part := range []struct {
		into *[]byte
		n    int
	}{{(*[]byte)(&l.order), 4 * n}, {&l.keys, keySize * n}, {(*[]byte)(&l.pairs), 4 * (1<<16 + 1)}} {
		b, err := alloc(part.n)
		if err != nil {
			return err
		}
		*part.into = b
	}
	return nil
}

// A prefix is a range of tokens that have their first bytes in common.
type prefix struct {
	low, high uint32
	length    int
	lead      byte // the first byte
}

// root is the empty prefix.
func (l *lexicon) root() prefix { return prefix{high: uint32(l.order.len())} }

// token returns the token that is the prefix itself.
func (l *lexicon) token(p prefix) (uint32, bool) {
	if p.low >= p.high || p.length < keySize && l.keys[keySize*int(p.low)+p.length] != 0 {
		return 0, false
	}
	id := l.order.at(p.low)
	return id, len(l.vocab.bytes(id)) == p.length
}

// step makes a prefix longer by a byte; false if no token has it.
func (l *lexicon) step(p prefix, c byte) (prefix, bool) {
	switch p.length {
	case 0:
		p = prefix{l.first[c], l.first[int(c)+1], 1, c}
		return p, p.low < p.high
	case 1:
		pair := uint32(p.lead)<<8 | uint32(c)
		p = prefix{l.pairs.at(pair), min(l.pairs.at(pair+1), p.high), 2, p.lead}
		return p, p.low < p.high
	}
	if _, is := l.token(p); is {
		p.low++ // it is no longer than the prefix, and the only such
	}
	p.low = l.search(p, int(c))
	p.high = l.search(p, int(c)+1)
	p.length++
	return p, p.low < p.high
}

// find returns the token that is a text.
func (l *lexicon) find(text string) (uint32, bool) {
	p, ok := l.root(), len(text) > 0
	for i := 0; i < len(text) && ok; i++ {
		p, ok = l.step(p, text[i])
	}
	if !ok {
		return 0, false
	}
	return l.token(p)
}

// search returns the first place in a prefix's range, of longer tokens, whose next byte is not less than c.
func (l *lexicon) search(p prefix, c int) uint32 {
	low, high := p.low, p.high
	for low < high {
		middle := low + (high-low)/2
		if l.next(middle, p.length) < c {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// next returns a byte of the token at a place, which is long enough.
func (l *lexicon) next(place uint32, at int) int {
	if at < keySize {
		return int(l.keys[keySize*int(place)+at])
	}
	return int(l.vocab.bytes(l.order.at(place))[at])
}

// walk makes a prefix longer by a string.
func (l *lexicon) walk(p prefix, s string) (prefix, bool) {
	ok := true
	for i := 0; i < len(s) && ok; i++ {
		p, ok = l.step(p, s[i])
	}
	return p, ok
}

// longest returns the longest token that goes on from a prefix with what s begins with, and the length of
// that; 0 if there is none.
func (l *lexicon) longest(p prefix, s string) (id uint32, length int) {
	ok := true
	for i := range len(s) {
		if p, ok = l.step(p, s[i]); !ok {
			break
		}
		if got, is := l.token(p); is {
			id, length = got, i+1
		}
	}
	return id, length
}
