package dialect

// gigachat reads one object.
func gigachat(p *Parser, _ int) {
	p.try(func(p *Parser) bool {
		p.space()
		return p.callObject()
	})
}
