package dialect

import "strings"

// m3Mark is the token before every tag of MiniMax M3.
const m3Mark = "]<]minimax[>["

func miniMaxM3(p *Parser, _ int) {
	p.section(m3Mark+"<tool_call>", m3Mark+`<invoke name="`, m3Mark+"</tool_call>", m3Call)
}

// m3Call reads a call after the opening of its tag: an element for each argument.
func m3Call(p *Parser) bool {
	name, ok := p.name()
	if !ok || !p.lit(`">`) {
		return false
	}
	p.beginCall(name, "")
	for !p.last(m3Mark + "</invoke>") {
		key, ok := p.m3Key()
		if !ok {
			return false
		}
		value, ok := p.m3Value(name, key, p.schema(name, key), 0)
		if !ok {
			return false
		}
		p.member(key, value)
	}
	p.endMembers()
	return true
}

// m3Key takes an opening tag.
func (p *Parser) m3Key() (string, bool) {
	if !p.lit(m3Mark+"<") || p.sees("/") {
		return "", false
	}
	return p.key(">")
}

// m3Value takes the value of an element up to its closing tag, as JSON: a scalar, an object of elements, or an
// array of elements named item.
func (p *Parser) m3Value(tool, key string, schema any, depth int) (string, bool) {
	schema = p.resolve(tool, schema)
	text, end := p.until(m3Mark)
	if end < 0 || depth > maxDepth {
		return "", false
	}
	if p.lit("</" + key + ">") {
		return p.m3Scalar(tool, schema, text), true
	}
	p.pos -= len(m3Mark)
	if strings.TrimSpace(text) != "" {
		return "", false
	}
	var m members
	var list []string
	onlyItems := true
	for !p.last(m3Mark + "</" + key + ">") {
		child, ok := p.m3Key()
		if !ok {
			return "", false
		}
		value, ok := p.m3Value(tool, child, childSchema(schema, child), depth+1)
		if !ok {
			return "", false
		}
		onlyItems = onlyItems && child == "item"
		list = append(list, value)
		m.set(child, value)
	}
	if onlyItems && property(schema, "item") == nil {
		return "[" + strings.Join(list, ", ") + "]", true
	}
	return m.text(), true
}

// childSchema is the schema of an element in an element.
func childSchema(schema any, child string) any {
	if sub := member(schema, "items"); child == "item" && sub != nil {
		return sub
	}
	return property(schema, child)
}

// m3Scalar gives the text of an element without elements in it: lists and objects that are empty leave nothing.
func (p *Parser) m3Scalar(tool string, schema any, text string) string {
	if types := p.types(tool, schema); len(types) == 1 && strings.TrimSpace(text) == "" {
		switch types[0] {
		case "array":
			return "[]"
		case "object":
			return "{}"
		}
	}
	return p.typed(tool, schema, text)
}
