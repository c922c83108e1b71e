package dialect

const pythonTag = "<|python_tag|>"

// llama3 reads JSON objects with calls.
func llama3(p *Parser) bool { return p.llama3Calls(p.sure) }

func llama3Tagged(p *Parser, _ int) {
	p.try(func(p *Parser) bool {
		p.space()
		return p.llama3Calls(p.assured.All) // in the midst of text the second call may be text to a grammar
	})
}

// llama3Calls reads a call, and more of them, which may be sure.
func (p *Parser) llama3Calls(sure bool) bool {
	if !p.sees("{") || !p.callObject() {
		return false
	}
	p.settle(true)
	p.sure = sure
	p.llama3More()
	return true
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
