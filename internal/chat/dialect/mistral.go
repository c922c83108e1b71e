package dialect

// mistral reads all forms that follow [TOOL_CALLS]: an array of calls, or NAME[ARGS] and an object, with [CALL_ID]
// and an id between them or without. Which one a model writes depends on its tokenizer's version.
func mistral(name string) tool {
	return tool{name: name, markers: []string{"[TOOL_CALLS]"}, take: func(p *Parser, _ int) { p.try(mistralCalls) }}
}

func mistralCalls(p *Parser) bool {
	if p.space(); p.sees("[") {
		return p.callArray()
	}
	var c call
	var ok bool
	if c.name, ok = p.name(); !ok {
		return false
	}
	if p.space(); p.lit("[CALL_ID]") {
		if c.id, ok = p.name(); !ok {
			return false
		}
	}
	if !p.spaced("[ARGS]") {
		return false
	}
	return p.callArguments(c.name, c.id)
}
