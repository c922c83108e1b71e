package dialect

import "strings"

const (
	k3Open  = "<|open|>"
	k3Close = "<|close|>"
	k3Sep   = "<|sep|>"
)

// kimiK3 reads channels, which are opened and closed by name; the prompt has opened the message.
func kimiK3(p *Parser) {
	// The innermost channel that is open; "": what was opened is not well-formed. Without thinking the prompt opens
	// the response.
	channel := "response"
	if p.promptOpen {
		p.enter(Reasoning)
		channel = "think"
	}
	for markers := []string{k3Open, k3Close}; ; {
		switch p.scan(markers) {
		case 0:
			channel = p.k3Channel(channel)
		case 1:
			name, ok := p.name()
			if !ok || !p.lit(k3Sep) || channel == "" || name != channel && name != "message" {
				p.settle(false)
				continue
			}
			p.leave()
			p.kind, channel = Content, "message"
		default:
			return
		}
	}
}

// k3Channel reads the opening of a channel, or a call in the one for tools, and returns what is open then.
func (p *Parser) k3Channel(channel string) string {
	p.over = false
	name, _ := p.name()
	if name == "call" && channel == "tools" {
		p.try(k3Call)
		return channel
	}
	if _, ok := p.k3Attributes(); ok {
		switch name {
		case "think":
			p.enter(Reasoning)
			return name
		case "response":
			p.enter(Content)
			return name
		case "tools":
			if p.last(k3Open+"call") && k3Call(p) {
				p.settle(true)
				p.kind = Content
				return name
			}
		}
	}
	p.garbled()
	return ""
}

// k3Call reads the attributes of a call and its arguments.
func k3Call(p *Parser) bool {
	attributes, ok := p.k3Attributes()
	name := attributes["tool"]
	if !ok || name == "" {
		return false
	}
	p.beginCall(name, "")
	for p.space(); !p.lit(k3Close + "call" + k3Sep); p.space() {
		if !p.lit(k3Open + "argument") {
			return false
		}
		attributes, ok := p.k3Attributes()
		if !ok || attributes["key"] == "" {
			return false
		}
		text, end := p.until(k3Close + "argument" + k3Sep)
		if end < 0 {
			return false
		}
		p.k3Argument(name, attributes, text)
	}
	p.endMembers()
	return true
}

func (p *Parser) k3Argument(tool string, attributes map[string]string, text string) {
	key := attributes["key"]
	switch attributes["type"] {
	case "":
		p.argument(tool, key, text)
		return
	case "string":
	default:
		if value, ok := literal(text); ok {
			p.member(key, value)
			return
		}
	}
	p.member(key, string(quote(nil, text)))
}

// k3Attributes takes name="value" pairs up to the separator.
func (p *Parser) k3Attributes() (map[string]string, bool) {
	out := map[string]string{}
	unescape := strings.NewReplacer("&quot;", `"`, "&amp;", "&")
	for p.space(); !p.lit(k3Sep); p.space() {
		name, ok := p.word(func(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c == '-' })
		if !ok || !p.lit(`="`) {
			return nil, false
		}
		value, end := p.until(`"`)
		if end < 0 {
			return nil, false
		}
		out[name] = unescape.Replace(value)
	}
	return out, true
}
