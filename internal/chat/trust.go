package chat

import (
	"strings"

	"github.com/spillway/spillway/internal/chat/jinja"
)

// What of a message is as good as the template's own text: docs/rfcs/0006-user-text.md says why.

// reasoningMarks open and close reasoning. An assistant's message in the history has them where clients
// send the reasoning back within the content; there they are what the model wrote: tokens.
var reasoningMarks = []string{
	"<think>", "</think>", "<thinking>", "</thinking>", "<thought>", "</thought>", "<seed:think>", "</seed:think>",
	"<think:opensource>", "</think:opensource>", "[THINK]", "[/THINK]", "◁think▷", "◁/think▷", "<|begin_of_thought|>", "<|end_of_thought|>",
}

// messageToJinja is toJinja for a message.
func messageToJinja(m *Object) (jinja.Value, error) {
	role, _ := m.Get("role").(string)
	return trustedObject(m, role == "assistant")
}

// trustedObject makes a value of a message or a part of its content, where names of roles and types are
// trusted: templates make control tokens of them, such as <|user|>.
func trustedObject(o *Object, assistant bool) (jinja.Value, error) {
	out := jinja.NewDict()
	for _, f := range o.Fields {
		v, err := trustedField(f, assistant)
		if err != nil {
			return nil, err
		}
		if err := out.Set(jinja.User(f.Key), v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func trustedField(f Field, assistant bool) (jinja.Value, error) {
	text, isText := f.Value.(string)
	parts, isList := f.Value.([]any)
	switch {
	case isText && (f.Key == "role" || f.Key == "type") && isWord(text):
		return text, nil
	case isText && assistant && (f.Key == "content" || f.Key == "text"):
		return jinja.UserExcept(text, marksIn(text)), nil
	case isList && f.Key == "content":
		return partsToJinja(parts, assistant)
	}
	return toJinja(f.Value)
}

func partsToJinja(parts []any, assistant bool) (jinja.Value, error) {
	list := jinja.NewList(make([]jinja.Value, len(parts))...)
	for i, part := range parts {
		var err error
		if o, ok := part.(*Object); ok && o != nil {
			list.Items[i], err = trustedObject(o, assistant)
		} else {
			list.Items[i], err = toJinja(part)
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// isWord reports whether a text has nothing that marks a control token.
func isWord(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}

// marksIn finds the marks of reasoning in a text.
func marksIn(s string) []Span {
	var found []Span
	if strings.IndexByte(s, '<') < 0 && strings.IndexByte(s, '[') < 0 && strings.IndexByte(s, "◁"[0]) < 0 {
		return nil // what follows is slower
	}
	for at := 0; at < len(s); {
		if s[at] != '<' && s[at] != '[' && s[at] != "◁"[0] {
			at++
			continue
		}
		size := 1
		for _, mark := range reasoningMarks {
			if strings.HasPrefix(s[at:], mark) {
				size = len(mark)
				found = append(found, Span{Start: at, End: at + size})
				break
			}
		}
		at += size
	}
	return found
}
