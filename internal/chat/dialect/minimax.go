package dialect

const (
	miniMaxOpen = "<minimax:tool_call>"
	dotsOpen    = "<dots_function_call>"
)

// miniMaxM1 reads JSON objects, one a line.
func miniMaxM1(p *Parser, _ int) {
	p.try(func(p *Parser) bool { return p.callObjects("</tool_calls>") })
}

// callObjects takes at least one call as a JSON object, up to end.
func (p *Parser) callObjects(end string) bool {
	for p.space(); ; p.space() {
		if p.found > 0 && p.lit(end) {
			return true
		}
		if !p.callObject() {
			return false
		}
	}
}

// plainInvoke is the form of MiniMax M2.
func plainInvoke() invokeForm {
	return invokeForm{open: `<invoke name="`, end: "</invoke>", param: `<parameter name="`, paramEnd: "</parameter>"}
}

func miniMaxM2(p *Parser, _ int) {
	f := plainInvoke()
	p.section(miniMaxOpen, f.open, "</minimax:tool_call>", f.read)
}

// dots is the form of MiniMax M2 in a tag of its own, or JSON objects.
func dots(p *Parser, _ int) {
	const end = "</dots_function_call>"
	if p.follows("{") {
		p.try(func(p *Parser) bool { return p.callObjects(end) })
		return
	}
	f := plainInvoke()
	p.section(dotsOpen, f.open, end, f.read)
}
