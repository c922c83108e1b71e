package dialect

// miniCPM5 reads a function with params; values may be in CDATA sections.
func miniCPM5(p *Parser, _ int) {
	f := invokeForm{end: "</function>", param: `<param name="`, paramEnd: "</param>", cdata: true}
	p.try(f.read)
}
