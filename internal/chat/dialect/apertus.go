package dialect

// apertus reads an array of objects with one key: the name, whose value is the arguments.
func apertus(p *Parser, _ int) {
	p.try(func(p *Parser) bool {
		p.space()
		return p.jsonArray(apertusCall(p)) && p.found > 0 && p.last("<|tools_suffix|>")
	})
}

func apertusCall(p *Parser) func() bool {
	return func() bool {
		n := p.found
		return p.jsonObject(0, func(key string) bool {
			return key != "" && p.callArguments(key, "")
		}) && p.found == n+1
	}
}
