package lark

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/cfg/cfgtest"
	"github.com/spillway/spillway/internal/grammar/regular"
)

func with(l regular.Limits) cfgtest.Parse {
	return func(b *cfg.Builder, text string) (cfg.Expr, error) {
		return Parse(b, text, Options{
			Tokens: func(s string) (int32, bool) { return 7, s == "<|tool|>" },
			JSON: func(b *cfg.Builder, schema string) (cfg.Expr, error) {
				if strings.Contains(schema, "bad") {
					return 0, fmt.Errorf("a bad schema")
				}
				return b.Bytes("{}"), nil
			},
			Regular: l,
		})
	}
}

var parse = with(regular.Limits{})

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
	parse.Texts(t, map[string][2][]string{
		arithmetic: {{"1", " 1 + x_2*( 3.5e-7 -y )", "- - 1"}, {"", "1 +", "(1", "1\n", "1x"}},
		`start: "a"i ["b"] "c"~2 "d"~1..2 "e"{,2}`:                             {{"Accd", "abccddee"}, {"acd", "abccddd", "Bccd"}},
		"start: A B?\nA: \"a\"..\"c\" | \"é\"\nB: /[0-9]+/ | \"x\" \"y\"":      {{"a", "é12", "cxy"}, {"d", "ax"}},
		"start: WORD\nWORD: /(?i)k\\-[a-z]/ | /\\/\\\"./s | /x./":              {{"k-Q", "K-a", "/\"\n", "xy"}, {"k-", "x\n"}},
		"start: T\n%ignore \" \"\nT: \"a\" \"b\"":                              {{"ab", " ab  "}, {"a b"}},
		"start: \"\\\"\\n\\x41\\u00e9\"":                                       {{"\"\nAé"}, nil},
		"start: \"x\" %json {\"a\": {\"b\": \"}\"}} \"y\"":                     {{"x{}y"}, {"xy"}},
		"%llguidance {}\nstart: ESCAPED_STRING\n%import common.ESCAPED_STRING": {{`"a\"b"`, `""`}, {`"a`, "\"\n\""}},
		"start: C\n%import common.C_COMMENT -> C":                              {{"/* a **/", "/***/"}, {"/* */ */", "/*/"}},
		"start: x*\nx: \"a\" | /b/":                                            {{"", "abab"}, {"c"}},
		"start: \"a\" \\\n \"b\"":                                              {{"ab"}, {"a"}},
	})
}

func TestTokens(t *testing.T) {
	m, err := parse.Machine("start: <|tool|> \"x\" <[9]>\n%ignore \" \"", cfg.Limits{})
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
		if _, err := parse.Machine("start: "+name+"\n%import common."+name, cfg.Limits{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestErrors(t *testing.T) {
	parse.Errors(t, map[string]string{
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
	})
}

func FuzzParse(f *testing.F) {
	f.Add(arithmetic)
	f.Add("start: \"a\"i~2..3 /x[^y]+/i -> z\n%ignore /[ ]/\n%import common.INT")
	small := with(regular.Limits{States: 1000, Steps: 1_000_000})
	f.Fuzz(func(t *testing.T, text string) { small.Run(text) })
}
