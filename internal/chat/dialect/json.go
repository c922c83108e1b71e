package dialect

import (
	"encoding/json"
	"unicode/utf8"
)

// reader makes a parser of a complete text, for the grammars of values alone.
func reader(text string) *Parser { return &Parser{buf: []byte(text), eof: true} }

// jsonValue takes a JSON value as RFC 8259 defines it.
func (p *Parser) jsonValue(depth int) bool {
	c, ok := p.at(0)
	switch {
	case !ok || depth > maxDepth:
		return false
	case c == '{':
		return p.jsonObject(depth, func(string) bool { return p.jsonValue(depth + 1) })
	case c == '[':
		return p.jsonArray(func() bool { return p.jsonValue(depth + 1) })
	case c == '"':
		return p.jsonString()
	case c == 't':
		return p.lit("true")
	case c == 'f':
		return p.lit("false")
	case c == 'n':
		return p.lit("null")
	}
	return p.jsonNumber()
}

// jsonObject takes an object; value takes the value of a key.
func (p *Parser) jsonObject(depth int, value func(key string) bool) bool {
	if !p.spaced("{") {
		return false
	}
	if p.lit("}") {
		return true
	}
	for {
		start := p.pos
		if !p.jsonString() {
			return false
		}
		key, ok := unquote(string(p.buf[start:p.pos]))
		if !ok || !p.spaced(":") || !value(key) {
			return false
		}
		if p.last("}") {
			return true
		}
		if !p.spaced(",") {
			return false
		}
	}
}

// jsonArray takes an array; item takes an item.
func (p *Parser) jsonArray(item func() bool) bool {
	if !p.spaced("[") {
		return false
	}
	if p.lit("]") {
		return true
	}
	for {
		if !item() {
			return false
		}
		if p.last("]") {
			return true
		}
		if !p.spaced(",") {
			return false
		}
	}
}

func (p *Parser) jsonString() bool {
	if !p.lit(`"`) {
		return false
	}
	for {
		c, ok := p.at(0)
		if !ok || c < ' ' {
			return false
		}
		p.pos++
		switch c {
		case '"':
			return true
		case '\\':
			if !p.jsonEscape() {
				return false
			}
		}
	}
}

func (p *Parser) jsonEscape() bool {
	c, ok := p.at(0)
	if !ok {
		return false
	}
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.pos++
		return true
	case 'u':
		p.pos++
		_, ok := p.hex(4)
		return ok
	}
	return false
}

// hex takes n hexadecimal digits.
func (p *Parser) hex(n int) (value rune, ok bool) {
	for range n {
		c, ok := p.at(0)
		digit := hexDigit(c)
		if !ok || digit < 0 {
			return 0, false
		}
		value = value<<4 | digit
		p.pos++
	}
	return value, true
}

func hexDigit(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return -1
}

func (p *Parser) jsonNumber() bool {
	p.lit("-")
	if !p.lit("0") && p.digits() == 0 {
		return false
	}
	if p.lit(".") && p.digits() == 0 {
		return false
	}
	if p.lit("e") || p.lit("E") {
		if !p.lit("+") {
			p.lit("-")
		}
		return p.digits() > 0
	}
	return true
}

func (p *Parser) digits() (n int) {
	for {
		if c, ok := p.at(0); !ok || c < '0' || c > '9' {
			return n
		}
		p.pos++
		n++
	}
}

// object takes a JSON object and returns its text.
func (p *Parser) object() (string, bool) {
	start := p.pos
	if !p.sees("{") || !p.jsonValue(0) {
		return "", false
	}
	return string(p.buf[start:p.pos]), true
}

// callObject takes a JSON object that names a tool and its arguments, and adds the call.
func (p *Parser) callObject() bool {
	var c call
	told := false
	ok := p.jsonObject(0, func(key string) bool {
		if isArguments(key) && c.name != "" && !told {
			if p.beginCall(c.name, c.id); p.draft.live {
				told = true
				return p.argumentValue()
			}
		}
		start := p.pos
		if !p.jsonValue(1) {
			return false
		}
		value := func() string { return string(p.buf[start:p.pos]) }
		switch {
		case key == "name" || key == "tool_name":
			c.name, _ = unquote(value())
		case isArguments(key):
			c.args = arguments(value())
		case key == "id" || key == "tool_call_id":
			c.id, _ = unquote(value())
		}
		return true
	})
	switch {
	case !ok || !told && (c.name == "" || c.args == ""):
		return false
	case !told:
		p.draft = draft{call: c}
	}
	p.endCall()
	return true
}

func isArguments(key string) bool { return key == "arguments" || key == "parameters" || key == "args" }

// argumentValue takes the value that gives the arguments of a live call.
func (p *Parser) argumentValue() bool {
	if p.sees("{") {
		return p.argumentObject()
	}
	start := p.pos
	if !p.jsonValue(1) {
		return false
	}
	text := arguments(string(p.buf[start:p.pos]))
	p.drop()
	p.argumentText(text)
	return text != ""
}

// arguments returns the object that a value gives: itself, the text of a string, or none for null; else "".
func arguments(value string) string {
	if value == "null" {
		return "{}"
	}
	if text, ok := unquote(value); ok {
		value = text
	}
	q := reader(value)
	q.space()
	text, ok := q.object()
	if q.space(); !ok || !q.ended() {
		return ""
	}
	return text
}

// callArray takes a JSON array of at least one such object.
func (p *Parser) callArray() bool {
	n := p.found
	return p.jsonArray(p.callObject) && p.found > n
}

// unquote decodes a JSON string; false if the text is none.
func unquote(text string) (s string, ok bool) {
	if text == "" || text[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal([]byte(text), &s) == nil
}

// asJSON reads the text as one JSON value, with white space around it.
func asJSON(text string) (string, bool) {
	q := reader(text)
	q.space()
	start := q.pos
	ok := q.jsonValue(0)
	end := q.pos
	if q.space(); !ok || !q.ended() {
		return "", false
	}
	return text[start:end], true
}

// quote appends s as a JSON string.
func quote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		dst = quoteRune(dst, r)
	}
	return append(dst, '"')
}

// quoteRune appends a character of a JSON string; halves of surrogate pairs stay what they are.
func quoteRune(dst []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r == '\n':
		return append(dst, `\n`...)
	case r == '\t':
		return append(dst, `\t`...)
	case r < ' ' || r == 0x7f || 0xd800 <= r && r < 0xe000:
		return append(dst, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
	}
	return utf8.AppendRune(dst, r)
}

// members builds an object from keys and values; a key that comes again replaces its value.
type members struct {
	keys, values []string
	index        map[string]int
}

func (m *members) set(key, value string) {
	if i, ok := m.index[key]; ok {
		m.values[i] = value
		return
	}
	if m.index == nil {
		m.index = map[string]int{}
	}
	m.index[key] = len(m.keys)
	m.keys, m.values = append(m.keys, key), append(m.values, value)
}

func (m *members) text() string {
	out := []byte{'{'}
	for i, key := range m.keys {
		if i > 0 {
			out = append(out, ", "...)
		}
		out = quote(out, key)
		out = append(append(out, ": "...), m.values[i]...)
	}
	return string(append(out, '}'))
}
