package tokenizer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// added is a token that is looked for in the text before the model sees it.
type added struct {
	text       string
	id         int32
	special    bool // a control token: text when special tokens are not parsed
	lstrip     bool // takes the white space before it
	rstrip     bool // takes the white space after it
	singleWord bool // only where no word character touches it
	normalized bool // looked for in the normalized text
}

// matcher finds added tokens: leftmost, and of several at one place the longest, as Hugging Face does.
type matcher struct {
	tokens []added   // sorted by text
	first  [256]bool // the bytes that a token begins with
}

// newMatcher takes tokens that satisfy keep. Of two with the same text the later one counts.
func newMatcher(tokens []added, keep func(added) bool) *matcher {
	m := &matcher{}
	for _, token := range tokens {
		if token.text != "" && keep(token) {
			m.tokens = append(m.tokens, token)
			m.first[token.text[0]] = true
		}
	}
	if m.tokens == nil {
		return nil
	}
	slices.SortStableFunc(m.tokens, func(a, b added) int { return strings.Compare(a.text, b.text) })
	slices.Reverse(m.tokens)
	m.tokens = slices.CompactFunc(m.tokens, func(a, b added) bool { return a.text == b.text })
	slices.Reverse(m.tokens)
	return m
}

// longest returns the longest token that text begins with, or nil.
func (m *matcher) longest(text string) *added {
	for {
		at, found := slices.BinarySearchFunc(m.tokens, text, func(a added, text string) int { return strings.Compare(a.text, text) })
		if found {
			return &m.tokens[at]
		}
		if at == 0 {
			return nil
		}
		// All prefixes of text sort before it, and the nearest one before it either is a prefix or
		// shares with text at least what the longest prefix has.
		before := &m.tokens[at-1]
		common := commonPrefix(before.text, text)
		if common == len(before.text) {
			return before
		}
		if common == 0 {
			return nil
		}
		text = text[:common]
	}
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// split calls text for the ranges between added tokens, and token for each token, in order. Control tokens
// that are not trusted are text.
func (m *matcher) split(s string, t trust, text func(start, end int), token func(id int32)) {
	done := 0
	for i := 0; i < len(s); {
		if !m.first[s[i]] {
			i++
			continue
		}
		a, size := m.trusted(s, i, t)
		if a == nil {
			i += size
			continue
		}
		start, end := i, i+size
		i = end
		if a.singleWord && (wordBefore(s[:start]) || wordAfter(s[end:])) {
			continue
		}
		if a.lstrip {
			start = max(done, len(strings.TrimRightFunc(s[:start], unicode.IsSpace)))
		}
		if a.rstrip {
			end = len(s) - len(strings.TrimLeftFunc(s[end:], unicode.IsSpace)) // it takes no token from there, though
		}
		if start > done {
			text(done, start)
		}
		if start < end { // otherwise the one before it has taken it
			token(a.id)
		}
		done = end
	}
	if done < len(s) {
		text(done, len(s))
	}
}

// trusted returns the longest token at i and its length; a control token that reaches into plain text
// makes place for a shorter one. Without a token it returns how far to go on.
func (m *matcher) trusted(s string, i int, t trust) (*added, int) {
	a := m.longest(s[i:])
	if a == nil {
		return nil, 1
	}
	size := len(a.text)
	reach := t.reach(i, i+size)
	if !a.special || reach == i+size {
		return a, size
	}
	if reach == i {
		return nil, size
	}
	if a = m.longest(s[i:reach]); a == nil {
		return nil, 1
	}
	return a, len(a.text)
}

// isWord is \w of the Rust regex crate: letters, marks, decimal digits, connectors, join controls.
func isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.Is(unicode.Nd, r) || unicode.Is(unicode.Nl, r) ||
		unicode.Is(unicode.Pc, r) || unicode.Is(unicode.Other_Alphabetic, r) || r == 0x200c || r == 0x200d || unicode.Is(laterWords, r)
}

func wordBefore(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && isWord(r)
}

func wordAfter(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && isWord(r)
}
