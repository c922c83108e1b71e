package dialect

// array is a JSON array of calls up to end; "": the array itself is the end.
func array(end string) func(p *Parser, _ int) {
	return func(p *Parser, _ int) {
		p.try(func(p *Parser) bool {
			p.space()
			return p.callArray() && (end == "" || p.last(end))
		})
	}
}
