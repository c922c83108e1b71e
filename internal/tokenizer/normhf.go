package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// filterMap rewrites text character by character: f returns the new character, or a negative number to
// drop it. Bytes that are not UTF-8 stay.
func filterMap(text string, f func(rune) rune) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 {
			i++
			continue
		}
		if to := f(r); to != r {
			b.WriteString(text[done:i])
			if to >= 0 {
				b.WriteRune(to)
			}
			done = i + n
		}
		i += n
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// stripAccents drops all marks.
type stripAccents struct{}

func (stripAccents) normalize(text string) string {
	return filterMap(text, func(r rune) rune {
		if isCombining(r) {
			return -1
		}
		return r
	})
}

// strip drops white space at the ends.
type strip struct{ left, right bool }

func (s strip) normalize(text string) string {
	if s.left {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
	}
	if s.right {
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	}
	return text
}

// nmt is the cleaning that Google's translation models apply (SentencePiece, builder.cc, "nmt").
type nmt struct{}

func (nmt) normalize(text string) string {
	return filterMap(text, func(r rune) rune {
		switch {
		case r >= 0x1 && r <= 0x8, r == 0xb, r >= 0xe && r <= 0x1f, r == 0x7f, r == 0x8f, r == 0x9f:
			return -1
		case r == '\t', r == '\n', r == '\f', r == '\r', r == 0x1680, r >= 0x200b && r <= 0x200f,
			r == 0x2028, r == 0x2029, r == 0x2581, r == 0xfeff, r == 0xfffd:
			return ' '
		}
		return r
	})
}

// byteMap is the ByteLevel normalizer and the mapping of the ByteLevel pre-tokenizer: a printable
// character for each byte.
type byteMap struct{}

func (byteMap) normalize(text string) string {
	b := make([]byte, 0, 2*len(text))
	for i := range len(text) {
		b = utf8.AppendRune(b, byteToChar(text[i]))
	}
	return string(b)
}

// byteToChar is GPT-2's printable character for a byte.
func byteToChar(b byte) rune {
	switch {
	case isPlain(int(b)):
		return rune(b)
	case b <= ' ':
		return 0x100 + rune(b)
	case b < 0xad:
		return 0x121 + rune(b) - 0x7f
	}
	return 0x143
}

// bertNormalizer is BERT's cleaning of text.
type bertNormalizer struct{ clean, chinese, stripAccents, lower bool }

func (n bertNormalizer) normalize(text string) string {
	if n.clean {
		text = filterMap(text, cleanBERT)
	}
	if n.chinese {
		text = spaceChinese(text)
	}
	if n.stripAccents {
		text = filterMap(composer{norm.NFD}.normalize(text), func(r rune) rune {
			if isMn(r) {
				return -1
			}
			return r
		})
	}
	if n.lower {
		text = lowercase{}.normalize(text)
	}
	return text
}

// cleanBERT drops control characters and makes spaces of white space.
func cleanBERT(r rune) rune {
	switch {
	case r == '\t' || r == '\n' || r == '\r':
		return ' '
	case r == utf8.RuneError || isBERTControl(r):
		return -1
	case unicode.IsSpace(r):
		return ' '
	}
	return r
}

// spaceChinese puts spaces around Chinese characters.
func spaceChinese(text string) string {
	if !strings.ContainsFunc(text, isChinese) {
		return text
	}
	b := make([]byte, 0, len(text)+len(text)/2)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if isChinese(r) {
			b = append(append(append(b, ' '), text[i:i+n]...), ' ')
		} else {
			b = append(b, text[i:i+n]...)
		}
		i += n
	}
	return string(b)
}

// isChinese are the ranges that BERT has: ideographs, neither kana nor hangul.
func isChinese(r rune) bool {
	switch {
	case r < 0x3400:
		return false
	case r <= 0x4dbf, r >= 0x4e00 && r <= 0x9fff, r >= 0xf900 && r <= 0xfaff, r >= 0x20000 && r <= 0x2a6df,
		r >= 0x2a700 && r <= 0x2b73f, r >= 0x2b740 && r <= 0x2b81f, r >= 0x2b920 && r <= 0x2ceaf, r >= 0x2f800 && r <= 0x2fa1f:
		return true
	}
	return false
}

// replacePattern is the Replace normalizer with a pattern.
type replacePattern struct {
	finder
	content string
}

func (p replacePattern) normalize(text string) string { return orSame(p, text) }

// try is normalize with the error of a pattern that took too long.
func (p replacePattern) try(text string, most int) (string, error) {
	var b strings.Builder
	changed := false
	err := p.find(text, func(start, end int, match bool) {
		if b.Len() > most {
			return
		}
		if match {
			b.WriteString(p.content)
			changed = true
		} else {
			b.WriteString(text[start:end])
		}
	})
	switch {
	case err != nil || !changed:
		return text, err
	case b.Len() > most:
		return "", tooMuch(most)
	}
	return b.String(), nil
}
