package dialect

const pythonTag = "<|python_tag|>"

// llama3 reads a JSON object with a call.
func llama3(p *Parser) bool {
	if !p.sees("{") || !p.callObject() {
		return false
	}
	p.settle(true)
	p.llama3More()
	return true
}

func llama3Tagged(p *Parser, _ int) {
	p.try(func(p *Parser) bool {
		p.space()
		return llama3(p)
	})
}

// llama3More reads further objects, each after a semicolon.
func (p *Parser) llama3More() {
	for {
		p.space()
		if !p.lit(";") {
			p.pos = p.safe
			return
		}
		if p.space(); p.ended() {
			return
		}
		ok := p.sees("{") && p.callObject()
		if p.settle(ok); !ok {
			return
		}
	}
}
