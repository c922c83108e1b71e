package dialect

const cohereName = "cohere_command3"

func cohereMarkers() []string { return []string{"<|START_ACTION|>"} }

// cohereReasoning serves Command A and its kin; the marks around an answer differ between generations.
func cohereReasoning() reasoning {
	return reasoning{
		name: cohereName, open: []string{"<|START_THINKING|>"}, close: []string{"<|END_THINKING|>"}, anywhere: true,
		drop: []string{"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"},
	}
}

func cohere(p *Parser, i int) { array("<|END_ACTION|>")(p, i) }
