package tokenizer

import "unicode/utf8"

// affixBPE is BPE whose tokens carry marks: one on those inside a word, one on those at its end (CLIP,
// XLM, the first GPT).
type affixBPE struct {
	vocab          *vocab
	merges         *merges
	bytes          byteTokens
	prefix, suffix string
	fuseUnk        bool
	ignoreMerges   bool
}

func (m *affixBPE) encode(dst []int32, piece string, s *scratch) []int32 {
	if m.ignoreMerges {
		if id, ok := m.vocab.find(piece); ok {
			return append(dst, int32(id))
		}
	}
	s.ids = s.ids[:0]
	unknown := false // an unknown character waits to be joined by more
	for i := 0; i < len(piece); {
		_, n := utf8.DecodeRuneInString(piece[i:])
		char := piece[i : i+n]
		if i > 0 {
			char = m.prefix + char
		}
		if i += n; i == len(piece) {
			char += m.suffix
		}
		if id, ok := m.vocab.find(char); ok {
			if unknown {
				s.ids = append(s.ids, m.bytes.unk)
			}
			s.ids, unknown = append(s.ids, id), false
			continue
		}
		if m.bytes.has(char) {
			s.ids = m.bytes.append(s.ids, char)
			continue
		}
		if unknown && !m.fuseUnk {
			s.ids = append(s.ids, m.bytes.unk)
		}
		unknown = m.bytes.unk != noToken
	}
	if unknown {
		s.ids = append(s.ids, m.bytes.unk)
	}
	return mergeSymbols(dst, s, m.merges)
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
