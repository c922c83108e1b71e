package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server/wire"
)

// A talk makes messages of the items of a conversation: calls join the assistant's message before them,
// reasoning the one after it.
type talk struct {
	list      []spillway.Message
	reasoning strings.Builder
	text      int64 // bytes
}

// inputItems are the items of a request's input: a text is a message of the user.
func inputItems(v wire.Value) (items []json.RawMessage, err error) {
	switch v.Kind() {
	case wire.Null:
		return nil, wire.Errorf("input", "is missing: give a text, or a list of items")
	case wire.String:
		var w rewriter
		w.text("type", "message")
		w.text("role", "user")
		w.raw("content", v.Raw())
		return []json.RawMessage{w.end()}, nil
	case wire.Array:
		err = v.Each(func(_ int, e wire.Value) error {
			items = append(items, e.Raw())
			return nil
		})
	default:
		err = wire.Within("input", v.Expected("a string or a list"))
	}
	if err == nil && len(items) == 0 {
		err = wire.Errorf("input", "is empty: give one item at least")
	}
	return items, err
}

// add goes on by an item.
func (t *talk) add(raw json.RawMessage) error {
	v, err := wire.Parse(raw)
	if err != nil {
		return err
	}
	if v.Kind() != wire.Object {
		return v.Expected("an object")
	}
	var head struct {
		Type string `json:"type"`
		Role string `json:"role"`
	}
	if err := v.Into(&head); err != nil {
		return err
	}
	switch {
	case head.Type == "message" || head.Type == "" && head.Role != "":
		return t.message(v)
	case head.Type == "function_call":
		return t.call(v)
	case head.Type == "function_call_output":
		return t.output(v)
	case head.Type == "reasoning":
		return t.reason(v)
	}
	return wire.Errorf("type", "is %.40q; there are message, function_call, function_call_output and reasoning", head.Type)
}

// push appends a message.
func (t *talk) push(m spillway.Message) {
	if m.Role == "assistant" && t.reasoning.Len() > 0 {
		m.Reasoning = t.reasoning.String()
	}
	t.reasoning.Reset()
	t.list = append(t.list, m)
	t.text += textBytes([]byte(m.Content)) + textBytes([]byte(m.Reasoning)) + int64(len(m.Name))
}

func (t *talk) message(v wire.Value) error {
	var m struct {
		Role    string     `json:"role"`
		Content wire.Value `json:"content"`
	}
	if err := v.Into(&m); err != nil {
		return err
	}
	if m.Role == "developer" {
		m.Role = "system"
	}
	if !slices.Contains(roles, m.Role) || m.Role == "tool" || m.Role == "function" {
		return wire.Errorf("role", "is %.40q; there are system, developer, user and assistant", m.Role)
	}
	text, err := content(m.Content)
	if err != nil {
		return wire.Within("content", err)
	}
	t.push(spillway.Message{Role: m.Role, Content: text})
	return nil
}

func (t *talk) call(v wire.Value) error {
	var c struct {
		ID        string     `json:"call_id"`
		Name      string     `json:"name"`
		Arguments wire.Value `json:"arguments"`
	}
	if err := v.Into(&c); err != nil {
		return err
	}
	if c.Name == "" {
		return wire.Errorf("name", "is missing")
	}
	text, err := c.Arguments.Text()
	if err == nil && !json.Valid([]byte(text)) {
		err = wire.Errorf("", "is no valid JSON: %.80q", text)
	}
	if err != nil {
		return wire.Within("arguments", err)
	}
	if n := len(t.list); n == 0 || t.list[n-1].Role != "assistant" || t.reasoning.Len() > 0 {
		t.push(spillway.Message{Role: "assistant"})
	}
	last := &t.list[len(t.list)-1]
	last.ToolCalls = append(last.ToolCalls, spillway.ToolCall{ID: c.ID, Name: c.Name, Arguments: text})
	t.text += textBytes([]byte(text)) + int64(len(c.Name))
	return nil
}

func (t *talk) output(v wire.Value) error {
	var o struct {
		ID     string     `json:"call_id"`
		Output wire.Value `json:"output"`
	}
	if err := v.Into(&o); err != nil {
		return err
	}
	text, err := content(o.Output)
	if err != nil {
		return wire.Within("output", err)
	}
	if o.ID == "" {
		return wire.Errorf("call_id", "is missing")
	}
	t.push(spillway.Message{Role: "tool", Content: text, ToolCallID: o.ID, Name: t.callName(o.ID)})
	return nil
}

// callName is the name of the tool that a call was of.
func (t *talk) callName(id string) string {
	for _, m := range t.list {
		for _, c := range m.ToolCalls {
			if c.ID == id {
				return c.Name
			}
		}
	}
	return ""
}

func (t *talk) reason(v wire.Value) error {
	var r struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if err := v.Into(&r); err != nil {
		return err
	}
	for _, c := range r.Content {
		t.reasoning.WriteString(c.Text)
	}
	return nil
}
