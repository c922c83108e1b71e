package dialect

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/testutil"
)

// offering adds the tools that calls are of.
func (o Options) offering(calls []call) Options {
	known := map[string]bool{}
	for _, t := range o.Tools {
		known[t.Name] = true
	}
	for _, c := range calls {
		if !known[c.name] {
			known[c.name] = true
			o.Tools = append(o.Tools[:len(o.Tools):len(o.Tools)], Tool{Name: c.name})
		}
	}
	return o
}

// assuredCases calls f with all well-formed answers of the cases, and what they are without assurance.
func assuredCases(t *testing.T, dir string, f func(c *testCase, o Options, held message)) {
	t.Helper()
	cases, tools := readCases(t, dir)
	for i := range cases {
		c := &cases[i]
		if strings.HasSuffix(c.ID, "/malformed") || strings.HasSuffix(c.ID, "/truncated") {
			continue
		}
		o := c.options(tools)
		held := parse(t, o, c.Text)
		if c.Dialect == "mistral_json" {
			for i := range held.calls {
				held.calls[i].id = "" // they stand behind the arguments
			}
		}
		o = o.offering(held.calls)
		o.Assured.All = true
		f(c, o, held)
	}
}

// pieces counts the pieces of the arguments of each call.
func pieces(events []Event) (n []int) {
	for _, e := range events {
		switch e.Kind {
		case CallBegin:
			n = append(n, 0)
		case CallArguments:
			n[e.Call]++
		}
	}
	return n
}

// An assured answer is the same as another, however it comes, and its arguments come in pieces.
func checkAssured(t *testing.T, dir string) {
	assuredCases(t, dir, func(c *testCase, o Options, held message) {
		if got := parse(t, o, c.Text); !reflect.DeepEqual(got, held) {
			t.Errorf("%s: %q, held back %q", c.ID, got, held)
		}
		events := eventsOf(t, o, bytesOf(c.Text)...)
		if got := joined(t, events); !reflect.DeepEqual(got, held) {
			t.Errorf("%s, byte by byte: %q, held back %q", c.ID, got, held)
		}
		for i, n := range pieces(events) {
			if n < 2 && held.calls[i].args != "{}" {
				t.Errorf("%s: the arguments %q come in one piece", c.ID, held.calls[i].args)
			}
		}
	})
}

func TestAssuredCases(t *testing.T)       { checkAssured(t, "testdata") }
func TestSharedAssuredCases(t *testing.T) { checkAssured(t, testutil.Shared(t, "chat")) }

// ends are where a text may be cut off. The marks of channels are tokens: a part of one is text that looks like it.
func ends(t *testing.T, o Options, text string) (all []int) {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	marks := regexp.MustCompile(`<\|[^|]*\|>`).FindAllStringIndex(text, -1)
	for i := 1; i < len(text); i++ {
		inMark := func(m []int) bool { return m[0] < i && i < m[1] }
		if p.reasoning.channels == nil || !slices.ContainsFunc(marks, inMark) {
			all = append(all, i)
		}
	}
	return all
}

// What is cut off in a call is the beginning of it, and no content; so is what the call before it left.
func TestAssuredCutOff(t *testing.T) {
	assuredCases(t, "testdata", func(c *testCase, o Options, held message) {
		for _, i := range ends(t, o, c.Text) {
			text := c.Text[:i]
			events := eventsOf(t, o, text)
			got, open := gathered(t, events)
			if again, _ := gathered(t, eventsOf(t, o, bytesOf(text)...)); !reflect.DeepEqual(again, got) {
				t.Errorf("%s: %q byte by byte is %q, whole %q", c.ID, text, again, got)
			}
			if len(got.calls) > len(held.calls) {
				t.Fatalf("%s: %q has the calls %q", c.ID, text, got.calls)
			}
			for k, call := range got.calls {
				want := held.calls[k]
				last := open && k == len(got.calls)-1
				if call.name != want.name || call.id != want.id || !strings.HasPrefix(want.args, call.args) || !last && call.args != want.args {
					t.Errorf("%s: %q has the call %q of %q", c.ID, text, call, want)
				}
			}
			if !strings.HasPrefix(held.content, got.content) || !strings.HasPrefix(held.reasoning, got.reasoning) {
				t.Errorf("%s: %q has the content %q and the reasoning %q", c.ID, text, got.content, got.reasoning)
			}
		}
	})
}

// Only calls that begin with one of the marks are assured, and those of tools that there are.
func TestAssuredMarks(t *testing.T) {
	tools := []Tool{{Name: "f"}, {Name: "longer"}}
	start := Assured{Starts: []string{`{"name"`, "[f(", `[{"name"`, "f\n"}}
	for _, c := range []struct {
		tool, reasoning string
		assured         Assured
		open            bool // the prompt has opened the reasoning
		text            string
		content         string
		calls           []call
	}{
		{"hermes", "", Assured{Marks: []string{"<tool_call>"}}, false, `a <tool_call>{"name": "f", "arguments": {"a": `, "a", one("f", `{"a": `)},
		{"hermes", "", Assured{Marks: []string{"<tool_call>"}}, false, `<tool_call>{"name": "g", "arguments": {"a": 1} oops`, `<tool_call>{"name": "g", "arguments": {"a": 1} oops`, nil},
		{"hermes", "", Assured{Marks: []string{"<other>"}}, false, `<tool_call>{"name": "f", "arguments": {"a": `, `<tool_call>{"name": "f", "arguments": {"a": `, nil},
		{"hermes", "", Assured{All: true}, false, `<tool_call>{"name": "f", "arguments": "{\"a\": 1}"}`, "", one("f", `{"a": 1}`)},
		{"hermes", "", Assured{All: true}, false, `<tool_call>{"arguments": {"a": 1}, "name": "f"}</tool_call>`, "", one("f", `{"a": 1}`)},
		{"hermes", "", Assured{All: true}, false, `<tool_call>{"name": "f", "arguments": {"a": 1]`, "]", one("f", `{"a": 1`)},
		{"hermes", "", Assured{All: true}, false, `<tool_call>{"name": "lo`, "", nil},
		{"hermes", "qwen3", Assured{All: true}, false, `<think><tool_call>{"name": "f"`, "", nil},
		{"xlam_fence", "", Assured{Marks: []string{"```json\n[{\"name\""}}, false, "```json\n[{\"name\": \"f\", \"arguments\": {\"a\"", "", one("f", `{"a"`)},
		{"xlam_fence", "", Assured{Marks: []string{"```json\n[{\"name\""}}, false, "```json\n[{ \"name\": \"f\", \"arguments\": {\"a\"", "```json\n[{ \"name\": \"f\", \"arguments\": {\"a\"", nil},
		{"xlam", "", start, false, "```json\n[{\"name\": \"f\", \"arguments\": {\"a\"", "```json\n[{\"name\": \"f\", \"arguments\": {\"a\"", nil},
		{"pythonic", "", start, false, " [f(a=1, s='x', b=2", "", one("f", `{"a": 1, "s": "x"`)},
		{"pythonic", "", start, false, "[f (a=1, b=2", "[f (a=1, b=2", nil},
		{"pythonic", "", Assured{All: true}, false, "[f(a=1), f(), long", "", []call{{name: "f", args: `{"a": 1}`}, {name: "f", args: "{}"}}},
		{"pythonic", "qwen3", start, false, "<think>x</think>[f(a=1, b=2", "[f(a=1, b=2", nil},
		{"pythonic", "qwen3", start, true, "x</think>[f(a=1, b=2", "", one("f", `{"a": 1`)},
		{"functionary_v32", "", start, false, "f\n{\"a\": 1", "", one("f", `{"a": 1`)},
		{"llama3_json", "", start, false, `{"id": 1, "name": "f", "parameters": {"a": oops`, `{"id": 1, "name": "f", "parameters": {"a": oops`, nil},
		{"llama3_json", "", start, false, `{"name": "f", "parameters": {}}; {"name": "f", "parameters": {"a": 1`, "", []call{{name: "f", args: "{}"}, {name: "f", args: `{"a": 1`}}},
		{"llama3_json", "", Assured{Marks: []string{pythonTag}}, false, `<|python_tag|>{"name": "f", "parameters": {}}; {"name": "f", "parameters": {"a": oops`, `; {"name": "f", "parameters": {"a": oops`, one("f", "{}")},
		{"glm45", "", Assured{All: true}, false, "<tool_call>f\n<arg_key>a</arg_key><arg_value>1</arg_value><arg_key>a</arg_key><arg_value>2</arg_value></tool_call>", "", one("f", `{"a": 1, "a": 2}`)},
		{"command_r", "", Assured{Marks: []string{"Action: ```json"}}, false, "Action: ```json\n[{\"tool_name\": \"directly-answer\", \"parameters\": {}}]\n```Hi", "Hi", nil},
	} {
		o := Options{Tool: c.tool, Reasoning: c.reasoning, Assured: c.assured, PromptOpen: c.open, Tools: tools}
		for _, pieces := range [][]string{{c.text}, bytesOf(c.text)} {
			got, _ := gathered(t, eventsOf(t, o, pieces...))
			if got.content != c.content || !reflect.DeepEqual(got.calls, c.calls) {
				t.Errorf("%s: %q in %d pieces is %q", c.tool, c.text, len(pieces), got)
			}
		}
	}
}

// An assured call may be longer than what is held back of others.
func TestAssuredIsNotHeld(t *testing.T) {
	o := Options{Tool: "hermes", Assured: Assured{All: true}, Tools: []Tool{{Name: "f"}}}
	args := `{"a": "` + strings.Repeat("é", maxHeld) + `"}`
	var parts []string
	for text := `<tool_call>{"name": "f", "arguments": ` + args + "}</tool_call>"; text != ""; {
		n := min(len(text), 999)
		parts, text = append(parts, text[:n]), text[n:]
	}
	events := eventsOf(t, o, parts...)
	if got := joined(t, events); got.content != "" || !reflect.DeepEqual(got.calls, one("f", args)) {
		t.Errorf("%d bytes of content, %d calls", len(got.content), len(got.calls))
	}
	for _, e := range events {
		if strings.ToValidUTF8(e.Text, "") != e.Text {
			t.Fatalf("a piece ends within a character: %q", e.Text[max(len(e.Text)-9, 0):])
		}
	}
	if n := pieces(events)[0]; n < len(parts)-2 {
		t.Errorf("%d pieces of %d", n, len(parts))
	}
}

// FuzzAssured: what is no answer of a grammar is read the same way however it is cut.
func FuzzAssured(f *testing.F) {
	cases, _ := readCases(f, "testdata")
	for i, c := range cases {
		f.Add(c.Text, uint8(i), c.PromptOpen)
	}
	names := ToolNames()
	tools := []Tool{{Name: "get_weather"}, {Name: "list_files"}, {Name: "create_event"}, {Name: "configure"}, {Name: "f"}}
	f.Fuzz(func(t *testing.T, text string, tool uint8, open bool) {
		o := Options{Tool: names[int(tool)%len(names)], PromptOpen: open, Tools: tools, Assured: Assured{All: true}}
		whole, cut := gathered(t, eventsOf(t, o, text))
		if got, _ := gathered(t, eventsOf(t, o, bytesOf(text)...)); !reflect.DeepEqual(got, whole) {
			t.Errorf("%s: %q byte by byte: %q, whole: %q", o.Tool, text, got, whole)
		}
		if cut && len(whole.calls) == 0 {
			t.Errorf("%s: %q: a call that is not there has no end", o.Tool, text)
		}
	})
}
