package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind uint8

const (
	tokText     kind = iota // template text
	tokVarBegin             // {{
	tokVarEnd
	tokBlockBegin // {%
	tokBlockEnd
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
	tokEOF
)

type token struct {
	kind kind
	text string
	line int
}

// lexer cuts a template into tokens as Jinja2 does with trim_blocks and lstrip_blocks.
type lexer struct {
	src       string
	pos       int
	line      int
	lineStart bool // pos is at the beginning of a line, as far as lstrip_blocks goes
	tokens    []token
}

func lex(src string) ([]token, error) {
	src = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(src)
	src = strings.TrimSuffix(src, "\n") // keep_trailing_newline is off
	l := &lexer{src: src, line: 1, lineStart: true}
	for l.pos < len(l.src) {
		if err := l.root(); err != nil {
			return nil, err
		}
	}
	l.emit(tokEOF, "")
	return l.tokens, nil
}

func (l *lexer) emit(k kind, text string) { l.tokens = append(l.tokens, token{k, text, l.line}) }

// advance passes n bytes.
func (l *lexer) advance(n int) {
	l.line += strings.Count(l.src[l.pos:l.pos+n], "\n")
	l.pos += n
}

func (l *lexer) fail(format string, args ...any) error {
	return errorf("line %d: "+format, append([]any{l.line}, args...)...)
}

// root passes text up to the next tag, and the tag.
func (l *lexer) root() error {
	rest := l.src[l.pos:]
	at := nextTag(rest)
	if at < 0 {
		l.emit(tokText, rest)
		l.advance(len(rest))
		return nil
	}
	text, open := rest[:at], rest[at:at+2]
	sign := byte(0)
	if len(rest) > at+2 && (rest[at+2] == '-' || rest[at+2] == '+') {
		sign = rest[at+2]
	}
	switch {
	case sign == '-':
		text = strings.TrimRightFunc(text, isSpace)
	case sign != '+' && open != "{{":
		text = l.stripIndent(text)
	}
	if text != "" {
		l.emit(tokText, text)
	}
	skip := at + 2
	if sign != 0 {
		skip++
	}
	l.advance(skip)
	l.lineStart = false
	switch open {
	case "{#":
		return l.comment()
	case "{{":
		l.emit(tokVarBegin, "")
		return l.inside(tokVarEnd, "}}")
	}
	if done, err := l.raw(); done || err != nil {
		return err
	}
	l.emit(tokBlockBegin, "")
	return l.inside(tokBlockEnd, "%}")
}

// nextTag returns where the next {{, {% or {# is, or -1.
func nextTag(s string) int {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '{' && (s[i+1] == '{' || s[i+1] == '%' || s[i+1] == '#') {
			return i
		}
	}
	return -1
}

// stripIndent takes white space between the beginning of the line and a block tag away.
func (l *lexer) stripIndent(text string) string {
	at := strings.LastIndexByte(text, '\n') + 1
	if (at > 0 || l.lineStart) && strings.TrimLeftFunc(text[at:], isSpace) == "" {
		return text[:at]
	}
	return text
}

// isSpace is Python's str.isspace of one character.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// closeTag passes the end of a tag, with the white space or the line break that goes with it.
func (l *lexer) closeTag(sign byte, trim bool) {
	start := l.pos
	l.advance(2)
	if sign == '-' {
		rest := l.src[l.pos:]
		l.advance(len(rest) - len(strings.TrimLeftFunc(rest, isSpace)))
	} else if sign != '+' && trim && strings.HasPrefix(l.src[l.pos:], "\n") {
		l.advance(1)
	}
	l.lineStart = l.pos > start && l.src[l.pos-1] == '\n'
}

func (l *lexer) comment() error {
	end := strings.Index(l.src[l.pos:], "#}")
	if end < 0 {
		return l.fail("a comment has no end")
	}
	sign := byte(0)
	if end > 0 && (l.src[l.pos+end-1] == '-' || l.src[l.pos+end-1] == '+') {
		sign = l.src[l.pos+end-1]
	}
	l.advance(end)
	l.closeTag(sign, true)
	return nil
}

// raw passes {% raw %} … {% endraw %}; the opening of the first tag has been passed.
func (l *lexer) raw() (bool, error) {
	body := strings.TrimLeftFunc(l.src[l.pos:], isSpace)
	if !strings.HasPrefix(body, "raw") {
		return false, nil
	}
	body = strings.TrimLeftFunc(body[3:], isSpace)
	sign := byte(0)
	if strings.HasPrefix(body, "-") {
		sign, body = '-', body[1:]
	}
	if !strings.HasPrefix(body, "%}") {
		return false, nil
	}
	l.advance(len(l.src) - l.pos - len(body))
	l.closeTag(sign, false)
	start := l.pos
	for at := start; ; {
		next := strings.Index(l.src[at:], "{%")
		if next < 0 {
			return true, l.fail("raw has no endraw")
		}
		at += next
		if end, sign, ok := endRaw(l.src[at:]); ok {
			text := l.src[start:at]
			switch l.src[at+2] {
			case '-':
				text = strings.TrimRightFunc(text, isSpace)
			case '+':
			default:
				text = l.stripIndent(text)
			}
			l.emit(tokText, text)
			l.advance(at + end - l.pos)
			l.closeTag(sign, true)
			return true, nil
		}
		at += 2
	}
}

// endRaw reports whether s begins with an endraw tag, where its "%}" is, and the sign before that.
func endRaw(s string) (end int, sign byte, ok bool) {
	rest := s[2:]
	if strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "+") {
		rest = rest[1:]
	}
	rest = strings.TrimLeftFunc(rest, isSpace)
	if !strings.HasPrefix(rest, "endraw") {
		return 0, 0, false
	}
	rest = strings.TrimLeftFunc(rest[6:], isSpace)
	if strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "+") {
		sign, rest = rest[0], rest[1:]
	}
	return len(s) - len(rest), sign, strings.HasPrefix(rest, "%}")
}

// operators, longest first.
var operators = []string{"//", "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "=", "(", ")", "[", "]", "{", "}", ".", ":", "|", ",", ";"}

// inside passes an expression or statement up to the end of its tag. Brackets hide the end.
func (l *lexer) inside(end kind, closer string) error {
	var open []byte
	for {
		rest := l.src[l.pos:]
		trimmed := strings.TrimLeftFunc(rest, isSpace)
		l.advance(len(rest) - len(trimmed))
		rest = trimmed
		if rest == "" {
			return l.fail("a tag has no end (%s)", closer)
		}
		if len(open) == 0 {
			sign := byte(0)
			body := rest
			if body[0] == '-' || body[0] == '+' && closer == "%}" {
				sign, body = body[0], body[1:]
			}
			if strings.HasPrefix(body, closer) {
				l.emit(end, "")
				l.advance(len(rest) - len(body))
				l.closeTag(sign, closer == "%}")
				return nil
			}
		}
		c := rest[0]
		switch {
		case c == '\'' || c == '"':
			if err := l.quoted(rest); err != nil {
				return err
			}
		case c >= '0' && c <= '9':
			l.numeral(rest)
		default:
			if err := l.wordOrOperator(rest, &open); err != nil {
				return err
			}
		}
	}
}

func (l *lexer) wordOrOperator(rest string, open *[]byte) error {
	if r, _ := utf8.DecodeRuneInString(rest); r == '_' || unicode.IsLetter(r) {
		end := strings.IndexFunc(rest, func(r rune) bool {
			return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
		})
		if end < 0 {
			end = len(rest)
		}
		l.emit(tokName, rest[:end])
		l.advance(end)
		return nil
	}
	for _, op := range operators {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		switch op {
		case "(", "[", "{":
			if *open = append(*open, op[0]); len(*open) > maxNesting {
				return l.fail("brackets nest more than %d deep", maxNesting)
			}
		case ")", "]", "}":
			last := len(*open) - 1
			if last < 0 || !matches((*open)[last], op[0]) {
				return l.fail("unexpected %q", op)
			}
			*open = (*open)[:last]
		}
		l.emit(tokOp, op)
		l.advance(len(op))
		return nil
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return l.fail("unexpected character %q", r)
}

func matches(open, end byte) bool {
	return open == '(' && end == ')' || open == '[' && end == ']' || open == '{' && end == '}'
}

// numeral passes an integer or a float.
func (l *lexer) numeral(rest string) {
	digits := func(i int) int {
		for i < len(rest) && (rest[i] >= '0' && rest[i] <= '9' || rest[i] == '_' && i+1 < len(rest) && rest[i+1] >= '0' && rest[i+1] <= '9') {
			i++
		}
		return i
	}
	if n := prefixed(rest); n > 0 {
		l.emit(tokInt, strings.ReplaceAll(rest[:n], "_", ""))
		l.advance(n)
		return
	}
	end, k := digits(0), tokInt
	if end+1 < len(rest) && rest[end] == '.' && rest[end+1] >= '0' && rest[end+1] <= '9' {
		end, k = digits(end+1), tokFloat
	}
	if end < len(rest) && (rest[end] == 'e' || rest[end] == 'E') {
		at := end + 1
		if at < len(rest) && (rest[at] == '+' || rest[at] == '-') {
			at++
		}
		if after := digits(at); after > at {
			end, k = after, tokFloat
		}
	}
	l.emit(k, strings.ReplaceAll(rest[:end], "_", ""))
	l.advance(end)
}

// prefixed is the length of a number such as 0xff, 0o17 or 0b101, or 0.
func prefixed(s string) int {
	if len(s) < 3 || s[0] != '0' {
		return 0
	}
	set := map[byte]string{'x': "0123456789abcdef", 'o': "01234567", 'b': "01"}[s[1]|0x20]
	n := 2
	for set != "" && n < len(s) && (strings.IndexByte(set, s[n]|0x20) >= 0 || s[n] >= '0' && s[n] <= '9' && strings.IndexByte(set, s[n]) >= 0 || s[n] == '_') {
		n++
	}
	if n == 2 {
		return 0
	}
	return n
}

// quoted passes a string.
func (l *lexer) quoted(rest string) error {
	quote := rest[0]
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case quote:
			l.emit(tokString, unescape(rest[1:i]))
			l.advance(i + 1)
			return nil
		}
	}
	return l.fail("a string has no end")
}

var simpleEscapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v", '\n': ""}

// unescape does Python's escapes; unknown ones stay as they are.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if text, ok := simpleEscapes[s[i]]; ok {
			b.WriteString(text)
			continue
		}
		r, n := codeEscape(s[i:])
		if n == 0 {
			b.WriteByte('\\')
			b.WriteByte(s[i])
			continue
		}
		b.WriteRune(r)
		i += n - 1
	}
	return b.String()
}

// codeEscape reads x41, u0041, U00000041 or 101 (octal); it returns its length, or 0.
func codeEscape(s string) (rune, int) {
	width, base, start := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[0]], rune(16), 1
	if width == 0 {
		width, base, start = 3, 8, 0
	}
	var r rune
	i := start
	for ; i < len(s) && i < start+width; i++ {
		d := rune(strings.IndexByte("0123456789abcdef", s[i]|0x20))
		if s[i] >= '0' && s[i] <= '9' {
			d = rune(s[i] - '0')
		}
		if d < 0 || d >= base || r > unicode.MaxRune {
			break
		}
		r = r*base + d
	}
	if i == start || base == 16 && i != start+width || r > unicode.MaxRune {
		return 0, 0
	}
	return r, i
}
