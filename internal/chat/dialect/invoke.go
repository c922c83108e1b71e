package dialect

// An invokeForm is how a call with named parameters is written, in tags with attributes.
type invokeForm struct {
	open, end       string // around the call: open ends with the quote before the name
	param, paramEnd string // around a value: param ends with the quote before the name
	typed           bool   // parameters say string="true" or "false"
	json            bool   // the body may be a JSON object with the arguments
	cdata           bool   // values may be in CDATA sections
}

// read takes what follows open.
func (f invokeForm) read(p *Parser) bool {
	name, ok := p.name()
	if !ok || !p.lit(`">`) {
		return false
	}
	if p.space(); f.json && p.sees("{") {
		return p.callArguments(name, "") && p.last(f.end)
	}
	p.beginCall(name, "")
	for ; !p.lit(f.end); p.space() {
		if !p.lit(f.param) || !f.parameter(p, name) {
			return false
		}
	}
	p.endMembers()
	return true
}

// parameter takes KEY"> and the value.
func (f invokeForm) parameter(p *Parser, tool string) bool {
	key, ok := p.key(`"`)
	if !ok {
		return false
	}
	var isString, isJSON bool
	if p.space(); f.typed {
		isString = p.lit(`string="true"`)
		isJSON = !isString && p.lit(`string="false"`)
	}
	if !p.last(">") {
		return false
	}
	if f.cdata && p.sees(cdataOpen) {
		text, ok := p.cdata(f.paramEnd)
		p.argument(tool, key, text)
		return ok
	}
	text, end := p.until(f.paramEnd)
	if end < 0 {
		return false
	}
	switch {
	case isString:
		p.member(key, string(quote(nil, text)))
	case isJSON:
		value, ok := literal(text)
		if !ok {
			value = string(quote(nil, text))
		}
		p.member(key, value)
	default:
		p.argument(tool, key, text)
	}
	return true
}

const (
	cdataOpen = "<![CDATA["
	cdataEnd  = "]]>"
)

// cdata takes CDATA sections and text up to end.
func (p *Parser) cdata(end string) (string, bool) {
	var out string
	for {
		text, stop := p.until(cdataOpen, end)
		out += text
		if stop != 0 {
			return out, stop > 0
		}
		if text, stop = p.until(cdataEnd); stop < 0 {
			return "", false
		}
		out += text
	}
}
