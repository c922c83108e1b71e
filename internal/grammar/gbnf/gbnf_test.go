package gbnf

import (
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

func parse(text string) (*cfg.Machine, error) {
	b := cfg.New(cfg.Limits{})
	ids := map[string]int32{"<think>": 7, "</think>": 8}
	e, err := Parse(b, text, Options{Token: func(s string) (int32, bool) { id, ok := ids[s]; return id, ok }})
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

func TestTexts(t *testing.T) {
	cases := []struct {
		grammar string
		yes, no []string
	}{
		{`root ::= "a" | "b"+ "c"?`, []string{"a", "b", "bbc"}, []string{"", "c", "ab"}},
		{"root ::= x # comment\nx ::=\n  \"a\" |\n \"b\"", []string{"a", "b"}, []string{"ab"}},
		{"root ::= \"a\"\n  | \"b\"\n", []string{"a", "b"}, []string{""}},
		{`root ::= [a-cx\]\x41-\u0043] [^"\\\n] .`, []string{"aé\n", "]x!", "Bxx"}, []string{"dxx", "a\"x", "a\\x", "ax"}},
		{`root ::= "\"\\\t\x41\u00e9\U0001F600"`, []string{"\"\\\tAé😀"}, []string{"A"}},
		{`root ::= "a"{2} "b"{1,} "c"{0,2} [d]{,1}`, []string{"aab", "aabbccd"}, []string{"ab", "aaabc", "aabccc"}},
		{`root ::= ("a" ("b"` + "\n" + `"c")* # end` + "\n)+", []string{"a", "abc", "aabcbca"}, []string{"ab", ""}},
		{`root ::= root "+" t | t` + "\n" + `t ::= [0-9]+`, []string{"1", "1+22+3"}, []string{"+1", "1+"}},
		{`root ::= "" | "-"`, []string{"", "-"}, []string{"--"}},
		{`root ::= [-a] [a-]`, []string{"--", "a-", "aa"}, []string{"b-"}},
		{"root ::= \"a\" b-c\r\nb-c ::= [ab]\r\n", []string{"ab"}, []string{"a"}},
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
	m, err := parse(`root ::= <think> !</think>* <[8]> "x"`)
	if err != nil {
		t.Fatal(err)
	}
	c := m.StepToken(m.Start(), 7)
	for _, b := range []byte("Hmm é") {
		c = m.Step(c, b)
	}
	c = m.Step(m.StepToken(c, 8), 'x')
	if !m.MayEnd(c) {
		t.Error("tokens are not accepted")
	}
	if accepts(m, "<think></think>x") {
		t.Error("the text of a token is accepted")
	}
}

func TestErrors(t *testing.T) {
	for grammar, want := range map[string]string{
		`root ::= "a`:                               `line 1, column 12: a literal's closing " is missing`,
		"root ::= x":                                `line 1, column 10: rule "x" is used, but not defined`,
		"x ::= \"a\"":                               "no rule named root",
		"root ::= \"a\"\n\nroot ::= \"b\"":          `line 3, column 1: rule "root" is defined twice`,
		"root ::= (\"a\"\nx ::= \"b\"":              `line 2, column 1: a group's ) is missing`,
		"root ::= [z-a]":                            `the range 'z'-'a' is backwards`,
		"root ::= [a":                               "] is missing",
		`root ::= "\q"`:                             `line 1, column 11: an unknown escape`,
		`root ::= "\ud800"`:                         "4 hexadecimal digits",
		`root ::= "a"{3,2}`:                         "a repetition of 3 to 2 times",
		`root ::= "a"{x}`:                           "a repetition is {m}",
		`root ::= "a"{99999999999}`:                 "a repetition's bound is over",
		`root ::= "a" )`:                            `")" is left`,
		`root = "a"`:                                "::= is missing",
		`root ::= <none>`:                           "<none> is not one token",
		`root ::= !<think> "a"`:                     "repeat it with * or +",
		"root ::= " + strings.Repeat("(", 300):      "nest deeper than the limit of 200",
		"root ::= \"a\" root":                       `rule "root" matches no text`,
		"root ::= \"\xff\"":                         "not UTF-8",
		"? ::= \"a\"":                               "a rule's name is missing",
		"root ::= [a]{1000000,} \"b\" (\"c\" root)": `rule "root" matches no text`,
	} {
		if _, err := parse(grammar); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want %q", grammar, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("root ::= [a-z]+ (\"x\" | root){2,5} # c\n")
	f.Add("root ::= <[3]> !<[4]>* . \"\\u00e9\"")
	f.Fuzz(func(t *testing.T, text string) {
		b := cfg.New(cfg.Limits{Nodes: 1 << 14, Memory: 1 << 20})
		e, err := Parse(b, text, Options{})
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
