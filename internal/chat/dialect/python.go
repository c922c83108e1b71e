package dialect

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// pyCalls takes a Python list of calls, at least one, and adds them.
func (p *Parser) pyCalls() bool {
	if !p.spaced("[") {
		return false
	}
	for {
		if !p.pyCall() {
			return false
		}
		comma := p.spaced(",")
		if p.last("]") {
			return true
		}
		if !comma {
			return false
		}
	}
}

// pyCall takes f(a=1, b="x"): keyword arguments whose values are literals.
func (p *Parser) pyCall() bool {
	name, ok := p.word(isPyName)
	if !ok || !p.spaced("(") {
		return false
	}
	p.beginCall(name, "")
	for comma := true; !p.lit(")"); {
		key, ok := p.word(isPyName)
		if !ok || !comma || !p.spaced("=") {
			return false
		}
		value, ok := p.pyValue(nil, 0)
		if !ok {
			return false
		}
		p.member(key, string(value))
		comma = p.spaced(",")
	}
	p.endMembers()
	return true
}

// isPyName: letters of all scripts, for the names that schemas allow; - and . for the names of tools.
func isPyName(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == '-' || c >= utf8.RuneSelf
}

// pyValue takes a Python literal and appends it as JSON.
func (p *Parser) pyValue(dst []byte, depth int) ([]byte, bool) {
	c, ok := p.at(0)
	switch {
	case !ok || depth > maxDepth:
		return nil, false
	case c == '[':
		dst, _, ok := p.pyList(dst, "[", "]", depth)
		return dst, ok
	case c == '(':
		return p.pyTuple(dst, depth)
	case c == '{':
		return p.pyDict(dst, depth)
	case p.pyQuoted():
		return p.pyString(dst)
	case 'a' <= c|0x20 && c|0x20 <= 'z':
		return p.pyConstant(dst)
	}
	return p.pyNumber(dst)
}

func (p *Parser) pyConstant(dst []byte) ([]byte, bool) {
	word, _ := p.word(isPyName)
	switch word {
	case "True", "true":
		return append(dst, "true"...), true
	case "False", "false":
		return append(dst, "false"...), true
	case "None", "null":
		return append(dst, "null"...), true
	}
	return nil, false
}

// pyList takes values between brackets, as a JSON array; single: there is one, and no comma.
func (p *Parser) pyList(dst []byte, open, end string, depth int) (list []byte, single, ok bool) {
	if !p.spaced(open) {
		return nil, false, false
	}
	dst = append(dst, '[')
	n, comma := 0, true
	for ; !p.lit(end); n++ {
		if !comma {
			return nil, false, false
		}
		if n > 0 {
			dst = append(dst, ", "...)
		}
		if dst, ok = p.pyValue(dst, depth+1); !ok {
			return nil, false, false
		}
		comma = p.spaced(",")
	}
	return append(dst, ']'), n == 1 && !comma, true
}

// pyTuple takes a tuple, or a value in parentheses.
func (p *Parser) pyTuple(dst []byte, depth int) ([]byte, bool) {
	start := len(dst)
	dst, single, ok := p.pyList(dst, "(", ")", depth)
	if ok && single {
		dst = append(dst[:start], dst[start+1:len(dst)-1]...)
	}
	return dst, ok
}

// pySingle reads one value without a comma after it.
func (p *Parser) pySingle(depth int) ([]byte, bool) {
	p.space()
	value, ok := p.pyValue(nil, depth+1)
	p.space()
	return value, ok && p.ended()
}

// pyDict takes a dictionary; keys that are numbers or constants become strings, as Python's json makes them.
func (p *Parser) pyDict(dst []byte, depth int) ([]byte, bool) {
	if !p.spaced("{") {
		return nil, false
	}
	dst = append(dst, '{')
	for n, comma := 0, true; !p.lit("}"); n++ {
		if !comma {
			return nil, false
		}
		if n > 0 {
			dst = append(dst, ", "...)
		}
		key, ok := p.pyValue(nil, maxDepth)
		if !ok || !p.spaced(":") || key[0] == '[' || key[0] == '{' {
			return nil, false
		}
		if key[0] != '"' {
			key = quote(nil, string(key))
		}
		dst = append(append(dst, key...), ": "...)
		if dst, ok = p.pyValue(dst, depth+1); !ok {
			return nil, false
		}
		comma = p.spaced(",")
	}
	return append(dst, '}'), true
}

// pyNumber takes an integer in any base, or a float, with a sign.
func (p *Parser) pyNumber(dst []byte) ([]byte, bool) {
	if !p.lit("+") && p.lit("-") {
		dst = append(dst, '-')
	}
	text, ok := p.word(func(c byte) bool {
		return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '.'
	})
	if !ok {
		return nil, false
	}
	if last := text[len(text)-1] | 0x20; last == 'e' && !strings.HasPrefix(text, "0x") && !strings.HasPrefix(text, "0X") {
		// The sign of an exponent is no part of a word.
		if sign, ok := p.at(0); ok && (sign == '+' || sign == '-') {
			p.pos++
			exponent, _ := p.word(func(c byte) bool { return '0' <= c && c <= '9' || c == '_' })
			text += string(sign) + exponent
		}
	}
	number, ok := pyNumber(text)
	return append(dst, number...), ok
}

// pyNumber gives a Python number without a sign as JSON.
func pyNumber(text string) (string, bool) {
	plain := strings.ReplaceAll(text, "_", "")
	if strings.Contains(text, "__") || strings.HasPrefix(text, "_") || strings.HasSuffix(text, "_") || len(plain) == 0 {
		return "", false
	}
	if len(plain) > 2 && plain[0] == '0' && strings.IndexByte("xob", plain[1]|0x20) >= 0 {
		return decimal(plain[2:], map[byte]int{'x': 16, 'o': 8, 'b': 2}[plain[1]|0x20])
	}
	whole := strings.IndexFunc(plain, func(r rune) bool { return r < '0' || r > '9' })
	switch {
	case whole == 0 && plain[0] == '.':
		plain = "0" + plain
	case whole < 0 && strings.Trim(plain, "0") == "":
		plain = "0"
	case whole > 1:
		// 007.5 is a float in Python, 007 is an error.
		plain = strings.TrimLeft(plain[:whole-1], "0") + plain[whole-1:]
	}
	mantissa, exponent, hasExponent := strings.Cut(strings.ToLower(plain), "e")
	if strings.HasSuffix(mantissa, ".") {
		mantissa += "0"
	}
	if hasExponent {
		mantissa += "e" + exponent
	}
	q := reader(mantissa)
	return mantissa, q.jsonNumber() && q.ended()
}

// decimal writes an integer of any size, given by its digits in another base, in base 10. It takes a time that
// is quadratic in their number, which maxName bounds.
func decimal(digits string, base int) (string, bool) {
	out := []byte{0} // the lowest first
	for _, c := range []byte(digits) {
		carry := int(hexDigit(c))
		if carry < 0 || carry >= base {
			return "", false
		}
		for i := range out {
			carry += int(out[i]) * base
			out[i], carry = byte(carry%10), carry/10
		}
		for ; carry > 0; carry /= 10 {
			out = append(out, byte(carry%10))
		}
	}
	for i := range out {
		out[i] += '0'
	}
	slices.Reverse(out)
	return string(out), true
}

// pyQuoted reports whether a string follows, which may have a prefix.
func (p *Parser) pyQuoted() bool {
	i := 0
	for ; i < 2; i++ {
		if c, ok := p.at(i); !ok || c|0x20 != 'r' && c|0x20 != 'u' {
			break
		}
	}
	c, ok := p.at(i)
	return ok && (c == '"' || c == '\'')
}

// pyString takes a string, or several that stand together, and appends one JSON string.
func (p *Parser) pyString(dst []byte) ([]byte, bool) {
	dst = append(dst, '"')
	for p.pyQuoted() {
		raw := false
		c, _ := p.at(0)
		for ; c != '"' && c != '\''; c, _ = p.at(0) {
			raw = raw || c|0x20 == 'r'
			p.pos++
		}
		end := string(c)
		if p.sees(end + end + end) {
			end += end + end
		}
		p.pos += len(end)
		var ok bool
		if dst, ok = p.pyText(dst, end, raw); !ok {
			return nil, false
		}
		// White space between strings that stand together; before anything else it does no harm either.
		p.space()
	}
	return append(dst, '"'), true
}

// pyText takes the text of a string up to its end.
func (p *Parser) pyText(dst []byte, end string, raw bool) ([]byte, bool) {
	for !p.lit(end) {
		c, ok := p.at(0)
		switch {
		case !ok || c == '\n' && len(end) == 1:
			return nil, false
		case c == '\\':
			p.pos++
			if raw {
				dst = append(dst, `\\`...)
				continue
			}
			if dst, ok = p.pyEscape(dst); !ok {
				return nil, false
			}
		case c < utf8.RuneSelf:
			p.pos++
			dst = quoteRune(dst, rune(c))
		default:
			p.pos++
			dst = append(dst, c)
		}
	}
	return dst, true
}

// pyEscape takes what follows a backslash.
func (p *Parser) pyEscape(dst []byte) ([]byte, bool) {
	c, ok := p.at(0)
	if !ok {
		return nil, false
	}
	p.pos++
	if i := strings.IndexByte(`\'"abfnrtv`, c); i >= 0 {
		return quoteRune(dst, rune("\\'\"\a\b\f\n\r\t\v"[i])), true
	}
	switch {
	case c == '\n':
		return dst, true
	case c == 'x' || c == 'u' || c == 'U':
		r, ok := p.hex(map[byte]int{'x': 2, 'u': 4, 'U': 8}[c])
		if !ok || r > utf8.MaxRune || r < 0 {
			return nil, false
		}
		return quoteRune(dst, r), true
	case '0' <= c && c <= '7':
		r := rune(c - '0')
		for range 2 {
			if c, ok := p.at(0); ok && '0' <= c && c <= '7' {
				r = r<<3 | rune(c-'0')
				p.pos++
			}
		}
		return quoteRune(dst, r), true
	}
	// Python keeps the backslash of what is no escape.
	p.pos--
	return append(dst, `\\`...), true
}

// pyJSON reads a text that is one Python literal, as JSON.
func pyJSON(text string) (string, bool) {
	value, ok := reader(text).pySingle(0)
	return string(value), ok
}
