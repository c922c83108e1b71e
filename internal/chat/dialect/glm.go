package dialect

// A glmForm is how pairs of a key and a value are written.
type glmForm struct {
	end                          string // of the call
	sep                          string // behind the name, may be ""
	key, keyEnd, value, valueEnd string
}

func newGLMForm(tag, suffix string) glmForm {
	return glmForm{
		end: "</" + tag + suffix + ">",
		key: "<arg_key" + suffix + ">", keyEnd: "</arg_key" + suffix + ">",
		value: "<arg_value" + suffix + ">", valueEnd: "</arg_value" + suffix + ">",
	}
}

// glm is a name and pairs between tags. White space between tags is read in all variants.
func glm(name, tag string) tool {
	f := newGLMForm(tag, "")
	return tool{name: name, markers: []string{"<" + tag + ">"}, take: func(p *Parser, _ int) { p.try(f.read) }}
}

// hyV3 has the same pairs, in a section; suffix stands in every tag.
func hyV3(name, suffix string) tool {
	f := newGLMForm("tool_call", suffix)
	f.sep = "<tool_sep" + suffix + ">"
	mark := "<tool_calls" + suffix + ">"
	return tool{name: name, markers: []string{mark}, take: func(p *Parser, _ int) {
		p.section(mark, "<tool_call"+suffix+">", "</tool_calls"+suffix+">", f.read)
	}}
}

// read takes a call after its opening tag.
func (f glmForm) read(p *Parser) bool {
	name, ok := p.name()
	if !ok || f.sep != "" && !p.last(f.sep) {
		return false
	}
	p.beginCall(name, "")
	for {
		p.space()
		if p.lit(f.end) {
			break
		}
		if !p.lit(f.key) {
			return false
		}
		key, ok := p.key(f.keyEnd)
		if !ok || !p.last(f.value) {
			return false
		}
		text, end := p.until(f.valueEnd)
		if end < 0 {
			return false
		}
		p.argument(name, key, text)
	}
	p.endMembers()
	return true
}
