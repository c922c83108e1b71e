package dialect

// functionary reads a segment after >>>.
func functionary(p *Parser, _ int) { p.try((*Parser).functionarySegment) }

// functionarySegment reads a recipient, a newline, and for a tool its arguments; what all is told is content.
func (p *Parser) functionarySegment() bool {
	name, ok := p.name()
	if !ok || !p.lit("\n") {
		return false
	}
	if name == "all" {
		return true
	}
	p.space()
	return p.callArguments(name, "")
}
