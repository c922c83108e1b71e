package dialect

const step3Open = "<｜tool_calls_begin｜>"

// step3 reads a section of calls in steptml tags. Its tokens have no low blocks, unlike DeepSeek's.
func step3(p *Parser, _ int) {
	f := invokeForm{
		open: `<steptml:invoke name="`, end: "</steptml:invoke>",
		param: `<steptml:parameter name="`, paramEnd: "</steptml:parameter>",
	}
	p.section(step3Open, "<｜tool_call_begin｜>", "<｜tool_calls_end｜>", func(p *Parser) bool {
		return p.spaced("function<｜tool_sep｜>") && p.lit(f.open) && f.read(p) && p.last("<｜tool_call_end｜>")
	})
}
