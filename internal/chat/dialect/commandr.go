package dialect

import "slices"

// commandR reads an array in a fence. The tool directly-answer means that text follows, and is no call.
func commandR(p *Parser, _ int) {
	before := p.calls
	p.try(func(p *Parser) bool {
		p.space()
		ok := p.callArray() && p.last("```")
		p.pending = slices.DeleteFunc(p.pending, func(c call) bool {
			return c.name == "directly-answer" || c.name == "directly_answer"
		})
		return ok
	})
	if p.calls == before && p.mark == p.pos {
		p.trim = true
	}
}
