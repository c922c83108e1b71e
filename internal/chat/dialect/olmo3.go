package dialect

// olmo3 reads calls in Python's syntax, one a line.
func olmo3(p *Parser, _ int) {
	p.try(func(p *Parser) bool {
		for p.space(); ; p.space() {
			if p.found > 0 && p.lit("</function_calls>") {
				return true
			}
			if !p.pyCall() {
				return false
			}
		}
	})
}
