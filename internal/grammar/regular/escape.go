package regular

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

var (
	lineEnds = runes{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}
	digits   = runes{{'0', '9'}}
	words    = runes{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}
	spaces   = runes{{'\t', '\r'}, {' ', ' '}, {0xA0, 0xA0}, {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029},
		{0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}}
)

// escape reads what stands behind a backslash outside classes.
func (p *parser) escape() *node {
	at := p.at - 1
	if p.at == len(p.pattern) {
		p.fail(at, `\ at the end`)
	}
	switch c := p.pattern[p.at]; {
	case c == 'b' || c == 'B':
		p.at++
		if p.fold {
			p.fail(at, `\%c within (?i: is not supported`, c)
		}
		if c == 'b' {
			return &node{kind: kindBoundary}
		}
		return &node{kind: kindNotBoundary}
	case c >= '1' && c <= '9':
		n, _ := p.number()
		return &node{kind: kindBackReference, min: n}
	case c == 'k' && strings.HasPrefix(p.rest(), "k<"):
		end := strings.IndexByte(p.rest(), '>')
		if end < 0 {
			p.fail(at, `\k< without >`)
		}
		p.at += end + 1
		return &node{kind: kindBackReference}
	}
	if set, ok := p.setEscape(); ok {
		return setNode(p.folded(set))
	}
	return p.single(p.charEscape())
}

// setEscape reads an escape that stands for many characters.
func (p *parser) setEscape() (runes, bool) {
	c := p.pattern[p.at]
	p.at++
	switch c {
	case 'd':
		return digits, true
	case 'D':
		return digits.not(), true
	case 'w':
		return words, true
	case 'W':
		return words.not(), true
	case 's':
		return spaces, true
	case 'S':
		return spaces.not(), true
	case 'p', 'P':
		set := p.property()
		if c == 'P' {
			set = set.not()
		}
		return set, true
	}
	p.at--
	return nil, false
}

// charEscape reads an escape that stands for one character.
func (p *parser) charEscape() rune {
	at := p.at - 1
	c := p.char()
	switch c {
	case 't':
		return '\t'
	case 'n':
		return '\n'
	case 'v':
		return '\v'
	case 'f':
		return '\f'
	case 'r':
		return '\r'
	case 'x':
		return p.hex(at, 2)
	case 'u':
		return p.unicodeEscape(at)
	case '0':
		if next := p.rest(); next != "" && next[0] >= '0' && next[0] <= '9' {
			p.fail(at, "octal escapes are none of ECMA-262")
		}
		return 0
	case 'c':
		if next := p.rest(); next != "" && (next[0]|0x20) >= 'a' && (next[0]|0x20) <= 'z' {
			p.at++
			return rune(next[0] & 31)
		}
	}
	if c < 0x80 && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '1' && c <= '9') {
		p.fail(at, `\%c is no escape of ECMA-262`, c)
	}
	return c
}

func (p *parser) hex(at, digits int) rune {
	if len(p.rest()) < digits {
		p.fail(at, "%d hexadecimal digits are missing", digits)
	}
	n, err := strconv.ParseUint(p.rest()[:digits], 16, 32)
	if err != nil {
		p.fail(at, "%d hexadecimal digits must follow", digits)
	}
	p.at += digits
	return rune(n)
}

// unicodeEscape reads XXXX, a pair of surrogates or {X…}. A lone surrogate matches no text.
func (p *parser) unicodeEscape(at int) rune {
	if p.take("{") {
		end := strings.IndexByte(p.rest(), '}')
		if end < 0 {
			p.fail(at, `\u{ without }`)
		}
		n, err := strconv.ParseUint(p.rest()[:end], 16, 32)
		if err != nil || n > lastRune {
			p.fail(at, `\u{%.12s} is no character`, p.rest()[:end])
		}
		p.at += end + 1
		return rune(n)
	}
	r := p.hex(at, 4)
	if r >= 0xD800 && r < 0xDC00 && strings.HasPrefix(p.rest(), `\u`) && len(p.rest()) >= 6 {
		low, err := strconv.ParseUint(p.rest()[2:6], 16, 32)
		if err == nil && low >= 0xDC00 && low < 0xE000 {
			p.at += 6
			return 0x10000 + (r-0xD800)<<10 + rune(low-0xDC00)
		}
	}
	return r
}

// class reads what stands behind a square bracket.
func (p *parser) class() runes {
	at := p.at - 1
	negated := p.take("^")
	var set runes
	for !p.take("]") {
		if p.at == len(p.pattern) {
			p.fail(at, "[ without ]")
		}
		set = append(set, p.classRange()...)
	}
	set = p.folded(newRunes(set...))
	if negated {
		return set.not()
	}
	return set
}

// classRange reads an atom of a class or a range of two. A - beside a set stands for itself.
func (p *parser) classRange() runes {
	at := p.at
	low, single := p.classAtom()
	if !single || !strings.HasPrefix(p.rest(), "-") || strings.HasPrefix(p.rest(), "-]") || p.rest() == "-" {
		return low
	}
	p.at++
	high, single := p.classAtom()
	if !single {
		return append(append(low, span{'-', '-'}), high...)
	}
	if low[0].lo > high[0].lo {
		p.fail(at, "the range %q-%q runs backwards", low[0].lo, high[0].lo)
	}
	return runes{{low[0].lo, high[0].lo}}
}

// classAtom reads a character, which gives one span of one character, or a set.
func (p *parser) classAtom() (set runes, single bool) {
	c := p.char()
	if c == '\\' {
		switch rest := p.rest(); {
		case rest == "":
			p.fail(p.at-1, `\ at the end`)
		case rest[0] == 'b':
			p.at++
			c = '\b'
		case rest[0] < utf8.RuneSelf:
			if set, ok := p.setEscape(); ok {
				return append(runes{}, set...), false
			}
			c = p.charEscape()
		default:
			c = p.char()
		}
	}
	return runes{{c, c}}, true
}
