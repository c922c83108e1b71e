package tokenizer

import "unicode/utf8"

// wordPiece cuts a word into the longest tokens from its beginning on; those inside a word are written with
// a mark before them. A word that cannot be cut so is unknown (Schuster and Nakajima, 2012; BERT).
type wordPiece struct {
	lex      *lexicon
	inside   prefix // the mark
	none     bool   // no token has the mark
	maxChars int    // of a word; longer ones are unknown
	unk      uint32 // noToken: unknown words are dropped
}

func newWordPiece(v *vocab, alloc Alloc, mark string, maxChars int, unk uint32, keep func(id uint32) bool) (*wordPiece, error) {
	lex, err := newLexicon(v, alloc, keep)
	if err != nil {
		return nil, err
	}
	m := &wordPiece{lex: lex, maxChars: maxChars, unk: unk}
	inside, ok := lex.walk(lex.root(), mark)
	m.inside, m.none = inside, !ok
	return m, nil
}

func (m *wordPiece) encode(dst []int32, piece string, s *scratch) []int32 {
	return remembered(dst, m.lex.vocab, piece, s, m)
}

// merge is encode without a look at what is remembered.
func (m *wordPiece) merge(dst []int32, piece string, _ *scratch) []int32 {
	start := len(dst)
	if utf8.RuneCountInString(piece) > m.maxChars {
		return m.unknown(dst, start)
	}
	from := m.lex.root()
	for at := 0; at < len(piece); {
		if at > 0 {
			if from = m.inside; m.none {
				return m.unknown(dst, start)
			}
		}
		id, n := m.lex.longest(from, piece[at:])
		if n == 0 {
			return m.unknown(dst, start)
		}
		dst = append(dst, int32(id))
		at += n
	}
	return dst
}

// unknown puts the unknown token in the place of a word's tokens.
func (m *wordPiece) unknown(dst []int32, start int) []int32 {
	dst = dst[:start]
	if m.unk != noToken {
		dst = append(dst, int32(m.unk))
	}
	return dst
}

// wordLevel has whole words only.
type wordLevel struct {
	vocab *vocab
	unk   uint32 // noToken: unknown words are dropped
}

func (m *wordLevel) encode(dst []int32, piece string, _ *scratch) []int32 {
	if id, ok := m.vocab.find(piece); ok {
		return append(dst, int32(id))
	}
	if m.unk != noToken {
		return append(dst, int32(m.unk))
	}
	return dst
}
