package dialect

func xlamMarkers() []string { return []string{"```json", "<tool_call>", "[TOOL_CALLS]"} }

// xlam reads an array in a fence, in tags, or after a token.
func xlam(p *Parser, i int) { array([...]string{"```", "</tool_call>", ""}[i])(p, i) }
