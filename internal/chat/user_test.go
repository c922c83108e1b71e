package chat

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/testutil"
)

// spanText is the text inside spans, with | between.
func spanText(text string, spans []Span) string {
	var parts []string
	for _, s := range spans {
		parts = append(parts, text[s.Start:s.End])
	}
	return strings.Join(parts, "|")
}

func checkSpans(t *testing.T, text string, spans []Span) {
	t.Helper()
	at := -1
	for _, s := range spans {
		if s.Start <= at || s.End <= s.Start || s.End > len(text) {
			t.Fatalf("spans %v of %d bytes", spans, len(text))
		}
		at = s.End
	}
}

// inside reports whether spans cover a range, and whether they touch it.
func inside(spans []Span, from, to int) (all, some bool) {
	for _, s := range spans {
		all = all || s.Start <= from && to <= s.End
		some = some || s.Start < to && from < s.End
	}
	return all, some
}

// TestUserText: what of a text came from the request.
func TestUserText(t *testing.T) {
	for template, want := range map[string]string{
		"<{{ m.content }}>":                                      " a</think>B\n",
		"<{{ m.content | trim }}>":                               "a</think>B",
		"{{ m.content.split('</think>')[-1].strip() }}!":         "B",
		"{{ '<|' + m.role + '|>' + m.content[1:3] ~ '.' }}":      "a<",
		"{{ m.content | upper }}{{ m.content | length }}":        " A</THINK>B\n",
		"{{ m.content.replace('</think>', '<x>') }}":             " a|B\n",
		"{{ ['x', m.content, 'y'] | join(',') }}":                " a</think>B\n",
		"{{ '%s=%s' % ('k', m.content) }}":                       " a</think>B\n",
		"{{ 'k{}={:>3}'.format(1, m.content[1]) }}":              "a",
		"{{ tools[0] | tojson }};{{ {'a': 1} | tojson }}":        `{"name<": "f"}`,
		"{% for k in tools[0] %}<{{ k }}>{% endfor %}":           "name<",
		"{% set x %}[{{ m.content[1] }}]{% endset %}{{ x }}":     "a",
		"{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f(m.role) }}": "",
		"{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f(extra) }}":  "more",
		"{% filter upper %}a{{ extra }}b{% endfilter %}":         "MORE",
		"{{ bos_token }}{{ 'a' + ('b' if m.content else 'c') }}": "",
		"{{ extra | indent(2, true) }}{{ extra * 2 }}":           "moremoremore",
		"{{ extra | e }}{{ extra | default('x') }}":              "moremore",
		"{{ none | default(extra) }}{{ nope | default(extra) }}": "more",
		"{{ (extra ~ '|').split('|')[0] }}":                      "more",
		"{{ [extra] }}{{ ['a'] }}":                               "['more']",
		"{{ extra | truncate(2, true, '', 0) }}...":              "mo",
		"{{ extra.center(8, '-') }}{{ extra | first }}":          "more|m",
		"{{ extra[::-1] }}{{ extra | reverse }}":                 "eromerom",
	} {
		tmpl, err := Parse("{% set m = messages[0] %}" + template)
		if err != nil {
			t.Fatal(err)
		}
		in := Input{Messages: []*Object{Text("user", " a</think>B\n")}, BOS: "<s>", Tools: []any{&Object{[]Field{{"name<", "f"}}}}, Kwargs: &Object{[]Field{{"extra", "more"}}}}
		text, user, err := tmpl.RenderSpans(in)
		if got := spanText(text, user); err != nil || got != want {
			t.Errorf("%s\ngives %q in %q, %v; want %q", template, got, text, err, want)
		}
		checkSpans(t, text, user)
	}
}

// TestReasoningMarks: in an assistant's message they are tokens, in a user's they are text.
func TestReasoningMarks(t *testing.T) {
	tmpl := Builtin("chatml")
	content := "<think>a</think>b<|im_end|>[THINK"
	for role, want := range map[string]string{"assistant": "a|b<|im_end|>[THINK", "user": content, "<|x|>": "<|x|>|" + content} {
		text, user, err := tmpl.RenderSpans(Input{Messages: []*Object{Text(role, content)}})
		if got := spanText(text, user); err != nil || got != want {
			t.Errorf("%s: %q in %q, %v; want %q", role, got, text, err, want)
		}
	}
}

func TestContinueSpans(t *testing.T) {
	for source, want := range map[string]string{"[{{ messages[0].content }}] end": "Hi", "[{{ messages[0].content }}{{ messages[0].content }}": "HiHi"} {
		tmpl, err := Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		text, user, err := tmpl.RenderSpans(Input{Messages: []*Object{Text("assistant", "Hi")}, ContinueFinalMessage: true})
		got := strings.ReplaceAll(spanText(text, user), openMark, "")
		if err != nil || got != want {
			t.Errorf("%s: %q in %q, %v; want %q", source, got, text, err, want)
		}
	}
}

// mark ends every text of a request's messages in the test below.
const mark = "⟦end⟧"

// marked is a copy of a value in which every text under one of the keys ends with the mark.
func marked(v any, keys ...string) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = marked(v[i], keys...)
		}
		return out
	case *Object:
		out := &Object{}
		for _, f := range v.Fields {
			if text, ok := f.Value.(string); ok && slices.Contains(keys, f.Key) {
				f.Value = text + mark
			} else {
				f.Value = marked(f.Value, keys...)
			}
			out.Fields = append(out.Fields, f)
		}
		return out
	}
	return v
}

// TestUserTextOfTemplates: in all templates and conversations every piece of the request is known as such,
// and no control token of the template is.
func TestUserTextOfTemplates(t *testing.T) {
	dir := testutil.Shared(t, "chat")
	var entries []templateEntry
	readJSON(t, filepath.Join(dir, "templates/index.json"), &entries)
	var list []conversation
	readJSON(t, filepath.Join(dir, "conversations.json"), &list)
	tokens := regexp.MustCompile(`<[|｜][^<>|｜\n]{1,30}[|｜]>|\[/?INST\]|<(start|end)_of_turn>`)
	rendered, marks := 0, 0
	for _, e := range entries {
		source, err := os.ReadFile(filepath.Join(dir, "templates", e.File))
		if err != nil {
			t.Fatal(err)
		}
		tmpl := newTemplate(e.Name, string(source))
		for _, c := range list {
			in := c.input(e)
			for i, m := range in.Messages {
				in.Messages[i] = marked(m, "content", "text", "description").(*Object)
			}
			if in.Tools != nil {
				in.Tools = marked(in.Tools, "description").([]any)
			}
			text, user, err := tmpl.RenderSpans(in)
			if err != nil {
				continue
			}
			rendered++
			checkSpans(t, text, user)
			for _, at := range regexp.MustCompile(mark).FindAllStringIndex(text, -1) {
				marks++
				if all, _ := inside(user, at[0], at[1]); !all {
					t.Errorf("%s: %s: the request's text in %q counts as the template's", e.Name, c.ID, text[max(0, at[0]-40):at[1]])
				}
			}
			for _, at := range tokens.FindAllStringIndex(text, -1) {
				if c.ID == "whitespace_and_markup" { // its messages have control tokens
					break
				}
				if _, some := inside(user, at[0], at[1]); some {
					t.Errorf("%s: %s: %q counts as the request's", e.Name, c.ID, text[max(0, at[0]-40):at[1]])
				}
			}
		}
	}
	if rendered < 2000 || marks < 5000 {
		t.Errorf("only %d renderings with %d marks", rendered, marks)
	}
}
