package lark

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

func parse(text string) (*cfg.Machine, error) {
	b := cfg.New(cfg.Limits{})
	e, err := Parse(b, text, Options{
		Token: func(s string) (int32, bool) { return 7, s == "<|tool|>" },
		JSON: func(b *cfg.Builder, schema string) (cfg.Expr, error) {
			if strings.Contains(schema, "bad") {
				return 0, fmt.Errorf("a bad schema")
			}
			return b.Bytes("{}"), nil
		},
	})
	if err != nil {
		return nil, err
	}
	g, err := b.Grammar(e)
	if err != nil {
		return nil, err
	}
	return g.NewMachine(), nil
}

func accepts(m *cfg.Machine, text string) bool {
	c := m.Start()
	for i := range len(text) {
		c = m.Step(c, text[i])
	}
	return m.MayEnd(c)
}

const arithmetic = `
?start: sum            // what it is
?sum: product
    | sum "+" product  -> add
    | sum "-" product  -> sub
?product.2: atom | product ("*" | "/") atom
?atom: NUMBER -> number
     | "-" atom
     | NAME
     | "(" sum ")"
%import common.CNAME -> NAME
%import common (NUMBER, WS_INLINE)  # white space
%ignore WS_INLINE
`

func TestTexts(t *testing.T) {
	cases := []struct {
		grammar string
		yes, no []string
	}{
		{arithmetic, []string{"1", " 1 + x_2*( 3.5e-7 -y )", "- - 1"}, []string{"", "1 +", "(1", "1\n", "1x"}},
		{`start: "a"i ["b"] "c"~2 "d"~1..2 "e"{,2}`, []string{"Accd", "abccddee"}, []string{"acd", "abccddd", "Bccd"}},
		{"start: A B?\nA: \"a\"..\"c\" | \"é\"\nB: /[0-9]+/ | \"x\" \"y\"", []string{"a", "é12", "cxy"}, []string{"d", "ax"}},
		{"start: WORD\nWORD: /(?i)k\\-[a-z]/ | /\\/\\\"./s | /x./", []string{"k-Q", "K-a", "/\"\n", "xy"}, []string{"k-", "x\n"}},
		{"start: T\n%ignore \" \"\nT: \"a\" \"b\"", []string{"ab", " ab  "}, []string{"a b"}},
		{"start: \"\\\"\\n\\x41\\u00e9\"", []string{"\"\nAé"}, nil},
		{"start: \"x\" %json {\"a\": {\"b\": \"}\"}} \"y\"", []string{"x{}y"}, []string{"xy"}},
		{"%llguidance {}\nstart: ESCAPED_STRING\n%import common.ESCAPED_STRING", []string{`"a\"b"`, `""`}, []string{`"a`, "\"\n\""}},
		{"start: C\n%import common.C_COMMENT -> C", []string{"/* a **/", "/***/"}, []string{"/* */ */", "/*/"}},
		{"start: x*\nx: \"a\" | /b/", []string{"", "abab"}, []string{"c"}},
		{"start: \"a\" \\\n \"b\"", []string{"ab"}, []string{"a"}},
	}
	for _, c := range cases {
		m, err := parse(c.grammar)
		if err != nil {
			t.Errorf("%s: %v", c.grammar, err)
			continue
		}
		for _, text := range c.yes {
			if !accepts(m, text) {
				t.Errorf("%s: refuses %q", c.grammar, text)
			}
		}
		for _, text := range c.no {
			if accepts(m, text) {
				t.Errorf("%s: accepts %q", c.grammar, text)
			}
		}
	}
}

func TestTokens(t *testing.T) {
	m, err := parse("start: <|tool|> \"x\" <[9]>\n%ignore \" \"")
	if err != nil {
		t.Fatal(err)
	}
	c := m.StepToken(m.Start(), 7)
	c = m.Step(m.Step(c, ' '), 'x')
	if c = m.StepToken(c, 9); !m.MayEnd(c) {
		t.Error("tokens are not accepted")
	}
}

func TestCommon(t *testing.T) {
	for name := range common {
		if name == "_STRING_INNER" {
			continue
		}
		if _, err := parse("start: " + name + "\n%import common." + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestErrors(t *testing.T) {
	for grammar, want := range map[string]string{
		"start: \"a":                         `line 1, column 10: a string's closing " is missing`,
		"start: x":                           "line 1, column 8: x is used, but not defined",
		"x: \"a\"":                           "no rule named start",
		"start: \"a\"\nstart: \"b\"":         "line 2, column 1: start is defined twice",
		"start: (\"a\"":                      ") is missing",
		"start: \"b\"..\"a\"":                `"b".."a" is no range`,
		"start: \"ab\"..\"c\"":               "is no range",
		"start: \"\\q\"":                     "an unknown escape",
		"start: /a/x":                        "the flag x",
		"start: /a":                          "closing / is missing",
		"start: /(/":                         "line 1, column 8: ",
		"start: \"a\"~3..2":                  "a repetition of 3 to 2 times",
		"start: \"a\"~x":                     "a repetition is ~m",
		"start: A\nA: b\nb: \"x\"":           "a terminal cannot be made of rules; b is one",
		"start: a{b}\n":                      "templates (a{...})",
		"a{b}: b\n":                          "templates (a{...})",
		"start[capture]: \"a\"":              "attributes (start[...])",
		"%declare X\nstart: X":               "%declare is not supported",
		"%import python.X\nstart: X":         "only common",
		"%import common.X\nstart: X":         `common has no terminal "X"`,
		"start: %regex {}":                   "%regex is not supported",
		"start: %json {\"bad\": 1}":          "%json: a bad schema",
		"start: <none>":                      "<none> is not one token",
		"start: " + strings.Repeat("(", 300): "nest deeper than the limit of 200",
		"start: \"a\" start":                 `rule "start" matches no text`,
		"start: \"a\" )":                     `")" is left`,
		"%llguidance {\"no_forcing\": true}\nstart: ": "options of %llguidance are not supported",
	} {
		if _, err := parse(grammar); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want %q", grammar, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(arithmetic)
	f.Add("start: \"a\"i~2..3 /x[^y]+/i -> z\n%ignore /[ ]/\n%import common.INT")
	f.Fuzz(func(t *testing.T, text string) {
		b := cfg.New(cfg.Limits{Nodes: 1 << 14, Memory: 1 << 20})
		o := Options{}
		o.Regular.States, o.Regular.Steps = 1000, 1_000_000
		e, err := Parse(b, text, o)
		if err != nil {
			return
		}
		g, err := b.Grammar(e)
		if err != nil {
			return
		}
		m := g.NewMachine()
		c := m.Start()
		for i := range min(len(text), 100) {
			c = m.Step(c, text[i])
		}
	})
}
