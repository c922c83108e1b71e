package tokenizer

import (
	"bytes"
	"math"
	"slices"
	"unicode/utf8"
)

// spaceMark is what SentencePiece writes for a space.
const spaceMark = "▁"

// byteTokens are the tokens for single bytes that stand in for characters without a token.
type byteTokens struct {
	ids [256]uint32 // noToken where there is none
	unk uint32      // for a byte without a token; noToken: it is dropped
}

func newByteTokens() byteTokens {
	var b byteTokens
	for i := range b.ids {
		b.ids[i] = noToken
	}
	b.unk = noToken
	return b
}

// parseByteToken reads a token that is written <0x0A>, the only form that encoders look for; decoders take
// <0x0a> too, as byteOf does.
func parseByteToken(token []byte) (byte, bool) {
	b, ok := byteOf(token)
	return b, ok && !bytes.ContainsAny(token[3:5], "abcdef")
}

// all reports whether every byte has a token.
func (b *byteTokens) all() bool { return !slices.Contains(b.ids[:], noToken) }

// append appends the tokens of a character's bytes.
func (b *byteTokens) append(ids []uint32, char string) []uint32 {
	for i := 0; i < len(char); i++ {
		if b.ids[char[i]] == noToken { // one missing byte makes the whole character unknown
			if b.unk != noToken {
				ids = append(ids, b.unk)
			}
			return ids
		}
	}
	for i := 0; i < len(char); i++ {
		ids = append(ids, b.ids[char[i]])
	}
	return ids
}

// pendingUnknown is an unknown character that waits to be joined by more. As in the library, only a character with
// a token ends the wait: bytes that stand in for others go before it.
type pendingUnknown struct {
	bytes *byteTokens
	fuse  bool // unknown characters in a row are one
	waits bool
}

// append appends what a character without a token becomes.
func (p *pendingUnknown) append(ids []uint32, char string) []uint32 {
	if p.bytes.has(char) {
		return p.bytes.append(ids, char)
	}
	if !p.fuse {
		ids = p.flush(ids)
	}
	p.waits = p.bytes.unk != noToken
	return ids
}

func (p *pendingUnknown) flush(ids []uint32) []uint32 {
	if p.waits {
		ids, p.waits = append(ids, p.bytes.unk), false
	}
	return ids
}

// has reports whether every byte of a text has a token.
func (b *byteTokens) has(text string) bool {
	for i := range len(text) {
		if b.ids[text[i]] == noToken {
			return false
		}
	}
	return true
}

// charBPE is BPE that begins with characters, with bytes for those that have no token (Llama 2 and
// Gemma in tokenizer.json).
type charBPE struct {
	vocab        *vocab
	merges       *merges
	bytes        byteTokens
	fuseUnk      bool
	ignoreMerges bool
	words        words
	apart        bool // unknown characters of two words stay apart: there are none, or they are not fused
}

func (m *charBPE) encode(dst []int32, piece string, s *scratch) []int32 {
	if m.ignoreMerges {
		if id, ok := m.vocab.find(piece); ok {
			return append(dst, int32(id))
		}
	}
	if !m.apart {
		return m.merge(dst, piece, s)
	}
	return m.words.encode(dst, m.vocab, piece, s, m)
}

// merge is encode without a look at the words.
func (m *charBPE) merge(dst []int32, piece string, s *scratch) []int32 {
	s.ids = s.ids[:0]
	waits := pendingUnknown{bytes: &m.bytes, fuse: m.fuseUnk}
	for i := 0; i < len(piece); {
		_, n := utf8.DecodeRuneInString(piece[i:])
		if id, ok := m.vocab.find(piece[i : i+n]); ok {
			s.ids = append(waits.flush(s.ids), id)
		} else {
			s.ids = waits.append(s.ids, piece[i:i+n])
		}
		i += n
	}
	s.ids = waits.flush(s.ids)
	return mergeSymbols(dst, s, m.merges)
}

// scoredBPE is SentencePiece's BPE: any two neighbours that make a token together may be joined; the
// pair whose token has the highest score goes first, and of equals the leftmost.
type scoredBPE struct {
	vocab  *vocab
	scores u32s // a key that falls as the score rises
	bytes  byteTokens
	words  words
	single bool // text begins as bytes instead of characters
}

// scoreKey maps a score to a key for a heap whose least key comes first.
func scoreKey(score float32) uint32 {
	if score == 0 {
		score = 0 // of both zeros
	}
	bits := math.Float32bits(score)
	if bits>>31 == 0 {
		return ^(bits | 1<<31)
	}
	return bits
}

// span is a symbol: a part of the text.
type span struct{ start, end, prev, next int32 }

func (m *scoredBPE) encode(dst []int32, piece string, s *scratch) []int32 {
	return m.words.encode(dst, m.vocab, piece, s, m)
}

// merge is encode without a look at the words.
func (m *scoredBPE) merge(dst []int32, piece string, s *scratch) []int32 {
	if piece == "" {
		return dst
	}
	spans, heap := s.spans[:0], s.heap[:0]
	for i := 0; i < len(piece); {
		n := 1
		if !m.single {
			n = runeLen(piece[i:])
		}
		at := int32(len(spans))
		spans = append(spans, span{int32(i), int32(i + n), at - 1, at + 1})
		i += n
	}
	spans[len(spans)-1].next = -1
	for i := range spans[:len(spans)-1] {
		if key, ok := m.key(piece, spans, int32(i)); ok {
			heap = append(heap, key)
		}
	}
	heapify(heap)
	tried := 0
	for ; len(heap) > 0; tried++ {
		top := heap[0]
		heap = heapPop(heap)
		at := int32(uint32(top))
		if key, ok := m.key(piece, spans, at); ok && key == top {
			heap = m.join(piece, spans, at, heap)
		}
	}
	count(tried)
	s.spans, s.heap = spans, heap
	return m.tokens(dst, piece, s)
}

// key returns the heap's entry for the pair that begins at a symbol.
func (m *scoredBPE) key(piece string, spans []span, at int32) (uint64, bool) {
	left := spans[at]
	if left.end == left.start || left.next < 0 {
		return 0, false
	}
	id, ok := m.vocab.find(piece[left.start:spans[left.next].end])
	if !ok {
		return 0, false
	}
	return uint64(m.scores.at(id))<<32 | uint64(at), true
}

// join makes a symbol and its right neighbour one and pushes the pairs that come of it.
func (m *scoredBPE) join(piece string, spans []span, at int32, heap []uint64) []uint64 {
	left := &spans[at]
	right := &spans[left.next]
	left.end, left.next = right.end, right.next
	right.end = right.start // gone
	if left.next >= 0 {
		spans[left.next].prev = at
	}
	for _, first := range []int32{left.prev, at} {
		if first < 0 {
			continue
		}
		if key, ok := m.key(piece, spans, first); ok {
			heap = heapPush(heap, key)
		}
	}
	return heap
}

// tokens appends the tokens of the symbols that are left.
func (m *scoredBPE) tokens(dst []int32, piece string, s *scratch) []int32 {
	s.ids = s.ids[:0]
	for at := int32(0); at >= 0; at = s.spans[at].next {
		text := piece[s.spans[at].start:s.spans[at].end]
		if id, ok := m.vocab.find(text); ok {
			s.ids = append(s.ids, id)
		} else {
			s.ids = m.bytes.append(s.ids, text)
		}
	}
	dst = slices.Grow(dst, len(s.ids))
	for _, id := range s.ids {
		dst = append(dst, int32(id))
	}
	return dst
}
