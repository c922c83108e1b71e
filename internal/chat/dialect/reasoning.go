package dialect

// A reasoning is a dialect of reasoning.
type reasoning struct {
	name      string
	open      []string // begin the reasoning, at the beginning of the answer
	close     []string // end it
	anywhere  bool     // control tokens: reasoning may begin again later
	interrupt string   // ends the reasoning, too, and belongs to what follows
	bare      bool     // an answer without reasoning may begin with the closing mark
	keep      string   // all is content, with this before it if the prompt has opened the reasoning
	wrapOpen  string   // may begin the answer after the reasoning; no content
	wrapClose string   // ends it
	drop      []string // control tokens that are no content, wherever they stand

	// channels reads the whole answer where reasoning, content and calls are messages of one form.
	channels func(p *Parser)
	opening  string // of it, where the prompt opens the reasoning
}

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// pair is a dialect of one mark before the reasoning and one behind it.
func pair(name, open, end string) reasoning {
	return reasoning{name: name, open: []string{open}, close: []string{end}}
}

// think is a pair of think tags.
func think(name string) reasoning { return pair(name, thinkOpen, thinkClose) }

// reasonings is the table of dialects, sorted by name.
func reasonings() []reasoning {
	return []reasoning{
		{name: "apertus", open: []string{"<|inner_prefix|>"}, close: []string{"<|inner_suffix|>"}, anywhere: true},
		{name: "apriel", open: []string{"Here are my reasoning steps:"}, close: []string{"[BEGIN FINAL RESPONSE]"}, wrapClose: "[END FINAL RESPONSE]"},
		cohereReasoning(),
		think("deepseek_r1"),
		think("deepseek_v31"),
		think("deepseek_v32"),
		{name: "ernie45", open: []string{thinkOpen}, close: []string{thinkClose}, bare: true, wrapOpen: "<response>", wrapClose: "</response>"},
		{name: "gemma4", open: []string{"<|channel>thought"}, close: []string{"<channel|>"}, anywhere: true},
		think("glm45"),
		think("glm47"),
		{
			name:  "granite",
			open:  []string{"Here is my thought process:", "Here's my thought process:"},
			close: []string{"Here is my response:", "Here's my response:"},
		},
		{name: "granite_33", open: []string{thinkOpen}, close: []string{thinkClose}, wrapOpen: "<response>", wrapClose: "</response>"},
		{name: "harmony", channels: harmony, opening: "<|channel|>analysis<|message|>"},
		{name: "hunyuan_a13b", open: []string{thinkOpen}, close: []string{thinkClose}, wrapOpen: "<answer>", wrapClose: "</answer>"},
		pair("hy_v3_opensource", "<think:opensource>", "</think:opensource>"),
		{name: "inkling", channels: inkling, opening: "<|message_model|><|content_thinking|>"},
		{name: "kimi_k2", open: []string{thinkOpen}, close: []string{thinkClose}, interrupt: kimiSection},
		{name: "kimi_k3", channels: kimiK3, opening: "<|open|>think<|sep|>"},
		pair("kimi_vl", "◁think▷", "◁/think▷"),
		pair("longcat", "<longcat_think>", "</longcat_think>"),
		think("minimax_m2"),
		{name: "minimax_m2_append_think", keep: thinkOpen},
		{name: "minimax_m3", open: []string{"<mm:think>"}, close: []string{"</mm:think>"}, bare: true},
		{name: "mistral", open: []string{"[THINK]"}, close: []string{"[/THINK]"}, anywhere: true},
		{name: "muse", channels: muse, opening: "to=self<|message|>"},
		think("olmo3"),
		pair("plamo3", "<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),
		think("qwen3"),
		think("qwen3_5"),
		{name: "seed_oss", open: []string{"<seed:think>"}, close: []string{"</seed:think>"}},
		think("step3p5"),
	}
}

// plain reads reasoning that stands before content with calls.
func (p *Parser) plain() {
	r := p.reasoning
	fresh := true // nothing but white space came before the content, or what the prompt opened
	switch {
	case r.keep != "" && p.promptOpen:
		p.send(Event{Kind: Content, Text: r.keep})
	case r.keep != "" || len(r.close) == 0:
	case p.promptOpen || p.opened(r.open):
		fresh = p.promptOpen
		p.think()
	case r.bare && p.opened(r.close):
		fresh = false
	}
	p.content(fresh)
}

// opened takes a mark at the beginning of the answer, with white space before it.
func (p *Parser) opened(marks []string) bool {
	p.space()
	if c, ok := p.at(0); ok && p.marker(c, marks) >= 0 {
		p.drop()
		return true
	}
	p.pos = p.safe
	return false
}

// think passes reasoning on, after its mark, up to the mark that ends it. Where the prompt has opened the
// reasoning, the model may open it once more.
func (p *Parser) think() {
	r := p.reasoning
	p.enter(Reasoning)
	p.opened(r.open)
	if i := p.scan(append(r.close, r.interrupt)); i == len(r.close) {
		p.pos -= len(r.interrupt)
	} else if i < 0 {
		return
	}
	p.drop()
	p.kind, p.trim = Content, true
}

// content passes content on and reads the calls in it; fresh: the answer, or the prompt's reasoning, is right before it.
func (p *Parser) content(fresh bool) {
	t, r := p.tool, p.reasoning
	wrapped := r.wrapOpen == "" || p.opened([]string{r.wrapOpen})
	if wrapped && r.wrapOpen != "" {
		p.trim, fresh = true, false
	}
	if t.start != nil {
		p.begins(fresh)
	}
	markers := append(append([]string{}, t.markers...), r.drop...)
	reopen := len(markers)
	if r.anywhere {
		markers = append(markers, r.open...)
	}
	wrap := len(markers)
	if wrapped && r.wrapClose != "" {
		markers = append(markers, r.wrapClose)
	}
	for {
		switch i := p.scan(markers); {
		case i < 0:
			p.tail()
			return
		case i < len(t.markers):
			p.trust(p.assured.Marks, len(t.markers[i]))
			t.take(p, i)
			p.sure = p.assured.All
		case i < reopen:
			p.leave()
		case i < wrap:
			p.again()
		default:
			p.leave()
			markers[wrap] = ""
		}
	}
}

// begins reads a call that begins the content without a marker.
func (p *Parser) begins(fresh bool) {
	if p.space(); p.ended() || p.follows(p.tool.markers...) {
		return
	}
	if fresh {
		p.trust(p.assured.Starts, 0)
	}
	p.try(p.tool.start)
	p.sure = p.assured.All
}

// again reads reasoning in the midst of content: white space before its mark is content.
func (p *Parser) again() {
	p.safe = p.pos
	for _, open := range p.reasoning.open {
		if n := len(open); p.safe >= n && string(p.buf[p.safe-n:p.safe]) == open {
			p.safe -= n
			break
		}
	}
	p.think()
}
