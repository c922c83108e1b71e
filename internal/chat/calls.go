package chat

import "slices"

// RenderRequest is RenderSpans for requests as OpenAI's API has them, where the arguments of tool calls are
// JSON inside strings. Most templates want them as objects, some as strings: objects are tried first, and
// strings where that fails or prints what only Python would.
func (t *Template) RenderRequest(in Input) (text string, user []Span, err error) {
	objects := in
	var changed bool
	if objects.Messages, changed = withObjects(in.Messages); !changed {
		return t.RenderSpans(in)
	}
	out, err := t.run(objects)
	if err != nil || out.Python {
		if other, failed := t.run(in); failed == nil && (err != nil || !other.Python) {
			out, err = other, nil
		}
	}
	return out.Text, out.User, err
}

// withObjects gives the calls in messages their arguments as objects; changed: there were such strings.
func withObjects(messages []*Object) (out []*Object, changed bool) {
	out = slices.Clone(messages)
	for i, m := range messages {
		calls, ok := m.Get("tool_calls").([]any)
		if !ok {
			continue
		}
		calls = slices.Clone(calls)
		for j, c := range calls {
			if call, ok := withObject(c); ok {
				calls[j], changed = call, true
			}
		}
		out[i] = &Object{slices.Clone(m.Fields)}
		out[i].Set("tool_calls", calls)
	}
	return out, changed
}

// withObject is a copy of {"function": {"arguments": "…"}} or {"arguments": "…"} with an object.
func withObject(v any) (*Object, bool) {
	call, ok := v.(*Object)
	if !ok || call == nil {
		return nil, false
	}
	for _, key := range []string{"function", "arguments"} {
		var value any
		switch inner := call.Get(key).(type) {
		case *Object:
			if key != "function" {
				continue
			}
			if value, ok = withObject(inner); !ok {
				continue
			}
		case string:
			object, err := ParseJSON([]byte(inner))
			if _, ok := object.(*Object); !ok || err != nil || key != "arguments" {
				continue
			}
			value = object
		default:
			continue
		}
		out := &Object{slices.Clone(call.Fields)}
		out.Set(key, value)
		return out, true
	}
	return nil, false
}
