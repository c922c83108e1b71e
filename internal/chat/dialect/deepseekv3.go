package dialect

const (
	deepseekCalls = "<｜tool▁calls▁begin｜>"
	deepseekCall  = "<｜tool▁call▁begin｜>"
	deepseekSep   = "<｜tool▁sep｜>"
)

// deepseek is a section of calls; one reads a call after its opening.
func deepseek(name string, one func(p *Parser) bool) tool {
	return tool{name: name, markers: []string{deepseekCalls}, take: func(p *Parser, _ int) {
		p.section(deepseekCalls, deepseekCall, "<｜tool▁calls▁end｜>", func(p *Parser) bool {
			return one(p) && p.last("<｜tool▁call▁end｜>")
		})
	}}
}

// deepseekV3Call reads function, a separator, the name, and the arguments in a fence.
func deepseekV3Call(p *Parser) bool {
	if !p.last("function" + deepseekSep) {
		return false
	}
	name, ok := p.name()
	return ok && p.spaced("```json") && p.callArguments(name, "") && p.last("```")
}

// deepseekV31Call reads the name, a separator, and the arguments.
func deepseekV31Call(p *Parser) bool {
	p.space()
	name, ok := p.name()
	return ok && p.spaced(deepseekSep) && p.callArguments(name, "")
}

// callArguments takes an object and adds the call.
func (p *Parser) callArguments(name, id string) bool {
	p.beginCall(name, id)
	if !p.argumentObject() {
		return false
	}
	p.endCall()
	return true
}
