package dialect

import "strings"

const (
	harmonyStart   = "<|start|>assistant"
	harmonyChannel = "<|channel|>"
)

func harmonyForm() channelForm {
	return channelForm{starts: []string{harmonyStart, harmonyChannel}, ends: []string{"<|end|>", "<|call|>", "<|return|>"}}
}

// harmony reads the messages of gpt-oss: the channel and the recipient say what a body is.
func harmony(p *Parser) {
	f := harmonyForm()
	f.head = harmonyHead
	f.read(p)
}

func harmonyHead(p *Parser, i int) (isCall, ok bool) {
	recipient := ""
	if i != 1 {
		recipient = p.recipient()
		if !p.lit(harmonyChannel) {
			return false, false
		}
	}
	channel, ok := p.name()
	if !ok {
		return false, false
	}
	if r := p.recipient(); r != "" {
		recipient = r
	}
	if p.space(); p.lit("<|constrain|>") || recipient != "" {
		p.name()
		p.space()
	}
	if !p.lit("<|message|>") {
		return false, false
	}
	if recipient != "" {
		p.space()
		ok := p.callArguments(strings.TrimPrefix(recipient, "functions."), "")
		return true, ok && harmonyForm().closed(p)
	}
	switch channel {
	case "analysis":
		p.enter(Reasoning)
	case "final", "commentary":
		p.enter(Content)
	default:
		return false, false
	}
	return false, true
}

// recipient takes to=NAME with white space around it; "": there is none.
func (p *Parser) recipient() string {
	start := p.pos
	p.space()
	if p.lit("to=") {
		if name, ok := p.name(); ok {
			p.space()
			return name
		}
	}
	p.pos = start
	return ""
}
