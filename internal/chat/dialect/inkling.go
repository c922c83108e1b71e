package dialect

func inklingForm() channelForm {
	return channelForm{starts: []string{"<|message_model|>"}, ends: []string{"<|end_message|>"}}
}

// inkling reads messages with a kind of content.
func inkling(p *Parser) {
	f := inklingForm()
	f.head = inklingHead
	f.read(p)
}

func inklingHead(p *Parser, _ int) (isCall, ok bool) {
	p.name() // of the tool, which the body has, too
	if p.space(); !p.lit("<|content_") {
		return false, false
	}
	kind, ok := p.name()
	if !ok || !p.lit("|>") {
		return false, false
	}
	switch kind {
	case "text":
		p.enter(Content)
	case "thinking":
		p.enter(Reasoning)
	case "invoke_tool_json":
		p.space()
		return true, p.callObject() && inklingForm().closed(p)
	default:
		return false, false
	}
	return false, true
}
