package tokenizer

import (
	"strings"
	"sync"
	"sync/atomic"
)

// A piece that is a token nearly always becomes that token, but not always: merges may lead elsewhere.
// wholeTokens remembers of which tokens it is known, so that most words cost one look-up. It is filled
// as words are met, has one bit a token whatever the text, and never changes an answer.
type wholeTokens struct {
	once sync.Once
	bits []atomic.Uint32
}

func (w *wholeTokens) init(count int) {
	w.once.Do(func() { w.bits = make([]atomic.Uint32, count/32+1) })
}

func (w *wholeTokens) get(id uint32) bool { return w.bits[id/32].Load()>>(id%32)&1 != 0 }

func (w *wholeTokens) put(id uint32) { w.bits[id/32].Or(1 << (id % 32)) }

// A merger makes the ids of a piece as its model defines them, without looking at what is remembered.
type merger interface {
	merge(dst []int32, piece string, s *scratch) []int32
}

// word appends the ids of a piece: its own id where that is known to be right, otherwise what m makes
// of it. With tokens, a piece that is a token is that token, whatever the merges say.
func (w *wholeTokens) word(dst []int32, v *vocab, piece string, s *scratch, m merger, tokens bool) []int32 {
	hash := v.hash(piece)
	if out, ok := s.pieces.append(dst, hash, piece); ok {
		return out
	}
	start := len(dst)
	id, found := v.findHash(hash, piece)
	w.init(v.count())
	if found && (tokens || w.get(id)) {
		return append(dst, int32(id))
	}
	dst = m.merge(dst, piece, s)
	if found && len(dst) == start+1 && dst[start] == int32(id) {
		w.put(id)
		return dst
	}
	s.pieces.put(hash, piece, dst[start:])
	return dst
}

// remembered appends the ids of a piece, from the cache where it has them.
func remembered(dst []int32, v *vocab, piece string, s *scratch, m merger) []int32 {
	hash := v.hash(piece)
	if out, ok := s.pieces.append(dst, hash, piece); ok {
		return out
	}
	start := len(dst)
	dst = m.merge(dst, piece, s)
	s.pieces.put(hash, piece, dst[start:])
	return dst
}

// words cuts text without a pre-tokenizer where no token can cross: before a mark for a space that
// follows a byte which no token has before such a mark. Merges on both sides then never meet, and the
// ids are those of the whole text.
type words struct {
	whole   wholeTokens
	once    sync.Once
	crossed [256]bool // by the byte before the mark
}

func (w *words) init(v *vocab) {
	w.once.Do(func() {
		for id := range uint32(v.count()) {
			token := string(v.bytes(id))
			for at := 0; ; {
				i := strings.Index(token[at:], spaceMark)
				if i < 0 {
					break
				}
				if at += i; at > 0 {
					w.crossed[token[at-1]] = true
				}
				at += len(spaceMark)
			}
		}
	})
}

// next returns the end of the first word of a text that is not empty.
func (w *words) next(text string) int {
	for at := 1; at < len(text); {
		i := strings.Index(text[at:], spaceMark)
		if i < 0 {
			break
		}
		if at += i; !w.crossed[text[at-1]] {
			return at
		}
		at += len(spaceMark)
	}
	return len(text)
}

// encode appends the ids of text, word for word.
func (w *words) encode(dst []int32, v *vocab, text string, s *scratch, m merger) []int32 {
	w.init(v)
	for text != "" {
		end := w.next(text)
		dst = w.whole.word(dst, v, text[:end], s, m, false)
		text = text[end:]
	}
	return dst
}
