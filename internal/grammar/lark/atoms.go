package lark

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *parser) take(s string) bool {
	if strings.HasPrefix(p.text[p.at:], s) {
		p.at += len(s)
		return true
	}
	return false
}

// space skips blanks and comments, and line ends if they mean nothing here.
func (p *parser) space(lines bool) {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == ' ' || c == '\t' || c == '\r' || lines && c == '\n':
			p.at++
		case c == '\\' && strings.HasPrefix(p.text[p.at:], "\\\n"):
			p.at += 2
		case c == '#' || strings.HasPrefix(p.text[p.at:], "//"):
			for p.at < len(p.text) && p.text[p.at] != '\n' {
				p.at++
			}
		default:
			return
		}
	}
}

func isName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

func (p *parser) name() string {
	begin := p.at
	for p.at < len(p.text) && isName(p.text[p.at]) {
		p.at++
	}
	return p.text[begin:p.at]
}

func (p *parser) number() (int, bool) {
	begin, n := p.at, 0
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		if n = 10*n + int(p.text[p.at]-'0'); n > maxCount {
			p.failf("a number over %d", maxCount)
			return 0, false
		}
		p.at++
	}
	return n, p.at > begin
}

// rest is the beginning of what is left, for errors.
func rest(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > 20 {
		s = strings.ToValidUTF8(s[:20], "") + "..."
	}
	return s
}

// atom is what a repetition may stand behind.
func (p *parser) atom() (cfg.Expr, bool) {
	switch c := p.peek(); {
	case c == '(':
		p.at++
		return p.group(")"), true
	case c == '[':
		p.at++
		return p.b.Opt(p.group("]")), true
	case c == '"':
		return p.terminal(p.literal()), true
	case c == '/':
		return p.terminal(p.regexp()), true
	case c == '<':
		return p.terminal(p.b.Token(p.token())), true
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
	return p.b.Seq(e, p.b.Ref(p.skip))
}

func (p *parser) reference() cfg.Expr {
	at := p.at
	name := p.name()
	if p.peek() == '{' && p.at+1 < len(p.text) && (p.text[p.at+1] < '0' || p.text[p.at+1] > '9') && p.text[p.at+1] != ',' {
		p.failf("templates (%s{...}) are not supported", name)
	}
	e := p.b.Ref(p.named(name, at).rule)
	switch {
	case isTerminal(name):
		return p.terminal(e)
	case !p.inRule:
		p.at = at
		p.failf("a terminal cannot be made of rules; %s is one (terminals are in upper case)", name)
	}
	return e
}

// literal is a string, or a range of characters between two.
func (p *parser) literal() cfg.Expr {
	begin := p.at
	text, fold := p.quoted()
	if !p.take("..") {
		if fold {
			return p.folded(text)
		}
		return p.b.Bytes(text)
	}
	if p.peek() != '"' {
		p.failf("a range is between two strings of one character")
		return 0
	}
	last, _ := p.quoted()
	lo, n := utf8.DecodeRuneInString(text)
	hi, m := utf8.DecodeRuneInString(last)
	if p.err == nil && (n == 0 || n != len(text) || m == 0 || m != len(last) || lo > hi) {
		p.at = begin
		p.failf("%q..%q is no range of characters", text, last)
	}
	return p.b.Runes([2]rune{lo, hi})
}

func (p *parser) folded(text string) cfg.Expr {
	var all []cfg.Expr
	for _, r := range text {
		forms := [][2]rune{{r, r}}
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			forms = append(forms, [2]rune{f, f})
		}
		all = append(all, p.b.Runes(forms...))
	}
	return p.b.Seq(all...)
}

func (p *parser) quoted() (text string, fold bool) {
	p.at++
	var out []byte
	for p.err == nil && !p.take(`"`) {
		if p.at >= len(p.text) || p.peek() == '\n' {
			p.failf(`a string's closing " is missing`)
			break
		}
		out = append(out, p.char()...)
	}
	return string(out), p.take("i")
}

var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'f': "\f", 'v': "\v", 'b': "\b", 'a': "\a",
	'0': "\x00", '\\': "\\", '"': `"`, '\'': "'", '/': "/"}

// char reads one character of a string, which may be escaped.
func (p *parser) char() string {
	_, n := utf8.DecodeRuneInString(p.text[p.at:])
	if p.text[p.at] != '\\' || p.at+1 == len(p.text) {
		p.at += n
		return p.text[p.at-n : p.at]
	}
	c := p.text[p.at+1]
	if out, ok := escapes[c]; ok {
		p.at += 2
		return out
	}
	if digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]; digits > 0 && p.at+2+digits <= len(p.text) {
		v, err := strconv.ParseUint(p.text[p.at+2:p.at+2+digits], 16, 32)
		if err == nil && utf8.ValidRune(rune(v)) {
			p.at += 2 + digits
			return string(rune(v))
		}
	}
	p.failf(`an unknown escape: there are \n \r \t \f \v \b \a \0 \\ \" \xHH \uHHHH and \UHHHHHHHH`)
	return ""
}

// token reads <[id]> or <|text|>, where the text with the angle brackets is a token's.
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

// inner is %json with a schema.
func (p *parser) inner() cfg.Expr {
	begin := p.at
	p.at++
	if name := p.name(); name != "json" || p.o.JSON == nil {
		p.at = begin
		p.failf("%%%s is not supported here", name)
		return 0
	}
	p.space(true)
	length := objectLength(p.text[p.at:])
	if length == 0 {
		p.failf("a JSON Schema in braces is expected after %%json")
		return 0
	}
	e, err := p.o.JSON(p.b, p.text[p.at:p.at+length])
	if err != nil {
		p.failf("%%json: %w", err)
		return 0
	}
	p.at += length
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
