package dialect

// granite20b reads the object after <function_call>.
func granite20b(p *Parser, _ int) {
	p.try(func(p *Parser) bool {
		p.space()
		return p.callObject()
	})
}
