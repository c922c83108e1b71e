package dialect

// phi4Mini reads an array whose bracket belongs to the marker.
func phi4Mini(p *Parser, _ int) {
	p.pos--
	p.try((*Parser).callArray)
}
