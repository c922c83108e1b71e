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
	waits := pendingUnknown{bytes: &m.bytes, fuse: m.fuseUnk}
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
			s.ids = append(waits.flush(s.ids), id)
			continue
		}
		s.ids = waits.append(s.ids, char)
	}
	s.ids = waits.flush(s.ids)
	return mergeSymbols(dst, s, m.merges)
}
