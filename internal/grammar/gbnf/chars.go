package gbnf

import (
	"strings"
	"unicode/utf8"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

func (p *parser) literal() cfg.Expr {
	var out []byte
	for p.Err == nil && !p.Take(`"`) {
		if p.At >= len(p.Text) {
			p.Failf(`a literal's closing " is missing`)
			break
		}
		out = utf8.AppendRune(out, p.char())
	}
	return p.B.Bytes(string(out))
}

// class is the characters in brackets, or, behind ^, all others.
func (p *parser) class() cfg.Expr {
	not := p.Take("^")
	var ranges [][2]rune
	for p.Err == nil && !p.Take("]") {
		if p.At >= len(p.Text) {
			p.Failf("a list of characters is not closed: ] is missing")
			return 0
		}
		begin := p.At
		lo := p.char()
		hi := lo
		if p.Peek() == '-' && !strings.HasPrefix(p.Text[p.At:], "-]") {
			p.At++
			if p.At >= len(p.Text) {
				continue
			}
			hi = p.char()
		}
		if lo > hi {
			p.FailAt(begin, "the range %q-%q is backwards", lo, hi)
			return 0
		}
		ranges = append(ranges, [2]rune{lo, hi})
	}
	if not {
		return p.B.OtherRunes(ranges...)
	}
	return p.B.Runes(ranges...)
}

// char reads one character, which may be escaped.
func (p *parser) char() rune {
	r, n := utf8.DecodeRuneInString(p.Text[p.At:])
	p.At += n
	if r != '\\' {
		return r
	}
	if r, ok := p.Escaped(); ok {
		return r
	}
	switch c := p.Peek(); c {
	case 't':
		r = '\t'
	case 'r':
		r = '\r'
	case 'n':
		r = '\n'
	case '\\', '"', '[', ']', '-', '^':
		r = rune(c)
	default:
		p.FailAt(p.At-1, `an unknown escape: there are \n \r \t \\ \" \[ \] \xHH \uHHHH and \UHHHHHHHH`)
		return 0
	}
	p.At++
	return r
}

// otherTokens reads !<token>, which matches any other token. How many bytes one token is cannot be said
// here, so that it must be repeated without a bound: then it is any text.
func (p *parser) otherTokens() cfg.Expr {
	p.At++
	if p.Peek() != '<' {
		p.Failf("! stands before a token alone")
		return 0
	}
	p.Token()
	at := p.At
	p.space(false)
	if c := p.Peek(); p.Err == nil && c != '*' && c != '+' && !p.unbounded() {
		p.Failf("any other token, once, is not supported; repeat it with * or +")
	}
	p.At = at
	return p.B.Runes([2]rune{0, utf8.MaxRune})
}

// unbounded says that {0,} or {1,} is next.
func (p *parser) unbounded() bool {
	if !p.Take("{") {
		return false
	}
	_, low, high := p.bounds()
	return low <= 1 && high < 0
}
