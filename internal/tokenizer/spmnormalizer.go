package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// spmNormalizer is SentencePiece's normalizer (normalizer.cc): a character map whose longest key counts,
// then spaces: an extra one before the text, runs of them as one, a mark in their place.
type spmNormalizer struct {
	chars   *charsmap // nil: characters stay
	fixed   *matcher  // user-defined symbols, which stay; nil: none
	dummy   bool      // a space before the text, or after it if suffix
	suffix  bool
	squeeze bool // no spaces at the ends, no two in a row
	escape  bool // a mark for a space
}

func (n spmNormalizer) normalize(text string) string { return orSame(n, text) }

func (n spmNormalizer) try(text string, most int) (string, error) {
	if n.squeeze {
		text = n.trimLeft(text)
	}
	if text == "" {
		return "", nil
	}
	space := " "
	if n.escape {
		space = spaceMark
	}
	var b strings.Builder
	b.Grow(len(text) + len(text)/4)
	if n.dummy && !n.suffix {
		b.WriteString(space)
	}
	afterSpace := n.squeeze
	for text != "" {
		if b.Len() > most {
			return "", tooMuch(most)
		}
		part, size := n.next(text)
		text = text[size:]
		if afterSpace {
			part = strings.TrimLeft(part, " ")
		}
		if part == "" {
			continue
		}
		afterSpace = n.squeeze && part[len(part)-1] == ' '
		if n.escape && strings.Contains(part, " ") {
			part = strings.ReplaceAll(part, " ", spaceMark)
		}
		b.WriteString(part)
	}
	out := b.String()
	if n.squeeze {
		for strings.HasSuffix(out, space) {
			out = out[:len(out)-len(space)]
		}
	}
	if n.dummy && n.suffix {
		out += space
	}
	return out, nil
}

// trimLeft drops what becomes spaces at the beginning.
func (n spmNormalizer) trimLeft(text string) string {
	for text != "" {
		part, size := n.next(text)
		if part != " " {
			break
		}
		text = text[size:]
	}
	return text
}

// next returns what the beginning of a text becomes, and its length.
func (n spmNormalizer) next(text string) (string, int) {
	if n.fixed != nil && n.fixed.first[text[0]] {
		if a := n.fixed.longest(text); a != nil {
			return a.text, len(a.text)
		}
	}
	if n.chars != nil {
		if part, size := n.chars.longest(text); size > 0 {
			return part, size
		}
	}
	r, size := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError && size == 1 {
		return "\ufffd", 1
	}
	return text[:size], size
}

// spmPieces is SentencePiece's decoder: a mark is a space, the first space is dropped, and the unknown
// token has a text of its own.
type spmPieces struct {
	perToken
	unk, surface string
	drop         bool // the space that was put before the text
	all          bool // drop all spaces at the beginning
}

func (k spmPieces) begin(_, started bool) stage { return &spmPiecesStage{kind: k, begun: started} }

type spmPiecesStage struct {
	noEnd
	kind  spmPieces
	begun bool
}

func (s *spmPiecesStage) push(c chunk, emit func(chunk)) {
	text := string(c.b)
	switch {
	case c.isByte:
	case text == s.kind.unk:
		text = s.kind.surface
	default:
		if rest, ok := strings.CutPrefix(text, spaceMark); ok && !s.begun && s.kind.drop {
			text = rest
			s.begun = !s.kind.all
		}
		text = strings.ReplaceAll(text, spaceMark, " ")
	}
	s.begun = s.begun || text != ""
	emit(chunk{[]byte(text), c.isByte})
}

// spmBPE is SentencePiece's BPE with what surrounds it: user-defined symbols are never joined with
// anything, and unknown characters in a row are one.
type spmBPE struct {
	*scoredBPE
	fixed *matcher
}

func (m spmBPE) encode(dst []int32, piece string, s *scratch) []int32 {
	start, done := len(dst), 0
	for i := 0; m.fixed != nil && i < len(piece); {
		if !m.fixed.first[piece[i]] {
			i++
			continue
		}
		a := m.fixed.longest(piece[i:])
		if a == nil {
			i++
			continue
		}
		if i > done {
			dst = m.scoredBPE.encode(dst, piece[done:i], s)
		}
		dst = append(dst, a.id)
		i += len(a.text)
		done = i
	}
	if done < len(piece) {
		dst = m.scoredBPE.encode(dst, piece[done:], s)
	}
	return dst[:start+len(fuseUnknown(dst[start:], m.bytes.unk))]
}

// fuseUnknown makes one of unknown tokens in a row.
func fuseUnknown(ids []int32, unk uint32) []int32 {
	out := ids[:0]
	for i, id := range ids {
		if i > 0 && uint32(id) == unk && uint32(out[len(out)-1]) == unk {
			continue
		}
		out = append(out, id)
	}
	return out
}
