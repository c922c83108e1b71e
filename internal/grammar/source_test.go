package grammar

import (
	"errors"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/schema"
)

// accepted says whether a whole text, in which {{name}} is a token, is in a Source's language.
func accepted(t *testing.T, g *cfg.Grammar, text string) bool {
	t.Helper()
	m := g.NewMachine()
	c := m.Start()
	for text != "" {
		if rest, ok := strings.CutPrefix(text, "{{"); ok {
			name, after, _ := strings.Cut(rest, "}}")
			id, _ := testTokens(name)
			c, text = m.StepToken(c, id), after
			continue
		}
		c, text = m.Step(c, text[0]), text[1:]
	}
	return c != cfg.Dead && m.MayEnd(c)
}

func testTokens(text string) (int32, bool) {
	i := strings.Index("<think></think><call>", text)
	return int32(i), i >= 0 && text != ""
}

func TestSources(t *testing.T) {
	integer := Leaf{Kind: JSONSchema, Text: `{"type":"integer"}`}
	tag := Tag{Literal("<f=a>"), integer, []Format{Literal("</f>")}}
	named := Tag{TokenText("<call>"), integer, []Format{TokenText("</think>"), Literal(";")}}
	format := func(f Format) Source { return Source{Kind: StructuralTag, Format: f} }
	cases := []struct {
		name    string
		source  Source
		yes, no []string
	}{
		{"schema", Source{Kind: JSONSchema, Text: `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`},
			[]string{`{"a":12}`}, []string{`{}`, `{"a":1.5}`, `{"a": 1}`}},
		{"flexible", Source{Kind: JSONSchema, Text: `{"type":"array","items":{"type":"null"}}`, Schema: schema.Options{FlexibleSpace: true, MaxSpace: 2}},
			[]string{`[null, null ]`}, []string{`[null,   null]`}},
		{"object", Source{Kind: JSONObject}, []string{`{}`, `{"a":[1,{"b":null}]}`}, []string{`[]`, `{"a"}`}},
		{"regex", Source{Kind: Regex, Text: `a+|\d{3}`}, []string{"aa", "123"}, []string{"", "12", "xa"}},
		{"choice", Source{Kind: Choice, Choices: []string{"yes", "no", "yesterday"}}, []string{"yes", "no", "yesterday"}, []string{"y", "yesno"}},
		{"gbnf", Source{Kind: GBNF, Text: `root ::= <think> "x"`}, []string{"{{<think>}}x"}, []string{"<think>x"}},
		{"lark", Source{Kind: Lark, Text: "start: \"x\" %json {\"type\": \"boolean\"}"}, []string{"xtrue"}, []string{"x"}},
		{"triggered", format(Triggered{Triggers: []string{"<f="}, Tags: []Tag{tag}}),
			[]string{"", "hi", "hi<f=a>1</f>", "<f=a>1</f>x<f", "<f=a>1</f><f=a>2</f>", "<<f=a>1</f>"}, []string{"<f=b>", "<f=a>1", "<f=", "x<f=a>x</f>"}},
		{"first", format(Triggered{Triggers: []string{"<f="}, Tags: []Tag{tag}, AtLeastOne: true}),
			[]string{"<f=a>1</f>", "<f=a>1</f>x", "<f=a>1</f>x<f=a>2</f>"}, []string{"", "x<f=a>1</f>"}},
		{"stop", format(Triggered{Triggers: []string{"<f="}, Tags: []Tag{tag}, StopAfterFirst: true}),
			[]string{"", "x", "x<f=a>1</f>"}, []string{"<f=a>1</f>x"}},
		{"one", format(Triggered{Triggers: []string{"<f="}, Tags: []Tag{tag}, StopAfterFirst: true, AtLeastOne: true}),
			[]string{"<f=a>1</f>"}, []string{"", "x", "<f=a>1</f>x"}},
		{"tokens", format(Triggered{Tags: []Tag{named}}),
			[]string{"", "x{{<call>}}1;y{{<call>}}2{{</think>}}"}, []string{"x{{<call>}}", "x{{<call>}}1</think>"}},
		{"two triggers", format(Triggered{Triggers: []string{"<f=", "[g"}, Tags: []Tag{tag, {Literal("[g]"), FreeText{}, []Format{Literal("[/g]"), Literal("\n")}}}}),
			[]string{"a[g]b[/g]c<f=a>1</f>", "[g]b\n"}, []string{"[g]b", "[gx", "a<f=a>[g]</f>"}},
		{"text", format(Tag{Literal("<t>"), FreeText{}, []Format{Literal("</t>")}}), []string{"<t>ab</t>", "<t><</t>"}, []string{"<t>a</t>b</t>", "<t>"}},
		{"excludes", format(FreeText{Excludes: []string{"foo", "barb"}}), []string{"", "fobar", "bar"}, []string{"xfoo", "barbar barb"}},
		{"chars", format(FreeText{MaxChars: 3}), []string{"", "äöü"}, []string{"abcd"}},
		{"sequence", format(Sequence{Tag{Literal(""), FreeText{}, []Format{TokenText("</think>")}}, OneOf{integer, Literal("none")}}),
			[]string{"hm{{</think>}}12", "{{</think>}}none"}, []string{"12", "hm</think>12"}},
		{"repeated", format(Repeated{Literal("ab"), 1, 2}), []string{"ab", "abab"}, []string{"", "ababab"}},
		{"separated", format(Separated{Tags: []Tag{tag}, Separator: ","}), []string{"", "<f=a>1</f>,<f=a>2</f>"}, []string{"<f=a>1</f>,"}},
		{"dispatch", format(Dispatch{Rules: []DispatchRule{{"$", integer}}}), []string{"cost", "cost $5"}, []string{"cost $5 $6", "$x"}},
	}
	for _, c := range cases {
		g, err := CompileGrammar(c.source, testTokens, cfg.Limits{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, text := range c.yes {
			if !accepted(t, g, text) {
				t.Errorf("%s: refuses %q", c.name, text)
			}
		}
		for _, text := range c.no {
			if accepted(t, g, text) {
				t.Errorf("%s: accepts %q", c.name, text)
			}
		}
	}
}

func TestFormatJSON(t *testing.T) {
	const tag = `{"type":"tag","begin":"<f=a>","content":{"type":"json_schema","json_schema":{"type":"integer"}},"end":"</f>"}`
	cases := []struct {
		text    string
		yes, no []string
	}{
		{`{"type":"structural_tag","structures":[{"begin":"<f=a>","schema":{"type":"integer"},"end":"</f>"}],"triggers":["<f="]}`,
			[]string{"x<f=a>1</f>y"}, []string{"<f=a>y"}},
		{`{"type":"structural_tag","format":{"type":"triggered_tags","triggers":["<f="],"tags":[` + tag + `],"at_least_one":true,"stop_after_first":true}}`,
			[]string{"<f=a>1</f>"}, []string{""}},
		{`{"type":"tags_with_separator","separator":"\n","tags":[` + tag + `]}`, []string{"", "<f=a>1</f>\n<f=a>2</f>"}, []string{"\n"}},
		{`{"type":"sequence","elements":[{"type":"const_string","value":"a"},{"type":"regex","pattern":"[0-9]+"},{"type":"grammar","grammar":"root ::= \"x\""},{"type":"grammar","syntax":"lark","grammar":"start: \"y\""}]}`,
			[]string{"a12xy"}, []string{"axy"}},
		{`{"type":"or","elements":[{"type":"optional","content":{"type":"const_string","value":"a"}},{"type":"plus","content":{"type":"const_string","value":"b"}},{"type":"star","content":{"type":"const_string","value":"c"}},{"type":"repeat","min":2,"max":3,"content":{"type":"const_string","value":"d"}}]}`,
			[]string{"", "a", "bb", "cc", "dd"}, []string{"aa", "d", "dddd", "ab"}},
		{`{"type":"tag","begin":{"type":"token","token":"<think>"},"content":{"type":"any_text"},"end":[{"type":"token","token":"</think>"},"</t>"]}`,
			[]string{"{{<think>}}hm{{</think>}}", "{{<think>}}hm</t>"}, []string{"{{<think>}}hm</t></t>"}},
		{`{"type":"token_triggered_tags","trigger_tokens":["<call>"],"tags":[{"begin":{"type":"token","token":"<call>"},"content":{"type":"any_text","max_chars":2},"end":""}]}`,
			[]string{"x{{<call>}}ab"}, nil},
		{`{"type":"dispatch","rules":[["$",{"type":"regex","pattern":"[0-9]"}]],"loop":false,"excludes":["bad"]}`, []string{"a$1"}, []string{"a$1$2", "bad"}},
		{`{"type":"json_schema","json_schema":{"type":"array","items":{"type":"null"}},"max_whitespace_cnt":1}`, []string{"[null, null]"}, []string{"[null,  null]"}},
	}
	for _, c := range cases {
		g, err := CompileGrammar(Source{Kind: StructuralTag, Text: c.text}, testTokens, cfg.Limits{})
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		for _, text := range c.yes {
			if !accepted(t, g, text) {
				t.Errorf("%s: refuses %q", c.text, text)
			}
		}
		for _, text := range c.no {
			if accepted(t, g, text) {
				t.Errorf("%s: accepts %q", c.text, text)
			}
		}
	}
}

func TestSourceErrors(t *testing.T) {
	tag := func(text string) Source { return Source{Kind: StructuralTag, Text: text} }
	one := Tag{Literal("<f>"), FreeText{}, []Format{Literal("x")}}
	cases := []struct {
		source Source
		want   string
	}{
		{Source{Kind: Choice}, "a choice of nothing"},
		{Source{Kind: Regex, Text: "("}, "regular expression"},
		{Source{}, "unknown kind 0"},
		{tag(`{`), "structural tag: unexpected EOF"},
		{tag(`{"type":"structural_tag"}`), "neither format nor structures"},
		{tag(`{"type":"any_tokens"}`), `"any_tokens" is not supported`},
		{tag(`{"type":"any_text","max_tokens":3}`), `unknown field "max_tokens"`},
		{tag(`{"type":"json_schema","json_schema":{},"style":"qwen_xml"}`), `the style "qwen_xml" is not supported`},
		{tag(`{"type":"tag","begin":"a","end":"b"}`), "tag: no content"},
		{tag(`{"type":"token","token":"none"}`), `"none" is not one token`},
		{tag(`{"type":"triggered_tags","triggers":["<"],"tags":[]}`), "without tags"},
		{Source{Kind: StructuralTag, Format: Triggered{Triggers: []string{"<g"}, Tags: []Tag{one}}}, `no tag begins with the trigger "<g"`},
		{Source{Kind: StructuralTag, Format: Triggered{Triggers: []string{"<", "<f"}, Tags: []Tag{one}}}, "more than one trigger"},
		{Source{Kind: StructuralTag, Format: Triggered{Triggers: []string{"<f"}, Tags: []Tag{one}, Excludes: []string{"f"}}}, "never reached"},
		{Source{Kind: StructuralTag, Format: Sequence{nil}}, "is missing"},
		{Source{Kind: StructuralTag, Format: FreeText{Excludes: []string{strings.Repeat("x", 5000)}}}, "more than 4096 bytes"},
	}
	for _, c := range cases {
		if _, err := CompileGrammar(c.source, testTokens, cfg.Limits{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %s: error %v, want %q", c.source.Kind, c.source.Text, err, c.want)
		}
	}
	deep := Format(Literal("x"))
	for range 100 {
		deep = Sequence{deep}
	}
	if _, err := CompileGrammar(Source{Kind: StructuralTag, Format: deep}, nil, cfg.Limits{}); err == nil || !strings.Contains(err.Error(), "deeper than the limit of 64") {
		t.Errorf("error %v", err)
	}
}

func TestNamedTokensAreNoText(t *testing.T) {
	words := wordTokens{"<end>", "<x", "call", "a", "ll"} // "call" is text for the tokenizer
	v, err := NewVocabulary(words, []int32{0}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compile(Source{Kind: StructuralTag, Format: Triggered{Tags: []Tag{{TokenID(2), Literal("a"), []Format{Literal("ll")}}}}}, v, cfg.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m := c.Matcher()
	mask := make([]uint64, v.Words())
	if err := errors.Join(m.Accept(4), m.Accept(2)); err != nil {
		t.Fatal(err)
	}
	if m.Mask(mask); mask[0] != 1<<3 {
		t.Errorf("after the token the mask is %b", mask[0])
	}
	if id, ok := m.Forced(); id != 3 || !ok {
		t.Errorf("forced: %d %v", id, ok)
	}
	if err := m.Accept(2); err == nil {
		t.Error("the token is accepted as text")
	}
}
