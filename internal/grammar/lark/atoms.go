package lark

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// space skips blanks and comments, and line ends if they mean nothing here.
func (p *parser) space(lines bool) {
	for p.At < len(p.Text) {
		switch c := p.Text[p.At]; {
		case c == ' ' || c == '\t' || c == '\r' || lines && c == '\n':
			p.At++
		case c == '\\' && strings.HasPrefix(p.Text[p.At:], "\\\n"):
			p.At += 2
		case c == '#' || strings.HasPrefix(p.Text[p.At:], "//"):
			p.While(func(c byte) bool { return c != '\n' })
		default:
			return
		}
	}
}

func isName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

func (p *parser) name() string { return p.While(isName) }

// atom is what a repetition may stand behind.
func (p *parser) atom() (cfg.Expr, bool) {
	switch c := p.Peek(); {
	case c == '(':
		p.At++
		return p.group(")"), true
	case c == '[':
		p.At++
		return p.B.Opt(p.group("]")), true
	case c == '"':
		return p.terminal(p.literal()), true
	case c == '/':
		return p.terminal(p.regexp()), true
	case c == '<':
		return p.terminal(p.B.Token(p.Token())), true
	case c == '%':
		return p.terminal(p.inner()), true
	case isName(c):
		return p.reference(), true
	}
	return 0, false
}

// terminal is followed by what is ignored, within rules.
func (p *parser) terminal(e cfg.Expr) cfg.Expr {
	if !p.inRule {
		return e
	}
	return p.B.Seq(e, p.B.Ref(p.skip))
}

func (p *parser) reference() cfg.Expr {
	at := p.At
	name := p.name()
	if p.Peek() == '{' && p.At+1 < len(p.Text) && (p.Text[p.At+1] < '0' || p.Text[p.At+1] > '9') && p.Text[p.At+1] != ',' {
		p.Failf("templates (%s{...}) are not supported", name)
	}
	e := p.B.Ref(p.Named(name, at).Rule)
	switch {
	case isTerminal(name):
		return p.terminal(e)
	case !p.inRule:
		p.FailAt(at, "a terminal cannot be made of rules; %s is one (terminals are in upper case)", name)
	}
	return e
}

// literal is a string, or a range of characters between two.
func (p *parser) literal() cfg.Expr {
	begin := p.At
	text, fold := p.quoted()
	if !p.Take("..") {
		if fold {
			return p.folded(text)
		}
		return p.B.Bytes(text)
	}
	if p.Peek() != '"' {
		p.Failf("a range is between two strings of one character")
		return 0
	}
	last, _ := p.quoted()
	lo, n := utf8.DecodeRuneInString(text)
	hi, m := utf8.DecodeRuneInString(last)
	if p.Err == nil && (n == 0 || n != len(text) || m == 0 || m != len(last) || lo > hi) {
		p.FailAt(begin, "%q..%q is no range of characters", text, last)
	}
	return p.B.Runes([2]rune{lo, hi})
}

func (p *parser) folded(text string) cfg.Expr {
	var all []cfg.Expr
	for _, r := range text {
		forms := [][2]rune{{r, r}}
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			forms = append(forms, [2]rune{f, f})
		}
		all = append(all, p.B.Runes(forms...))
	}
	return p.B.Seq(all...)
}

func (p *parser) quoted() (text string, fold bool) {
	p.At++
	var out []byte
	for p.Err == nil && !p.Take(`"`) {
		if p.At >= len(p.Text) || p.Peek() == '\n' {
			p.Failf(`a string's closing " is missing`)
			break
		}
		out = append(out, p.char()...)
	}
	return string(out), p.Take("i")
}

var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'f': "\f", 'v': "\v", 'b': "\b", 'a': "\a",
	'0': "\x00", '\\': "\\", '"': `"`, '\'': "'", '/': "/"}

// char reads one character of a string, which may be escaped.
func (p *parser) char() string {
	_, n := utf8.DecodeRuneInString(p.Text[p.At:])
	if p.Text[p.At] != '\\' || p.At+1 == len(p.Text) {
		p.At += n
		return p.Text[p.At-n : p.At]
	}
	p.At++
	if out, ok := escapes[p.Peek()]; ok {
		p.At++
		return out
	}
	if r, ok := p.Escaped(); ok {
		return string(r)
	}
	p.FailAt(p.At-1, `an unknown escape: there are \n \r \t \f \v \b \a \0 \\ \" \xHH \uHHHH and \UHHHHHHHH`)
	return ""
}

// inner is %json with a schema.
func (p *parser) inner() cfg.Expr {
	begin := p.At
	p.At++
	if name := p.name(); name != "json" || p.o.JSON == nil {
		p.FailAt(begin, "%%%s is not supported here", name)
		return 0
	}
	p.space(true)
	length := objectLength(p.Text[p.At:])
	if length == 0 {
		p.Failf("a JSON Schema in braces is expected after %%json")
		return 0
	}
	e, err := p.o.JSON(p.B, p.Text[p.At:p.At+length])
	if err != nil {
		p.Failf("%%json: %w", err)
		return 0
	}
	p.At += length
	return e
}

// objectLength is the length of the JSON object that s begins with; 0 if it does not.
func objectLength(s string) int {
	depth, text := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		if depth == 0 {
			return 0
		}
	}
	return 0
}
