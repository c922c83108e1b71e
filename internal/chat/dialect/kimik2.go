package dialect

import "strings"

const (
	kimiSection = "<|tool_calls_section_begin|>"
	kimiArgs    = "<|tool_call_argument_begin|>"
)

func kimiK2(p *Parser, _ int) {
	p.section(kimiSection, "<|tool_call_begin|>", "<|tool_calls_section_end|>", kimiK2Call)
}

// kimiK2Call reads functions.NAME:INDEX, which is the id, and the arguments.
func kimiK2Call(p *Parser) bool {
	p.space()
	id, ok := p.name()
	if !ok {
		return false
	}
	colon := strings.LastIndexByte(id, ':')
	if colon < 0 || colon+1 == len(id) || strings.Trim(id[colon+1:], "0123456789") != "" {
		return false
	}
	name := strings.TrimPrefix(id[:colon], "functions.")
	return name != "" && p.spaced(kimiArgs) && p.callArguments(name, id) && p.last("<|tool_call_end|>")
}
