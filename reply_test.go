package spillway

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readAnswer writes a text as if the model had generated it, token by token.
func readAnswer(t *testing.T, m *Model, r Request, prompt, text string) (*Answer, []Event) {
	t.Helper()
	var events []Event
	r.Read, r.Events = true, func(e Event) { events = append(events, e) }
	ids := func(s string) []int32 {
		ids, err := m.Tokens(Request{Prompt: s, Raw: true})
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	w, err := m.newWriter(r, ids(prompt), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &Answer{}
	stopped := false
	for _, id := range ids(text) {
		if stopped = w.push(id); stopped {
			break
		}
	}
	if !stopped {
		w.flush()
	}
	w.end(a)
	if w.err != nil {
		t.Fatal(w.err)
	}
	return a, events
}

func TestReply(t *testing.T) {
	m := openTest(t, "", ModelOptions{Context: 256})
	tools := json.RawMessage(`[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]`)
	call := "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>"
	for name, test := range map[string]struct {
		request      Request
		prompt, text string
		want         Answer
	}{
		"no dialect": {Request{}, "Hi", "<think>a</think>b", Answer{Content: "<think>a</think>b"}},
		"reasoning":  {Request{Dialects: Dialects{Reasoning: "qwen3"}}, "Hi", "<think>a</think>b", Answer{Content: "b", Reasoning: "a"}},
		"opened":     {Request{Dialects: Dialects{Reasoning: "deepseek_r1"}}, "Hi <think>\n", "a</think>b", Answer{Content: "b", Reasoning: "a"}},
		"not opened": {Request{Dialects: Dialects{Reasoning: "qwen3"}}, "Hi", "a b", Answer{Content: "a b"}},
		"refused":    {Request{Dialects: Dialects{Reasoning: NoDialect}}, "Hi", "<think>a", Answer{Content: "<think>a"}},
		"call": {Request{Dialects: Dialects{Tool: "hermes"}, Tools: tools}, "Hi", "So: " + call,
			Answer{Content: "So:", ToolCalls: []ToolCall{{Name: "f", Arguments: `{"a": 1}`}}}},
		"cut call": {Request{Dialects: Dialects{Tool: "hermes"}}, "Hi", "<tool_call>{", Answer{Content: "<tool_call>{"}},
		"stop": {Request{Dialects: Dialects{Reasoning: "qwen3"}, Stop: []string{"END"}}, "Hi", "<think>a</think>b END c",
			Answer{Content: "b ", Reasoning: "a", Text: "<think>a</think>b "}},
	} {
		t.Run(name, func(t *testing.T) {
			got, events := readAnswer(t, m, test.request, test.prompt, test.text)
			if test.want.Text == "" {
				test.want.Text = test.text
			}
			got.Content, got.Text = strings.TrimLeft(got.Content, " "), strings.TrimLeft(got.Text, " ")
			if d := cmp.Diff(&test.want, got, cmp.AllowUnexported(Answer{})); d != "" {
				t.Error(d)
			}
			var content strings.Builder
			for _, e := range events {
				if e.Kind == EventContent {
					content.WriteString(e.Text)
				}
			}
			if s := strings.TrimLeft(content.String(), " "); s != got.Content {
				t.Errorf("the events have %q as content", s)
			}
		})
	}
}

// An answer of the real engine is read as it comes; here the prompt has opened the reasoning.
func TestReplyGenerated(t *testing.T) {
	m := openTest(t, "", ModelOptions{Context: 256})
	a, err := m.Generate(t.Context(), Request{Prompt: "Once upon a time<think>", Raw: true, MaxTokens: 8, Read: true,
		Dialects: Dialects{Reasoning: "deepseek_r1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a.Content != "" || a.Reasoning == "" || strings.TrimSpace(a.Reasoning) != strings.TrimSpace(a.Text) {
		t.Errorf("content %q, reasoning %q of %q", a.Content, a.Reasoning, a.Text)
	}
	if _, err := m.Generate(t.Context(), Request{Prompt: "Hi", Read: true, Dialects: Dialects{Tool: "none such"}}, nil); err == nil {
		t.Error("an unknown dialect is taken")
	}
	if err := (Dialects{Tool: "hermes", Reasoning: "qwen3"}).Check(); err != nil {
		t.Error(err)
	}
	if err := (Dialects{Tool: "x"}).Check(); err == nil {
		t.Error("an unknown dialect is fine")
	}
}

// argumentPieces are the pieces of an answer's first call, and whether the call is complete.
func argumentPieces(events []Event) (pieces []string, ended bool) {
	for _, e := range events {
		switch {
		case e.Call > 0:
		case e.Kind == EventCallArguments:
			pieces = append(pieces, e.Text)
		case e.Kind == EventCallEnd:
			ended = true
		}
	}
	return pieces, ended
}

// A call that the constraint makes sure of comes as it is written; what may turn out to be text is held back until then.
func TestReplyAssured(t *testing.T) {
	m := openTest(t, "", ModelOptions{Context: 256})
	const args = `{"a": 17, "b": 4}`
	call := "<tool_call>\n{\"name\": \"add\", \"arguments\": " + args + "}\n</tool_call>"
	begun := call[:strings.Index(call, ` 4}`)]
	for name, test := range map[string]struct {
		demand  Demand
		change  func(r *Request)
		text    string
		live    bool
		content string
	}{
		"required":        {Demand{Call: CallRequired}, nil, call, true, ""},
		"named":           {Demand{Call: CallNamed, Name: "add"}, nil, call, true, ""},
		"auto":            {Demand{Strict: true}, nil, "So: " + call, true, "So:"},
		"cut":             {Demand{Call: CallRequired}, nil, begun, true, ""},
		"stop text":       {Demand{Call: CallRequired}, func(r *Request) { r.Stop = []string{"zzz"} }, call, false, ""},
		"stop token":      {Demand{Call: CallRequired}, func(r *Request) { r.StopIDs = []int32{9} }, call, false, ""},
		"content or call": {Demand{Form: Form{Kind: FormJSONObject}}, nil, call, false, ""},
		"free":            {Demand{}, func(r *Request) { r.Constraint = nil }, call, false, ""},
		"other dialects":  {Demand{Call: CallRequired}, func(r *Request) { r.Dialects.Reasoning = "qwen3" }, call, false, ""},
		"free and cut":    {Demand{}, func(r *Request) { r.Constraint = nil }, begun, false, begun},
	} {
		t.Run(name, func(t *testing.T) {
			r := Request{IDs: []int32{1}, Tools: json.RawMessage(addTools), Dialects: Dialects{Tool: "hermes"}}
			limit, err := m.Constrain(t.Context(), &r, test.demand)
			if err != nil {
				t.Fatal(err)
			}
			defer limit.Close()
			if r.Constraint = limit.Constraint(); test.change != nil {
				test.change(&r)
			}
			got, events := readAnswer(t, m, r, "Hi", test.text)
			pieces, ended := argumentPieces(events)
			all := strings.Join(pieces, "")
			if live := len(pieces) > 1; live != test.live || ended != (len(pieces) > 0 && test.text != begun) || strings.TrimSpace(got.Content) != test.content {
				t.Errorf("the pieces %q, complete: %v, and %q", pieces, ended, got.Content)
			}
			if len(pieces) > 0 && (got.ToolCalls[0] != ToolCall{Name: "add", Arguments: all} || !strings.HasPrefix(args, all)) {
				t.Errorf("the pieces %q of %+v", pieces, got.ToolCalls)
			}
		})
	}
}
