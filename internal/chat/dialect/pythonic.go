package dialect

const pythonStart = "<|python_start|>"

// llama4 reads a list of calls between python_start, which has been taken, and python_end.
func llama4(p *Parser, _ int) {
	p.try(func(p *Parser) bool {
		p.space()
		return p.pyCalls() && p.last("<|python_end|>")
	})
}
