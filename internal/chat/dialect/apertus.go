package dialect

// apertus reads an array of objects with one key: the name, whose value is the arguments.
func apertus(p *Parser, _ int) {
	p.try(func(p *Parser) bool {
		p.space()
		return p.jsonArray(apertusCall(p)) && len(p.pending) > 0 && p.last("<|tools_suffix|>")
	})
}

func apertusCall(p *Parser) func() bool {
	return func() bool {
		n := len(p.pending)
		return p.jsonObject(0, func(key string) bool {
			return key != "" && p.callArguments(key, "")
		}) && len(p.pending) == n+1
	}
}
