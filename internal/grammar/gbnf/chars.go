package gbnf

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

func (p *parser) literal() cfg.Expr {
	var out []byte
	for p.err == nil && !p.take(`"`) {
		if p.at >= len(p.text) {
			p.failf(`a literal's closing " is missing`)
			break
		}
		out = utf8.AppendRune(out, p.char())
	}
	return p.b.Bytes(string(out))
}

// class is the characters in brackets, or, behind ^, all others.
func (p *parser) class() cfg.Expr {
	not := p.take("^")
	var ranges [][2]rune
	for p.err == nil && !p.take("]") {
		if p.at >= len(p.text) {
			p.failf("a list of characters is not closed: ] is missing")
			return 0
		}
		begin := p.at
		lo := p.char()
		hi := lo
		if p.peek() == '-' && !strings.HasPrefix(p.text[p.at:], "-]") {
			p.at++
			if p.at >= len(p.text) {
				continue
			}
			hi = p.char()
		}
		if lo > hi {
			p.at = begin
			p.failf("the range %q-%q is backwards", lo, hi)
			return 0
		}
		ranges = append(ranges, [2]rune{lo, hi})
	}
	if not {
		ranges = others(ranges)
	}
	return p.b.Runes(ranges...)
}

// others is the characters that are in none of the ranges.
func others(ranges [][2]rune) [][2]rune {
	out := [][2]rune{{0, utf8.MaxRune}}
	for _, r := range ranges {
		var rest [][2]rune
		for _, o := range out {
			if o[0] < r[0] {
				rest = append(rest, [2]rune{o[0], min(o[1], r[0]-1)})
			}
			if o[1] > r[1] {
				rest = append(rest, [2]rune{max(o[0], r[1]+1), o[1]})
			}
		}
		out = rest
	}
	return out
}

// char reads one character, which may be escaped.
func (p *parser) char() rune {
	r, n := utf8.DecodeRuneInString(p.text[p.at:])
	p.at += n
	if r != '\\' {
		return r
	}
	c := p.peek()
	p.at++
	switch c {
	case 'x':
		return p.hex(2)
	case 'u':
		return p.hex(4)
	case 'U':
		return p.hex(8)
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'n':
		return '\n'
	case '\\', '"', '[', ']', '-', '^':
		return rune(c)
	}
	p.at -= 2
	p.failf(`an unknown escape: there are \n \r \t \\ \" \[ \] \xHH \uHHHH and \UHHHHHHHH`)
	return 0
}

func (p *parser) hex(digits int) rune {
	if p.at+digits <= len(p.text) {
		if v, err := strconv.ParseUint(p.text[p.at:p.at+digits], 16, 32); err == nil && utf8.ValidRune(rune(v)) {
			p.at += digits
			return rune(v)
		}
	}
	p.failf("an escape of %d hexadecimal digits, of a character, is expected", digits)
	return 0
}

// token reads <[id]> or <text>, where the text with the angle brackets is a token's.
func (p *parser) token() int32 {
	if p.take("<[") {
		id, ok := p.number()
		if !ok || !p.take("]>") {
			p.failf("a token is <[id]> or <text>")
			return 0
		}
		return int32(id)
	}
	end := strings.IndexAny(p.text[p.at:], ">\n")
	if end < 0 || p.text[p.at+end] != '>' {
		p.failf("a token's > is missing")
		return 0
	}
	text := p.text[p.at : p.at+end+1]
	if p.o.Token != nil {
		if id, ok := p.o.Token(text); ok {
			p.at += len(text)
			return id
		}
	}
	p.failf("%s is not one token of the model", text)
	return 0
}

// otherTokens reads !<token>, which matches any other token. How many bytes one token is cannot be said
// here, so that it must be repeated without a bound: then it is any text.
func (p *parser) otherTokens() cfg.Expr {
	p.at++
	if p.peek() != '<' {
		p.failf("! stands before a token alone")
		return 0
	}
	p.token()
	at := p.at
	p.space(false)
	if c := p.peek(); p.err == nil && c != '*' && c != '+' && !p.unbounded() {
		p.failf("any other token, once, is not supported; repeat it with * or +")
	}
	p.at = at
	return p.b.Runes([2]rune{0, utf8.MaxRune})
}

// unbounded says that {0,} or {1,} is next.
func (p *parser) unbounded() bool {
	if !p.take("{") {
		return false
	}
	low, high := p.bounds()
	return low <= 1 && high < 0
}
