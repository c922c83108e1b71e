package dialect

import "strings"

// An xmlForm is how <function=NAME> and <parameter=KEY> are written: in which tag, and with what around a value.
type xmlForm struct {
	open, end string
	around    string // once before and once behind a value, it belongs to the format
}

const xmlFunction = "<function="

// xmlFunctions are calls as Qwen3-Coder writes them. The outer tag may be missing.
func xmlFunctions(name, tag, around string) tool {
	f := xmlForm{open: "<" + tag + ">", end: "</" + tag + ">", around: around}
	return tool{name: name, markers: []string{f.open, xmlFunction}, take: func(p *Parser, i int) {
		if i == 0 {
			p.try(f.inTag)
		} else {
			p.try(f.bare)
		}
	}}
}

// inTag reads functions up to the outer tag's end.
func (f xmlForm) inTag(p *Parser) bool {
	for first := true; ; first = false {
		p.space()
		switch {
		case !first && p.lit(f.end):
			return true
		case !p.lit(xmlFunction) || !f.function(p, f.end):
			return false
		}
	}
}

// bare reads a function without the outer tag, whose end may be there all the same.
func (f xmlForm) bare(p *Parser) bool {
	if !f.function(p, "") {
		return false
	}
	if after := p.pos; !p.last(f.end) {
		p.pos = after
	}
	return true
}

// function reads NAME> and what follows. A function's end inside a value is the end only where outer or the next
// function follows it.
func (f xmlForm) function(p *Parser, outer string) bool {
	name, ok := p.name()
	if !ok || !p.lit(">") {
		return false
	}
	p.beginCall(name, "")
	for {
		p.space()
		if p.lit("</function>") {
			break
		}
		if !p.lit("<parameter=") {
			return false
		}
		key, ok := p.key(">")
		if !ok {
			return false
		}
		text, ok := f.value(p, outer)
		if !ok {
			return false
		}
		p.argument(name, key, text)
	}
	p.endMembers()
	return true
}

// value takes the raw text of a parameter; its closing tag may be missing.
func (f xmlForm) value(p *Parser, outer string) (string, bool) {
	start := p.pos
	for {
		_, end := p.until("</parameter>", "<parameter=", "</function>")
		if end < 0 {
			return "", false
		}
		length := [...]int{len("</parameter>"), len("<parameter="), len("</function>")}[end]
		stop := p.pos - length
		if end == 2 && outer != "" && !p.follows(outer, xmlFunction) {
			continue
		}
		if end > 0 {
			p.pos = stop
		}
		return f.trim(string(p.buf[start:stop])), true
	}
}

func (f xmlForm) trim(text string) string {
	if f.around == "" {
		return text
	}
	line := f.around
	if strings.HasPrefix(text, "\r"+line) { // all line breaks are like that
		line = "\r" + line
	}
	text = strings.TrimPrefix(text, line)
	text = strings.TrimSuffix(text, line)
	return text
}

// follows reports whether one of the texts comes next, after white space; nothing is taken.
func (p *Parser) follows(texts ...string) bool {
	start := p.pos
	p.space()
	defer func() { p.pos = start }()
	for _, s := range texts {
		if p.sees(s) {
			return true
		}
	}
	return false
}
