package dialect

// hermes is a JSON object between tags.
func hermes(name, tag, needs string) tool {
	end := "</" + tag + ">"
	return tool{name: name, markers: []string{"<" + tag + ">"}, needs: needs, take: func(p *Parser, _ int) {
		p.try(func(p *Parser) bool {
			p.space()
			return p.callObject() && p.last(end)
		})
	}}
}
