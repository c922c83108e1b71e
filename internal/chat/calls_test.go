package chat

import "testing"

func TestRenderRequest(t *testing.T) {
	m, err := ParseJSON([]byte(`{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{\"b\": 1, \"a\": [2]}"}}, {"name": "g", "arguments": "no object"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Messages: []*Object{m.(*Object)}}
	for source, want := range map[string]string{
		"{{ messages[0].tool_calls[0].function.arguments | tojson }}":   `{"b": 1, "a": [2]}`,
		"{{ '' + messages[0].tool_calls[0].function.arguments }}":       `{"b": 1, "a": [2]}`,
		"{{ messages[0].tool_calls[0].function.arguments }}":            `{"b": 1, "a": [2]}`,
		"{{ messages[0].tool_calls[0].function.arguments.b }}":          "1",
		"{{ messages[0].tool_calls[1].arguments }}":                     "no object",
		"{{ messages[0].tool_calls[0].function.arguments.a }}{{ [1] }}": "[2][1]",
	} {
		tmpl, err := Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		if text, _, err := tmpl.RenderRequest(in); err != nil || text != want {
			t.Errorf("%s: %q, %v; want %q", source, text, err, want)
		}
	}
	tmpl, err := Parse("{{ raise_exception(messages[0].tool_calls[0].function.arguments is string) }}")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := tmpl.RenderRequest(in); err == nil || err.Error() != "the chat template refuses: False" {
		t.Errorf("%v, want what the template says of objects", err)
	}
}
