package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// clusterLen returns the length of the extended grapheme cluster that s begins with (UAX #29), s not empty.
// Rules that only join characters of 3 bytes and more (emoji sequences, flags, syllables of Indic scripts)
// are left out: the one who asks treats clusters from 6 bytes on like their characters.
func clusterLen(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == '\r' && n < len(s) && s[n] == '\n':
		return n + 1
	case breaksClusters(r) || r == utf8.RuneError && n == 1:
		return n
	}
	prepends := isPrepend(r)
	for n < len(s) {
		next, size := utf8.DecodeRuneInString(s[n:])
		if next == utf8.RuneError && size == 1 || breaksClusters(next) || !prepends && !extends(next) {
			return n
		}
		prepends = isPrepend(next)
		n += size
	}
	return n
}

// breaksClusters is Grapheme_Cluster_Break=Control, CR or LF.
func breaksClusters(r rune) bool {
	switch {
	case r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0xad:
		return true
	case r < 0x600 || r == 0x200c || r == 0x200d || unicode.Is(unicode.Prepended_Concatenation_Mark, r) || extends(r):
		return false
	}
	return unicode.Is(unicode.Cf, r) || r == 0x2028 || r == 0x2029 || r >= 0xe0000 && r < 0xe1000 ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) && !unicode.IsLetter(r)
}

// extends is Grapheme_Cluster_Break=Extend, ZWJ or SpacingMark.
func extends(r rune) bool {
	switch {
	case r < 0x300:
		return false
	case r == 0x200c || r == 0x200d || r == 0xe33 || r == 0xeb3 || r >= 0x1f3fb && r <= 0x1f3ff:
		return true
	}
	return unicode.IsMark(r) && !isLooseMark(r) || unicode.Is(unicode.Other_Grapheme_Extend, r)
}

// isLooseMark are the marks that begin a cluster of their own.
func isLooseMark(r rune) bool {
	switch {
	case r < 0x102b || r > 0x11721:
		return false
	case r == 0x102b, r == 0x102c, r == 0x1038, r >= 0x1062 && r <= 0x1064, r >= 0x1067 && r <= 0x106d, r == 0x1083,
		r >= 0x1087 && r <= 0x108c, r == 0x108f, r >= 0x109a && r <= 0x109c, r == 0x1a61, r == 0x1a63, r == 0x1a64,
		r == 0xaa7b, r == 0xaa7d, r == 0x11720, r == 0x11721:
		return true
	}
	return false
}

// isPrepend is Grapheme_Cluster_Break=Prepend.
func isPrepend(r rune) bool {
	switch {
	case r < 0x600:
		return false
	case r == 0xd4e, r == 0x111c2, r == 0x111c3, r == 0x1193f, r == 0x11941, r == 0x11a3a, r >= 0x11a84 && r <= 0x11a89,
		r == 0x11d46, r == 0x11f02:
		return true
	}
	return unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}
