package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/server/wire"
)

// messages reads the messages of a chat. Text parts become one text, a developer is the system; everything
// else is as the template will see it, in its order. text is about the bytes of text in them.
func messages(v wire.Value) (list []spillway.Message, text int64, err error) {
	if v.Kind() == wire.Null {
		return nil, 0, wire.Errorf("messages", "is missing: give a list of messages")
	}
	err = v.Each(func(_ int, e wire.Value) error {
		m, err := message(e)
		list = append(list, m)
		text += textBytes(m.Raw)
		return err
	})
	if err == nil && len(list) == 0 {
		err = wire.Errorf("", "is empty: give one message at least")
	}
	return list, text, wire.Within("messages", err)
}

// textBytes is the length of a text as tokenizers see it: some write a space with three bytes.
func textBytes(b []byte) int64 { return int64(len(b) + 2*bytes.Count(b, []byte(" "))) }

var roles = []string{"system", "developer", "user", "assistant", "tool", "function"}

// A turn is a message that is being read.
type turn struct {
	w                    rewriter
	role                 string
	hasContent, hasCalls bool
}

// message reads one message.
func message(v wire.Value) (spillway.Message, error) {
	if v.Kind() != wire.Object {
		return spillway.Message{}, v.Expected("an object with a role and a content")
	}
	var t turn
	err := v.Fields(t.field)
	switch {
	case err != nil:
	case t.role == "":
		err = wire.Errorf("role", "is missing; there are %s", strings.Join(roles, ", "))
	case !t.hasContent && t.role != "assistant":
		err = wire.Errorf("content", "is missing")
	case t.hasCalls && t.role != "assistant":
		err = wire.Errorf("tool_calls", "belong to messages of the assistant")
	}
	return spillway.Message{Role: t.role, Raw: t.w.end()}, err
}

// field reads a member of a message.
func (t *turn) field(key string, e wire.Value) (err error) {
	switch null := e.Kind() == wire.Null; {
	case key == "role":
		if t.role, err = e.Text(); err == nil && !slices.Contains(roles, t.role) {
			err = wire.Errorf("", "is %.40q; there are %s", t.role, strings.Join(roles, ", "))
		}
		if t.role == "developer" {
			t.role = "system"
		}
		t.w.text(key, t.role)
	case key == "content" && !null:
		t.hasContent = true
		var text string
		text, err = content(e)
		t.w.text(key, text)
	case key == "tool_calls" && !null:
		t.hasCalls = true
		t.w.raw(key, e.Raw())
		err = e.Each(func(_ int, call wire.Value) error { return toolCall(call) })
	case !null || key == "content":
		t.w.raw(key, e.Raw())
	}
	return err
}

// content is the text of a message: a string, or parts with texts.
func content(v wire.Value) (string, error) {
	if v.Kind() == wire.String {
		return v.Text()
	}
	if v.Kind() != wire.Array {
		return "", v.Expected("a string or a list of parts")
	}
	var all strings.Builder
	err := v.Each(func(_ int, part wire.Value) error {
		text, err := partText(part)
		all.WriteString(text)
		return err
	})
	return all.String(), err
}

// partText is the text of a part.
func partText(v wire.Value) (string, error) {
	if v.Kind() == wire.String {
		return v.Text()
	}
	var part struct {
		Type    string     `json:"type"`
		Text    wire.Value `json:"text"`
		Refusal wire.Value `json:"refusal"`
	}
	if err := v.Into(&part); err != nil {
		return "", err
	}
	switch part.Type {
	case "text", "input_text", "output_text":
		text, err := part.Text.Text()
		return text, wire.Within("text", err)
	case "refusal":
		text, err := part.Refusal.Text()
		return text, wire.Within("refusal", err)
	}
	return "", wire.Errorf("type", "is %.40q; the models here take text alone", part.Type)
}

// toolCall checks a call that the assistant has made.
func toolCall(v wire.Value) error {
	var call struct {
		Type     string `json:"type"`
		Function struct {
			Name      string     `json:"name"`
			Arguments wire.Value `json:"arguments"`
		} `json:"function"`
	}
	if err := v.Into(&call); err != nil {
		return err
	}
	switch {
	case call.Type != "" && call.Type != "function":
		return wire.Errorf("type", "is %.40q; there is function", call.Type)
	case call.Function.Name == "":
		return wire.Errorf("function.name", "is missing")
	}
	return arguments(call.Function.Arguments)
}

// arguments checks that the arguments of a call are JSON.
func arguments(v wire.Value) error {
	const path = "function.arguments"
	switch v.Kind() {
	case wire.Null, wire.Object:
		return nil
	case wire.String:
		text, err := v.Text()
		if err == nil && strings.TrimSpace(text) != "" && !json.Valid([]byte(text)) {
			err = wire.Errorf("", "is no valid JSON: %.80q", text)
		}
		return wire.Within(path, err)
	}
	return wire.Within(path, v.Expected("a string with JSON"))
}

// A rewriter writes an object whose members are mostly those of another.
type rewriter struct{ buf bytes.Buffer }

func (w *rewriter) raw(key string, value []byte) {
	w.buf.WriteByte(",{"[b2i(w.buf.Len() == 0)])
	k, _ := json.Marshal(key) // a string
	w.buf.Write(k)
	w.buf.WriteByte(':')
	w.buf.Write(value)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (w *rewriter) text(key, value string) {
	e, _ := json.Marshal(value) // a string
	w.raw(key, e)
}

func (w *rewriter) end() []byte {
	if w.buf.Len() == 0 {
		return []byte("{}")
	}
	w.buf.WriteByte('}')
	return w.buf.Bytes()
}

// with returns an object with one more member, which replaces one of the same name.
func with(object json.RawMessage, key string, value any) (json.RawMessage, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var w rewriter
	if len(object) > 0 {
		v, err := wire.Parse(object)
		if err != nil {
			return nil, err
		}
		err = v.Fields(func(k string, e wire.Value) error {
			if k != key {
				w.raw(k, e.Raw())
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("template variables: %w", err)
		}
	}
	w.raw(key, raw)
	return w.end(), nil
}

// renderAny encodes a chat. Templates differ in what they make of an assistant's message that has calls and no
// content: where one fails with null, it gets an empty text.
func (h held) renderAny(r spillway.Request) ([]int32, error) {
	ids, err := h.Tokens(r)
	if err == nil {
		return ids, nil
	}
	list, changed := slices.Clone(r.Messages), false
	for i, m := range list {
		v, bad := wire.Parse(m.Raw)
		if e, ok := v.Get("content"); bad != nil || ok && e.Kind() != wire.Null || m.Role != "assistant" {
			continue
		}
		if raw, bad := with(m.Raw, "content", ""); bad == nil {
			list[i].Raw, changed = raw, true
		}
	}
	if !changed {
		return nil, err
	}
	r.Messages = list
	return h.Tokens(r)
}
