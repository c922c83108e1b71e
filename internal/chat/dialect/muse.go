package dialect

func museForm() channelForm {
	return channelForm{starts: []string{"<|start|>assistant"}, ends: []string{"<|eom|>", "<|eot|>"}}
}

// muse reads messages that say whom they are for.
func muse(p *Parser) {
	f := museForm()
	f.head = museHead
	f.read(p)
}

func museHead(p *Parser, _ int) (isCall, ok bool) {
	recipient := p.recipient()
	if !p.lit("<|message|>") {
		return false, false
	}
	switch recipient {
	case "self":
		p.enter(Reasoning)
	case "user", "commentary":
		p.enter(Content)
	case "":
		return false, false
	default:
		return true, museCalls(p) && museForm().closed(p)
	}
	return false, true
}

// museCalls reads the body of a message to a tool.
func museCalls(p *Parser) bool {
	f := invokeForm{
		open: `<atem:invoke name="`, end: "</atem:invoke>",
		param: `<atem:parameter name="`, paramEnd: "</atem:parameter>",
	}
	if !p.spaced("<atem:function_calls>") {
		return false
	}
	for ; p.found == 0 || !p.lit("</atem:function_calls>"); p.space() {
		if !p.lit(f.open) || !f.read(p) {
			return false
		}
	}
	return true
}
