package tokenizer

import (
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// steps counts the work of an encoding where a test asks for it, in characters passed and merges tried.
var steps *atomic.Int64

func count(n int) {
	if steps != nil {
		steps.Add(int64(n))
	}
}

// class is a set of Unicode properties of a character.
type class uint16

const (
	letter  class = 1 << iota // \p{L}
	number                    // \p{N}
	mark                      // \p{M}
	space                     // \s
	newline                   // [\r\n]
	upper                     // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
	lower                     // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
	punct                     // [\p{P}\p{S}]
	han                       // \p{Han}
)

var asciiClass = func() (table [utf8.RuneSelf]class) {
	for r := range table {
		table[r] = classify(rune(r))
	}
	return table
}()

// classOf returns the class and the length of the character at i; 0, 0 at the end. A byte that is not
// UTF-8 counts as the symbol U+FFFD.
func classOf(s string, i int) (class, int) {
	if i >= len(s) {
		return 0, 0
	}
	if c := s[i]; c < utf8.RuneSelf {
		return asciiClass[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return classify(r), n
}

// firstHan is the first character of \p{Han}.
const firstHan = 0x2e80

func classify(r rune) class {
	if r >= firstHan && (unicode.Is(unicode.Han, r) || r >= 0x2ebf0 && r <= 0x2ee5d) {
		return han | category(r)
	}
	return category(r)
}

func category(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return letter | letterCase(r)
	case unicode.IsNumber(r):
		return number
	case unicode.IsMark(r):
		return mark | upper | lower
	case r == '\r' || r == '\n':
		return space | newline
	case unicode.IsSpace(r):
		return space
	case unicode.IsPunct(r) || unicode.IsSymbol(r):
		return punct
	}
	return lateClass(r)
}

func letterCase(r rune) class {
	switch {
	case unicode.Is(unicode.Ll, r):
		return lower
	case unicode.Is(unicode.Lu, r) || unicode.Is(unicode.Lt, r):
		return upper
	}
	return upper | lower
}
