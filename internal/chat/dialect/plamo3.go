package dialect

func plamoTag(name string) string { return "<|plamo:" + name + ":plamo|>" }

// plamo3 reads a section of requests, each with a name and arguments in JSON.
func plamo3(p *Parser, _ int) {
	p.section(plamoTag("begin_tool_requests"), plamoTag("begin_tool_request"), plamoTag("end_tool_requests"), plamoCall)
}

func plamoCall(p *Parser) bool {
	if !p.spaced(plamoTag("begin_tool_name")) {
		return false
	}
	name, ok := p.name()
	return ok && p.spaced(plamoTag("end_tool_name")) && p.spaced(plamoTag("begin_tool_arguments")) &&
		p.spaced("<|plamo:constrain|>json<|plamo:msg|>") && p.callArguments(name, "") &&
		p.last(plamoTag("end_tool_arguments")) && p.last(plamoTag("end_tool_request"))
}
