package calls

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/spillway/spillway/internal/chat"
	"github.com/spillway/spillway/internal/chat/dialect"
	"github.com/spillway/spillway/internal/grammar"
	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/schema"
)

// offered are tools with arguments of all kinds.
var offered = []Tool{
	{Name: "now", Schema: []byte(`{"type":"object","properties":{},"additionalProperties":false}`)},
	{Name: "add", Schema: []byte(`{"type":"object","properties":{"a":{"type":"integer","minimum":0,"maximum":99},"b":{"enum":[1,"x\"</tool_call>",null,true]}},"required":["a","b"],"additionalProperties":false}`)},
	{Name: "write_file", Schema: []byte(`{"type":"object","properties":{"path":{"type":"string","pattern":"^[a-z/]{1,9}$"},"text":{"type":"string"},"mode":{"enum":["r","w","</x>"]},
		"size":{"type":"number","exclusiveMinimum":0.5},"on":{"type":"boolean"},"long":{"type":"string","minLength":2,"maxLength":5000},"day":{"type":"string","format":"date"}},"required":["path","text"]}`)},
	{Name: "plan-trip", Schema: []byte(`{"type":"object","properties":{"stops":{"type":"array","items":{"$ref":"#/$defs/stop"},"minItems":1,"maxItems":3},"by":{"anyOf":[{"type":"integer","minimum":7},{"type":"string","maxLength":6}]},
		"note":{"type":["string","null"]},"tags":{"type":"array","items":{"type":"string"}},"home":{"$ref":"#/$defs/stop"}},"required":["stops","by"],
		"$defs":{"stop":{"type":"object","properties":{"city":{"type":"string"},"nights":{"type":"integer"},"more":{"$ref":"#/$defs/stop"}},"required":["city"],"additionalProperties":false}}}`)},
	{Name: "set", Schema: []byte(`{"type":"object","properties":{"any":{},"pair":{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false,"minItems":2},"map":{"type":"object","additionalProperties":{"type":"integer"}},
		"odd":{"type":"array","items":{"enum":["a","b"]},"uniqueItems":true},"one":{"const":"ü\n'\"\\ <|\"|>"},"either":{"oneOf":[{"type":"array","items":{"type":"boolean"}},{"type":"object","properties":{"x":{"type":"null"}},"required":["x"]}]}}}`)},
	{Name: "free"},
}

// writable are those that a dialect has a way to write.
func writable(name string) []Tool {
	switch name {
	case "functiongemma", "gemma4":
		return slices.Concat(offered[:4], offered[5:]) // no uniqueItems
	}
	return offered
}

func compiled(t *testing.T, f grammar.Format) *cfg.Grammar {
	t.Helper()
	g, err := grammar.CompileGrammar(grammar.Source{Kind: grammar.StructuralTag, Format: f}, nil, cfg.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// read reads a whole answer as its dialect does; as it comes, with its calls assured, it is the same.
func read(t *testing.T, o Options, text string) *dialect.Message {
	t.Helper()
	m := readAs(t, o, dialect.Assured{}, text)
	live := readAs(t, o, o.Assured(), strings.Split(text, "")...)
	if m.Content() != live.Content() || m.Reasoning() != live.Reasoning() || !slices.Equal(m.Calls(), live.Calls()) {
		t.Fatalf("%s: %q is read as %q, %q and %q, as it comes as %q, %q and %q", o.Tool, text,
			m.Reasoning(), m.Content(), m.Calls(), live.Reasoning(), live.Content(), live.Calls())
	}
	return m
}

// readAs reads an answer in pieces.
func readAs(t *testing.T, o Options, assured dialect.Assured, pieces ...string) *dialect.Message {
	t.Helper()
	d := dialect.Options{Tool: o.Dialect(), Reasoning: o.Reasoning, PromptOpen: o.PromptOpen, Assured: assured}
	for _, tool := range o.Tools {
		v, err := chat.ParseJSON(append([]byte{}, tool.Schema...))
		p, _ := v.(*chat.Object)
		if err != nil && tool.Schema != nil {
			t.Fatal(err)
		}
		d.Tools = append(d.Tools, dialect.Tool{Name: tool.Name, Parameters: p})
	}
	p, err := dialect.New(d)
	if err != nil {
		t.Fatal(err)
	}
	var m dialect.Message
	for _, text := range pieces {
		for _, e := range p.Write(text) {
			m.Add(e)
		}
	}
	for _, e := range p.Close() {
		m.Add(e)
	}
	return &m
}

// validators are of another make.
func validators(t *testing.T, tools []Tool) map[string]*jsonschema.Schema {
	t.Helper()
	out := map[string]*jsonschema.Schema{}
	for _, tool := range tools {
		text := tool.Schema
		if text == nil {
			text = []byte(`{"type":"object"}`)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		if err := c.AddResource("http://example.test/"+tool.Name, doc); err != nil {
			t.Fatal(err)
		}
		if out[tool.Name], err = c.Compile("http://example.test/" + tool.Name); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// checkCalls says whether the calls of an answer are of the tools, with arguments that fit.
func checkCalls(t *testing.T, o Options, valid map[string]*jsonschema.Schema, text string, m *dialect.Message) {
	t.Helper()
	for _, c := range m.Calls() {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(c.Arguments))
		switch {
		case err != nil || valid[c.Name] == nil:
			t.Fatalf("%s: %q gives %+v: %v", o.Tool, text, c, err)
		case valid[c.Name].Validate(v) != nil:
			t.Fatalf("%s: %q gives %+v: %v", o.Tool, text, c, valid[c.Name].Validate(v))
		}
	}
}

// What is written in every dialect's form is read as calls and nothing else.
func TestRequiredCallsAreRead(t *testing.T) {
	for _, name := range append(dialect.ToolNames(), "", dialect.None, "qwen3.5") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tools := writable(name)
			valid := validators(t, tools)
			r := rand.New(rand.NewPCG(1, uint64(len(name)))) //nolint:gosec // a test
			for i := range len(tools) + 1 {
				o := Options{Tool: name, Tools: tools, Mode: Required, Parallel: true}
				if i < len(tools) {
					o.Mode, o.Name, o.Parallel = Named, tools[i].Name, false
				}
				f, err := Format(o)
				if err != nil {
					t.Fatal(err)
				}
				g := compiled(t, f)
				for range 8 {
					text := write(t, o, g, r, 40+r.IntN(300))
					m := read(t, o, text)
					n := len(m.Calls())
					if n == 0 || !o.Parallel && (n != 1 || m.Calls()[0].Name != o.Name) || m.Content() != "" {
						t.Fatalf("%s: %q is read as %d calls, %+v, and %q", name, text, n, m.Calls(), m.Content())
					}
					checkCalls(t, o, valid, text, m)
				}
			}
		})
	}
}

// Calls in the midst of text are as good.
func TestAutoCallsAreRead(t *testing.T) {
	for _, name := range dialect.ToolNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{Tool: name, Tools: writable(name), Parallel: true}
			valid := validators(t, o.Tools)
			f, err := Format(o)
			if err != nil {
				t.Fatal(err)
			}
			g := compiled(t, f)
			r := rand.New(rand.NewPCG(2, uint64(len(name)))) //nolint:gosec // a test
			for range 15 {
				text := write(t, o, g, r, r.IntN(200))
				checkCalls(t, o, valid, text, read(t, o, text))
			}
			if channelsOf(name) == nil {
				o.Reasoning = dialect.None
			}
			required := o
			required.Mode, required.Parallel = Required, false
			if f, err = Format(required); err != nil {
				t.Fatal(err)
			}
			call := compiled(t, f)
			for range 10 {
				before := ""
				if channelsOf(name) == nil && formOf(name).trigger != "" && r.IntN(2) == 0 {
					before = "I look, <b>you</b> see.\n"
				}
				text := before + formOf(name).leadTo(before) + write(t, o, call, r, 150)
				if !allows(g, text) {
					t.Fatalf("%s: %q is not allowed", name, text)
				}
				if m := read(t, o, text); len(m.Calls()) != 1 || m.Content() != strings.TrimSpace(before) {
					t.Fatalf("%s: %q is read as %+v and %q", name, text, m.Calls(), m.Content())
				}
			}
		})
	}
}

func (f *form) leadTo(before string) string {
	if before == "" {
		return ""
	}
	return f.lead
}

// allows says whether a text is in a language, whole.
func allows(g *cfg.Grammar, text string) bool {
	m := g.NewMachine()
	at := m.Start()
	for i := 0; i < len(text) && at != cfg.Dead; i++ {
		m.Begin()
		at = m.Step(at, text[i])
	}
	return at != cfg.Dead && m.MayEnd(at)
}

// Answers without calls stay free, also where they look a little like calls.
func TestAutoTextIsFree(t *testing.T) {
	for _, name := range dialect.ToolNames() {
		f, err := Format(Options{Tool: name, Tools: offered[:2]})
		if err != nil {
			t.Fatal(err)
		}
		g := compiled(t, f)
		for _, text := range []string{"", "Hello <b>you</b>, a < b, [1] {\"a\": 1}", "[1, 2]", `{"a": 1}`, "```json\n{}\n```", "Thinking about it: ünd 🗼.\n\n"} {
			if c := channelsOf(name); c != nil && c.begun == "" {
				text = strings.Replace(c.final, "$text", text, 1)
			}
			if !allows(g, text) {
				t.Errorf("%s: %q is not allowed", name, text)
			}
		}
	}
}

// An answer ends only behind complete calls, and begun ones go on as calls.
func TestEnds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test
	for _, name := range dialect.ToolNames() {
		for _, mode := range []Mode{Required, Auto} {
			o := Options{Tool: name, Tools: offered[1:2], Mode: mode}
			f, err := Format(Options{Tool: name, Tools: offered[1:2], Mode: Required})
			if err != nil {
				t.Fatal(err)
			}
			text := write(t, o, compiled(t, f), r, 200)
			if f, err = Format(o); err != nil {
				t.Fatal(err)
			}
			g := compiled(t, f)
			m := g.NewMachine()
			at := m.Start()
			form, begun := formOf(name), false
			for i := range len(text) {
				begun = begun || mode == Required || channelsOf(name) == nil && strings.HasPrefix(text, form.trigger) && i == len(form.trigger) && i > 0
				if begun && m.MayEnd(at) && len(readAs(t, o, dialect.Assured{}, text[:i]).Calls()) == 0 {
					t.Errorf("%s: %q may end before %q", name, text[:i], text[i:])
				}
				at = m.Step(at, text[i])
			}
			if at == cfg.Dead || !m.MayEnd(at) {
				t.Errorf("%s: %q may not end", name, text)
			}
		}
	}
}

// Every mark of the forms may be one token, and then comes as one.
func TestMarksAreTokens(t *testing.T) {
	for i, m := range marks {
		if slices.Index(marks, m) != i {
			t.Errorf("%q is there twice", m)
		}
	}
	for _, name := range dialect.ToolNames() {
		for _, mode := range []Mode{Required, Auto} {
			o := Options{Tool: name, Tools: writable(name), Mode: mode, Parallel: true, Token: markToken}
			f, err := Format(o)
			if err != nil {
				t.Fatal(err)
			}
			g, err := grammar.CompileGrammar(grammar.Source{Kind: grammar.StructuralTag, Format: f}, markToken, cfg.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(5, uint64(len(name)))) //nolint:gosec // a test
			valid := validators(t, o.Tools)
			for range 4 {
				text := writeTokens(t, o, g, r, 150)
				m := read(t, o, text)
				if mode == Required && (len(m.Calls()) == 0 || m.Content() != "") {
					t.Fatalf("%s: %q is read as %+v and %q", name, text, m.Calls(), m.Content())
				}
				checkCalls(t, o, valid, text, m)
			}
		}
	}
}

func TestNamedAndReasoned(t *testing.T) {
	for _, open := range []bool{false, true} {
		o := Options{Tool: "hermes", Reasoning: "qwen3", Tools: offered, Mode: Named, Name: "now", PromptOpen: open}
		f, err := Format(o)
		if err != nil {
			t.Fatal(err)
		}
		g := compiled(t, f)
		const call = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"
		for text, want := range map[string]bool{
			call: !open, "<think>Hm.</think>\n\n" + call: true, "Hm.</think>\n" + call: open, "Hm. " + call: false,
			strings.Replace(call, "now", "add", 1): false, call + "!": false,
		} {
			if got := allows(g, text); got != want {
				t.Errorf("open %v: %q is allowed: %v", open, text, got)
			}
		}
	}
	for _, o := range []Options{{Tools: offered, Mode: Named, Name: "none"}, {Mode: Required}} {
		if _, err := Format(o); err == nil {
			t.Errorf("%+v: a tool that is not there", o)
		}
	}
}

// Reasoning of every dialect comes before content and calls, and may be left out unless the prompt has begun it.
func TestReasoningOfAllDialects(t *testing.T) {
	const content = `{"a":1}`
	for _, name := range dialect.ReasoningNames() {
		for _, open := range []bool{false, true} {
			o := Options{Reasoning: name, PromptOpen: open}
			f, err := Reasoned(o, grammar.Literal(content))
			if err != nil {
				t.Fatal(err)
			}
			g := compiled(t, f)
			r := rand.New(rand.NewPCG(6, uint64(len(name)))) //nolint:gosec // a test
			thought := 0
			for range 40 {
				text := write(t, o, g, r, 60)
				m := read(t, o, text)
				if got := m.Content(); got != content && !(name == "minimax_m2_append_think" && strings.HasSuffix(got, content)) {
					t.Fatalf("%s: %q has the content %q", name, text, got)
				}
				if m.Reasoning() != "" || strings.HasSuffix(name, "append_think") {
					thought++
				}
			}
			if thought == 0 && open {
				t.Errorf("%s: no reasoning", name)
			}
		}
	}
}

// Calls come behind the reasoning, in the midst of which there are none.
func TestReasonedCalls(t *testing.T) {
	for _, pair := range [][2]string{{"hermes", "qwen3"}, {"kimi_k2", "kimi_k2"}, {"mistral_args", "mistral"}, {"gemma4", "gemma4"}, {"cohere_command3", ""}, {"ernie45", ""}, {"harmony", ""}, {"muse", ""}, {"inkling", ""}, {"kimi_k3", ""}, {"", "harmony"}} {
		for _, open := range []bool{false, true} {
			for _, mode := range []Mode{Required, Auto} {
				o := Options{Tool: pair[0], Reasoning: pair[1], Tools: offered[:3], Mode: mode, PromptOpen: open}
				f, err := Format(o)
				if err != nil {
					t.Fatal(err)
				}
				g := compiled(t, f)
				r := rand.New(rand.NewPCG(7, uint64(len(pair[0])))) //nolint:gosec // a test
				for range 10 {
					text := write(t, o, g, r, 120)
					m := read(t, o, text)
					if mode == Required && (len(m.Calls()) != 1 || m.Content() != "") {
						t.Fatalf("%v: %q is read as %+v and %q", pair, text, m.Calls(), m.Content())
					}
					checkCalls(t, o, validators(t, o.Tools), text, m)
				}
			}
		}
	}
}

// With a form for the content an answer is a call or has the form.
func TestThen(t *testing.T) {
	for _, name := range append(dialect.ToolNames(), "") {
		for _, open := range []bool{false, true} {
			o := Options{Tool: name, Tools: offered[:2], PromptOpen: open, Then: grammar.Literal("true!")}
			f, err := Format(o)
			if err != nil {
				t.Fatal(err)
			}
			g := compiled(t, f)
			r := rand.New(rand.NewPCG(8, uint64(len(name)))) //nolint:gosec // a test
			seen := map[bool]int{}
			for i := 0; i < 16 || len(seen) < 2 && i < 400; i++ {
				text := write(t, o, g, r, 100)
				m := read(t, o, text)
				if called := len(m.Calls()) > 0; called == (m.Content() != "") || m.Content() != "" && m.Content() != "true!" {
					t.Fatalf("%s: %q is read as %+v and %q", name, text, m.Calls(), m.Content())
				}
				seen[len(m.Calls()) > 0]++
			}
			if len(seen) < 2 {
				t.Errorf("%s: calls and content: %v", name, seen)
			}
		}
	}
}

// What a dialect cannot write is refused with the tool, the dialect and the place.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ dialect, name, schema, says string }{
		{"qwen3_coder", "f", `{"properties":{"a>b":{}}}`, "argument of the name"},
		{"glm45", "f", `{"anyOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{},"b":{}}}`, `"anyOf" at #`},
		{"glm45", "f", `{"properties":{"a":{"const":"</arg_value>"}},"required":["a"]}`, "#/properties/a"},
		{"gemma4", "f", `{"properties":{"a":{"type":"array","uniqueItems":true}}}`, `"uniqueItems" at #/properties/a`},
		{"pythonic", "f", `{"properties":{"a b":{}}}`, "argument of the name"},
		{"pythonic", "f g", `{}`, "of this name"},
		{"minimax_m2", `f"`, `{}`, "of this name"},
		{"functionary_v32", "all", `{}`, "of this name"},
		{"hermes", "f", `{"properties":{"x":{"pattern":"(?<=a)b"}}}`, `"pattern" at #/properties/x`},
		{"mimo", "f", `{"properties":{"x":{"type":"string","pattern":"(?<=a)b"}}}`, `"pattern" at #/properties/x`},
		{"hermes", "f", `{"type":"string"}`, "no value"},
		{"glm45", "f", `{"type":"string"}`, "no value"},
		{"pythonic", "f", `{"enum":["x"]}`, "no value"},
		{"hermes", "f", `{`, "JSON"},
	} {
		f, err := Format(Options{Tool: c.dialect, Tools: []Tool{{c.name, []byte(c.schema)}}, Mode: Required})
		if err != nil {
			t.Fatal(err)
		}
		_, err = grammar.CompileGrammar(grammar.Source{Kind: grammar.StructuralTag, Format: f}, nil, cfg.Limits{})
		var e *ToolError
		if !errors.As(err, &e) || e.Tool != c.name || e.Dialect != c.dialect || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %s: %v", c.dialect, c.schema, err)
		}
		var s *schema.Error
		if strings.Contains(c.says, "#") && !errors.As(err, &s) {
			t.Errorf("%s: %v is no error of the schema", c.dialect, err)
		}
	}
}

// Every tool dialect has a form, whose texts the parser has for its marks.
func TestForms(t *testing.T) {
	all := forms()
	for _, name := range dialect.ToolNames() {
		f, ok := all[name]
		if !ok {
			t.Errorf("%s has no form", name)
			continue
		}
		if channelsOf(name) == nil && f.trigger+f.start == "" {
			t.Errorf("%s: nothing begins calls", name)
		}
		for f := &f; f != nil; f = f.also {
			if f.lead == "" && !strings.HasPrefix(f.open+strings.ReplaceAll(f.call, "$quoted", "$name"), f.trigger) {
				t.Errorf("%s: calls do not begin with %q", name, f.trigger)
			}
		}
		delete(all, name)
	}
	for name := range all {
		t.Errorf("%s is no dialect", name)
	}
	if Dialect("") != Fallback || Dialect("none") != Fallback || Dialect("mistral") != "mistral" || (Options{Reasoning: "harmony"}).Dialect() != "harmony" {
		t.Error("the dialects of calls are others")
	}
}

// Keys tell Options apart.
func TestKey(t *testing.T) {
	o := Options{Tool: "hermes", Tools: offered, Token: func(string) (int32, bool) { return 0, false }, Then: grammar.Literal("x")}
	p := o
	p.Parallel = true
	if Key(o) == "" || Key(o) == Key(p) || !json.Valid([]byte(Key(o))) || !utf8.ValidString(Key(o)) {
		t.Errorf("%q, %q", Key(o), Key(p))
	}
}
