package tokenizer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// runeSet is a set of characters as sorted ranges.
type runeSet [][2]rune

// newRuneSet reads a set as patterns write it between brackets: characters and ranges a-b, no escapes.
func newRuneSet(spec string) runeSet {
	var set runeSet
	runes := []rune(spec)
	for i := 0; i < len(runes); i++ {
		r := [2]rune{runes[i], runes[i]}
		if i+2 < len(runes) && runes[i+1] == '-' {
			r[1] = runes[i+2]
			i += 2
		}
		at := len(set) // most are in order
		for at > 0 && set[at-1][0] > r[0] {
			at--
		}
		set = slices.Insert(set, at, r)
	}
	joined := set[:0]
	for _, r := range set {
		if last := len(joined) - 1; last >= 0 && r[0] <= joined[last][1] {
			joined[last][1] = max(joined[last][1], r[1])
			continue
		}
		joined = append(joined, r)
	}
	return joined
}

func (set runeSet) has(r rune) bool {
	at, found := slices.BinarySearchFunc(set, r, func(a [2]rune, r rune) int { return int(a[0] - r) })
	return found || at > 0 && r <= set[at-1][1]
}

// runOf is `X+` with something optional before it: nothing, a space, or any white space.
type runOf struct {
	in   func(rune) bool
	lead func(rune) bool // nil: nothing
}

func (p runOf) match(s string, i int) int {
	if p.lead != nil {
		if r, n := utf8.DecodeRuneInString(s[i:]); p.lead(r) {
			if end := p.run(s, i+n); end > i+n {
				return end
			}
		}
	}
	return p.run(s, i)
}

func (p runOf) run(s string, i int) int {
	start := i
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !p.in(r) {
			break
		}
		i += n
	}
	count(i - start)
	return i
}

// firstOf is an alternation.
type firstOf []scanner

func (p firstOf) match(s string, i int) int {
	for _, each := range p {
		if end := each.match(s, i); end > i {
			return end
		}
	}
	return i
}

func isSpaceChar(r rune) bool { return r == ' ' }
func isNewline(r rune) bool   { return r == '\n' }
func isBreak(r rune) bool     { return r == '\r' || r == '\n' }

// isPunctOrASCII is \p{P} and the rest of ASCII's punctuation, which several tokenizers count with it.
func isPunctOrASCII(r rune) bool {
	return unicode.IsPunct(r) || r < utf8.RuneSelf && asciiClass[r]&punct != 0
}

// isPunctButTick is isPunctOrASCII without the grave accent.
func isPunctButTick(r rune) bool { return r != '`' && isPunctOrASCII(r) }

// threeDigits is `[0-9][0-9][0-9]`.
type threeDigits struct{}

func (threeDigits) match(s string, i int) int {
	end := i + 3
	if end > len(s) {
		return i
	}
	for _, c := range []byte(s[i:end]) {
		if c < '0' || c > '9' {
			return i
		}
	}
	return end
}

// exaoneWords is the pattern of EXAONE MoE, in which single spaces between letters belong to words:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+
type exaoneWords struct{}

func (p exaoneWords) match(s string, i int) int {
	if end := contraction(s, i, true); end > i {
		return end
	}
	c, n := classOf(s, i)
	if c&(newline|letter|number) == 0 {
		if end := p.words(s, i+n); end > i+n {
			return end
		}
	}
	if end := p.words(s, i); end > i {
		return end
	}
	if c&number != 0 {
		return i + n
	}
	if end := symbols(s, i, 0, 0, 0); end > i {
		if end < len(s) && asciiIs(s[end], newline) {
			end++
		}
		return end
	}
	if end := lineBreaks(s, i); end > i {
		return end
	}
	return spaces(s, i)
}

// words is `(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+`, or i.
func (exaoneWords) words(s string, i int) int {
	if c, _ := classOf(s, i); c&letter == 0 {
		return i
	}
	start := i
	for {
		i = while(s, i, letter|mark, unlimited)
		if i >= len(s) || s[i] != ' ' {
			break
		}
		if c, _ := classOf(s, i+1); c&letter == 0 {
			break
		}
		i++
	}
	count(i - start)
	return i
}

// sentinels are the special tokens that Chameleon's pre-tokenizer looks for: `<sentinel:[0-9]+>`, or images,
// `(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z`.
type sentinels struct{ image bool }

func (p sentinels) match(s string, i int) int {
	head, first, last, end, most := "<sentinel:", byte('0'), byte('9'), byte('>'), len(s)
	if p.image {
		head, first, last, end, most = "IMGIMG", 'A', 'I', 'Z', 4
	}
	rest, ok := strings.CutPrefix(s[i:], head)
	if !ok {
		return i
	}
	n := 0
	for n < most && n < len(rest) && rest[n] >= first && rest[n] <= last {
		n++
	}
	count(n)
	if n == 0 || n == len(rest) || rest[n] != end {
		return i
	}
	return len(s) - len(rest) + n + 1
}

// indents is `([\t\n]|    |  )` of Chameleon.
type indents struct{}

func (indents) match(s string, i int) int {
	switch {
	case s[i] == '\t' || s[i] == '\n':
		return i + 1
	case strings.HasPrefix(s[i:], "    "):
		return i + 4
	case strings.HasPrefix(s[i:], "  "):
		return i + 2
	}
	return i
}
