package dialect

import "strings"

// A gemmaForm is how Gemma's models write values: bare, and strings between quote tokens.
type gemmaForm struct{ end, quote string }

// gemma is call:NAME and an object between tags.
func gemma(name, open, end, quote string) tool {
	f := gemmaForm{end, quote}
	return tool{name: name, markers: []string{open}, take: func(p *Parser, _ int) { p.try(f.call) }}
}

func (f gemmaForm) call(p *Parser) bool {
	if !p.last("call:") {
		return false
	}
	name, ok := p.name()
	if !ok {
		return false
	}
	p.space()
	p.beginCall(name, "")
	if !f.members(p, 0, p.member) {
		return false
	}
	p.endMembers()
	return p.last(f.end)
}

// object takes {key:value,…} and returns it as JSON.
func (f gemmaForm) object(p *Parser, depth int) (string, bool) {
	var m members
	ok := f.members(p, depth, m.set)
	return m.text(), ok
}

func (f gemmaForm) members(p *Parser, depth int, set func(key, value string)) bool {
	return p.list("{", "}", func() bool {
		key, ok := f.key(p)
		if !ok || !p.spaced(":") {
			return false
		}
		value, ok := f.value(p, depth)
		if ok {
			set(key, value)
		}
		return ok
	})
}

func (f gemmaForm) key(p *Parser) (string, bool) {
	if p.lit(f.quote) {
		key, end := p.until(f.quote)
		return key, end == 0
	}
	key, ok := p.word(func(c byte) bool {
		switch c {
		case ':', ',', '{', '}', '[', ']', '<', '"', '\n':
			return false
		}
		return true
	})
	return strings.TrimRight(key, " "), ok
}

func (f gemmaForm) value(p *Parser, depth int) (string, bool) {
	c, ok := p.at(0)
	switch {
	case !ok || depth > maxDepth:
		return "", false
	case p.lit(f.quote):
		text, end := p.until(f.quote)
		return string(quote(nil, text)), end == 0
	case c == '{':
		return f.object(p, depth+1)
	case c == '[':
		return f.array(p, depth+1)
	case 'A' <= c && c <= 'z':
		word, ok := p.pyConstant(nil)
		return string(word), ok
	}
	start := p.pos
	ok = p.jsonNumber()
	return string(p.buf[start:p.pos]), ok
}

func (f gemmaForm) array(p *Parser, depth int) (string, bool) {
	out := []byte{'['}
	ok := p.list("[", "]", func() bool {
		if len(out) > 1 {
			out = append(out, ", "...)
		}
		value, ok := f.value(p, depth)
		out = append(out, value...)
		return ok
	})
	return string(append(out, ']')), ok
}

// list takes items with commas between them, between brackets.
func (p *Parser) list(open, end string, item func() bool) bool {
	if !p.spaced(open) {
		return false
	}
	if p.lit(end) {
		return true
	}
	for {
		if !item() {
			return false
		}
		if p.last(end) {
			return true
		}
		if !p.spaced(",") {
			return false
		}
	}
}
