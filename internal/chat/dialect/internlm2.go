package dialect

// internLM2 reads the plugin mark, which a space may precede, and an object.
func internLM2(p *Parser, _ int) {
	p.try(func(p *Parser) bool {
		return p.spaced("<|plugin|>") && p.callObject() && p.last("<|action_end|>")
	})
}
