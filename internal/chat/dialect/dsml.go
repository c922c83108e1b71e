package dialect

const dsmlBar = "｜DSML｜"

// dsml is DeepSeek's markup since V3.2: tag names the section, space stands behind the bar in every tag.
func dsml(name, tag, space string) tool {
	bar := dsmlBar + space
	f := invokeForm{
		open: "<" + bar + `invoke name="`, end: "</" + bar + "invoke>",
		param: "<" + bar + `parameter name="`, paramEnd: "</" + bar + "parameter>",
		typed: true, json: true,
	}
	mark := "<" + bar + tag + ">"
	return tool{name: name, markers: []string{mark}, take: func(p *Parser, _ int) {
		p.section(mark, f.open, "</"+bar+tag+">", f.read)
	}}
}
