package dialect

const lfm2Open = "<|tool_call_start|>"

// lfm2 reads a Python list of calls, or JSON.
func lfm2(p *Parser, _ int) {
	p.try(func(p *Parser) bool {
		p.space()
		var ok bool
		switch {
		case p.sees("{"):
			ok = p.callObject()
		case p.listOfObjects():
			ok = p.callArray()
		default:
			ok = p.pyCalls()
		}
		return ok && p.last("<|tool_call_end|>")
	})
}

// listOfObjects reports whether a list follows whose first item is an object; nothing is taken.
func (p *Parser) listOfObjects() bool {
	start := p.pos
	defer func() { p.pos = start }()
	return p.lit("[") && p.follows("{")
}
