package calls

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/chat/dialect"
	"github.com/spillway/spillway/internal/grammar"
	"github.com/spillway/spillway/internal/grammar/cfg"
)

var tools = []Tool{
	{Name: "add", Schema: []byte(`{"type":"object","properties":{"a":{"type":"integer","minimum":0,"maximum":9},"b":{"enum":[1,"x\"</tool_call>"]}},"required":["a","b"],"additionalProperties":false}`)},
	{Name: "now", Schema: []byte(`{"type":"object","properties":{},"additionalProperties":false}`)},
}

// write walks a grammar at random until it may end.
func write(t *testing.T, f grammar.Format, r *rand.Rand) string {
	t.Helper()
	g, err := grammar.CompileGrammar(grammar.Source{Kind: grammar.StructuralTag, Format: f}, nil, cfg.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m := g.NewMachine()
	var out []byte
	at := m.Start()
	for len(out) < 2000 && !(m.MayEnd(at) && r.IntN(3) == 0) {
		var next []byte
		for b := range 256 {
			if m.Step(at, byte(b)) != cfg.Dead {
				next = append(next, byte(b))
			}
		}
		if len(next) == 0 {
			break
		}
		b := next[r.IntN(len(next))]
		out, at = append(out, b), m.Step(at, b)
	}
	if !m.MayEnd(at) {
		t.Fatalf("stuck behind %q", out)
	}
	return string(out)
}

func read(t *testing.T, o Options, text string) *dialect.Message {
	t.Helper()
	p, err := dialect.New(dialect.Options{Tool: Dialect(o.Tool), Reasoning: o.Reasoning, PromptOpen: o.PromptOpen, Tools: []dialect.Tool{{Name: "add"}, {Name: "now"}}})
	if err != nil {
		t.Fatal(err)
	}
	var m dialect.Message
	for _, e := range append(p.Write(text), p.Close()...) {
		m.Add(e)
	}
	return &m
}

// What is written in every dialect's form is read as calls and nothing else.
func TestRequiredCallsAreRead(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	for _, name := range append(dialect.ToolNames(), "", dialect.None) {
		for range 20 {
			o := Options{Tool: name, Tools: tools, Mode: Required, Parallel: r.IntN(2) == 0}
			f, err := Format(o)
			if err != nil {
				t.Fatal(err)
			}
			text := write(t, f, r)
			m := read(t, o, text)
			if len(m.Calls()) == 0 || !o.Parallel && len(m.Calls()) != 1 || strings.TrimSpace(m.Content()) != "" {
				t.Fatalf("%s: %q is read as %d calls and %q", name, text, len(m.Calls()), m.Content())
			}
			for _, c := range m.Calls() {
				var a struct{ A *int }
				if err := json.Unmarshal([]byte(c.Arguments), &a); err != nil || c.Name != "add" && c.Name != "now" || c.Name == "add" && (a.A == nil || *a.A > 9) {
					t.Errorf("%s: %q gives %+v: %v", name, text, c, err)
				}
			}
		}
	}
}

func TestNamedAndReasoned(t *testing.T) {
	for _, open := range []bool{false, true} {
		o := Options{Tool: "hermes", Reasoning: "qwen3", Tools: tools, Mode: Named, Name: "now", PromptOpen: open}
		f, err := Format(o)
		if err != nil {
			t.Fatal(err)
		}
		g, err := grammar.CompileGrammar(grammar.Source{Kind: grammar.StructuralTag, Format: f}, nil, cfg.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		const call = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"
		for text, want := range map[string]bool{
			call: !open, "<think>Hm.</think>\n\n" + call: true, "Hm.</think>\n" + call: open, "Hm. " + call: false,
			strings.Replace(call, "now", "add", 1): false, call + "!": false,
		} {
			m := g.NewMachine()
			at := m.Start()
			for i := 0; i < len(text) && at != cfg.Dead; i++ {
				at = m.Step(at, text[i])
			}
			if got := at != cfg.Dead && m.MayEnd(at); got != want {
				t.Errorf("open %v: %q is allowed: %v", open, text, got)
			}
		}
	}
	if _, err := Format(Options{Tools: tools, Mode: Named, Name: "none"}); err == nil {
		t.Error("a tool that is not there")
	}
}

// Text is free until a call begins, which must then be one.
func TestAuto(t *testing.T) {
	f, err := Format(Options{Tool: "hermes", Tools: tools, Parallel: true})
	if err != nil {
		t.Fatal(err)
	}
	g, err := grammar.CompileGrammar(grammar.Source{Kind: grammar.StructuralTag, Format: f}, nil, cfg.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	const call = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"
	for text, want := range map[string]bool{"": true, "Hello <b>": true, "I look. " + call: true, call + "\n" + call: true, "<tool_call>\n{\"name\": \"none\"": false, "<tool_call>": false} {
		m := g.NewMachine()
		at := m.Start()
		for i := 0; i < len(text) && at != cfg.Dead; i++ {
			at = m.Step(at, text[i])
		}
		if got := at != cfg.Dead && m.MayEnd(at); got != want {
			t.Errorf("%q is allowed: %v", text, got)
		}
	}
}
