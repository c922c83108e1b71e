package gbnf

import (
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/cfg/cfgtest"
)

var ids = map[string]int32{"<think>": 7, "</think>": 8}

var parse cfgtest.Parse = func(b *cfg.Builder, text string) (cfg.Expr, error) {
	return Parse(b, text, func(s string) (int32, bool) { id, ok := ids[s]; return id, ok })
}

func TestTexts(t *testing.T) {
	parse.Texts(t, map[string][2][]string{
		`root ::= "a" | "b"+ "c"?`:                           {{"a", "b", "bbc"}, {"", "c", "ab"}},
		"root ::= x # comment\nx ::=\n  \"a\" |\n \"b\"":     {{"a", "b"}, {"ab"}},
		"root ::= \"a\"\n  | \"b\"\n":                        {{"a", "b"}, {""}},
		`root ::= [a-cx\]\x41-\u0043] [^"\\\n] .`:            {{"aé\n", "]x!", "Bxx"}, {"dxx", "a\"x", "a\\x", "ax"}},
		`root ::= "\"\\\t\x41\u00e9\U0001F600"`:              {{"\"\\\tAé😀"}, {"A"}},
		`root ::= "a"{2} "b"{1,} "c"{0,2} [d]{,1}`:           {{"aab", "aabbccd"}, {"ab", "aaabc", "aabccc"}},
		`root ::= ("a" ("b"` + "\n" + `"c")* # end` + "\n)+": {{"a", "abc", "aabcbca"}, {"ab", ""}},
		`root ::= root "+" t | t` + "\n" + `t ::= [0-9]+`:    {{"1", "1+22+3"}, {"+1", "1+"}},
		`root ::= "" | "-"`:                                  {{"", "-"}, {"--"}},
		`root ::= [-a] [a-]`:                                 {{"--", "a-", "aa"}, {"b-"}},
		"root ::= \"a\" b-c\r\nb-c ::= [ab]\r\n":             {{"ab"}, {"a"}},
	})
}

func TestTokens(t *testing.T) {
	m, err := parse.Machine(`root ::= <think> !</think>* <[8]> "x"`, cfg.Limits{})
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
	if cfgtest.Accepts(m, "<think></think>x") {
		t.Error("the text of a token is accepted")
	}
}

func TestErrors(t *testing.T) {
	parse.Errors(t, map[string]string{
		`root ::= "a`:                               `line 1, column 12: a literal's closing " is missing`,
		"root ::= x":                                `line 1, column 10: x is used, but not defined`,
		"x ::= \"a\"":                               "no rule named root",
		"root ::= \"a\"\n\nroot ::= \"b\"":          `line 3, column 1: root is defined twice`,
		"root ::= (\"a\"\nx ::= \"b\"":              `line 2, column 1: a group's ) is missing`,
		"root ::= [z-a]":                            `the range 'z'-'a' is backwards`,
		"root ::= [a":                               "] is missing",
		`root ::= "\q"`:                             `line 1, column 11: an unknown escape`,
		`root ::= "\ud800"`:                         "4 hexadecimal digits",
		`root ::= "a"{3,2}`:                         "a repetition of 3 to 2 times",
		`root ::= "a"{x}`:                           "a repetition is {m}",
		`root ::= "a"{99999999999}`:                 "a number over",
		`root ::= "a" )`:                            `")" is left`,
		`root = "a"`:                                "::= is missing",
		`root ::= <none>`:                           "<none> is not one token",
		`root ::= !<think> "a"`:                     "repeat it with * or +",
		"root ::= " + strings.Repeat("(", 300):      "nest deeper than the limit of 200",
		"root ::= \"a\" root":                       `rule "root" matches no text`,
		"root ::= \"\xff\"":                         "not UTF-8",
		"? ::= \"a\"":                               "a rule's name is missing",
		"root ::= [a]{1000000,} \"b\" (\"c\" root)": `rule "root" matches no text`,
	})
}

func FuzzParse(f *testing.F) {
	f.Add("root ::= [a-z]+ (\"x\" | root){2,5} # c\n")
	f.Add("root ::= <[3]> !<[4]>* . \"\\u00e9\"")
	f.Fuzz(func(t *testing.T, text string) { parse.Run(text) })
}
