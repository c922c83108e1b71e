package regular

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"
)

func build(t testing.TB, pattern string, search bool) *DFA {
	t.Helper()
	d, err := NewBuilder(Limits{}).Regexp(pattern, search)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestRegexpExamples(t *testing.T) {
	for _, c := range []struct{ pattern, yes, no string }{
		{`^a|b$`, "a|ax|b|xb", "|xa|bx"},
		{`^(?:(?!foo).)*$`, "|fo|bar", "foo|xfoo|foox"},
		{`^(?=.*[a-z])(?=.*\d)(?=.*[A-Z]).{4,8}$`, "aB3x|xxxxB3", "aB3|abcd|aB3xxxxxx"},
		{`\bfoo\b`, "foo|a foo b|foo-|éfoo", "xfoo|food|foo_"},
		{`\Boo\B`, "foox", "foo|oox|oo"},
		{`^\p{Lu}\p{L}+$`, "Éa|Abc", "abc|A|A1"},
		{`^\P{L}$`, "1|-", "a|é"},
		{`^[\d\-\]]+$`, "1-]", "a"},
		{`^[^\s]$`, "a|é|😀", " |\u00a0|\u2003"},
		{`^.$`, "a|é|😀", "\n|\u2028|ab"},
		{`^\u{1F600}\ud83d\ude00$`, "😀😀", "😀"},
		{`^(?i:aß)$`, "aß|Aß|Aẞ", "b"},
		{`^a{2,3}?b{0}c{1,}$`, "aac|aaacc", "ac|aabc|aa"},
		{`^{a}]$`, "{a}]", "a"},
		{`a^b`, "", "ab|a^b"},
		{`(?<=a)?`, "", ""},
		{`^(?<year>\d{4})-\cJ\x41\0$`, "2020-\nA\x00", "2020"},
		{`^(?!.*\.\.)[a-z.]+(?<!x)$`, "", ""},
		{`^\p{Script=Greek}+$`, "αβγ", "abc"},
		{`^[\p{L}_-]+$`, "a_-é", "1"},
		{`^(?=a)(?!ab)\w+$`, "a|ac", "ab|abc|b"},
		{`^(?:a(?=b)|b)+$`, "b|ab|bab", "a|aab|ba"},
		{`$^`, "", "a"},
		{``, "|a", ""},
	} {
		d, err := NewBuilder(Limits{}).Regexp(c.pattern, true)
		if strings.Contains(c.pattern, "(?<=") || strings.Contains(c.pattern, "(?<!") {
			if err == nil {
				t.Errorf("%s: look-behind must be refused", c.pattern)
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		for _, s := range strings.Split(c.yes, "|") {
			if c.yes != "" && strings.Contains(c.yes, "||") == false && !d.Match(s) && (s != "" || strings.HasPrefix(c.yes, "|")) {
				t.Errorf("%s must match %q", c.pattern, s)
			}
		}
		for _, s := range strings.Split(c.no, "|") {
			if c.no != "" && d.Match(s) {
				t.Errorf("%s must not match %q", c.pattern, s)
			}
		}
	}
}

// randomPattern writes an expression that all engines read alike.
func randomPattern(r *rand.Rand, depth int, ahead bool) string {
	atoms := []string{"a", "b", "c", "é", ".", "[ab]", "[^a]", `\d`, `\w`, `\W`, "[a-cé-ü]", "^", "$", `\b`, `\B`, "", "1", "_", `\x62`}
	if depth == 0 {
		return atoms[r.IntN(len(atoms))]
	}
	sub := func() string { return randomPattern(r, depth-1, ahead) }
	switch n := r.IntN(9); {
	case n < 3:
		return sub() + sub()
	case n == 3:
		return "(?:" + sub() + "|" + sub() + ")"
	case n == 4:
		return "(" + sub() + ")*"
	case n == 5:
		return "(?:" + sub() + ")" + []string{"+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?"}[r.IntN(7)]
	case n == 6 && ahead:
		return []string{"(?=", "(?!"}[r.IntN(2)] + sub() + ")"
	}
	return sub()
}

func randomText(r *rand.Rand) string {
	const letters = "aabbc1_ é\n-"
	runes := []rune(letters)
	var s strings.Builder
	for range r.IntN(8) {
		s.WriteRune(runes[r.IntN(len(runes))])
	}
	return s.String()
}

func TestAgainstGoRegexp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1500 {
		pattern := randomPattern(r, 1+r.IntN(5), false)
		compare(t, pattern, r, func() (func(string) bool, error) {
			re, err := regexp.Compile(pattern)
			if err != nil {
				return nil, err
			}
			return re.MatchString, nil
		})
	}
}

func TestAgainstECMAScript(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 1500 {
		pattern := randomPattern(r, 1+r.IntN(5), true)
		compare(t, pattern, r, func() (func(string) bool, error) {
			re, err := regexp2.Compile(pattern, regexp2.ECMAScript)
			if err != nil {
				return nil, err
			}
			return func(s string) bool { ok, err := re.MatchString(s); return ok && err == nil }, nil
		})
	}
}

func compare(t *testing.T, pattern string, r *rand.Rand, make func() (func(string) bool, error)) {
	t.Helper()
	match, err := make()
	if err != nil {
		return
	}
	d, err := NewBuilder(Limits{}).Regexp(pattern, true)
	var limit *LimitError
	if errors.As(err, &limit) {
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	for range 60 {
		s := randomText(r)
		if want, got := match(s), d.Match(s); want != got {
			t.Fatalf("%s on %q: %v, want %v", pattern, s, got, want)
		}
	}
}

// walk gives a random text of d.
func walk(d *DFA, r *rand.Rand) string {
	var text []byte
	for state := d.Start(); ; {
		if d.Accepting(state) && r.IntN(4) == 0 {
			return string(text)
		}
		var next []byte
		for c := range 256 {
			if d.Next(state, byte(c)) >= 0 {
				next = append(next, byte(c))
			}
		}
		if len(next) == 0 {
			return string(text)
		}
		c := next[r.IntN(len(next))]
		text, state = append(text, c), d.Next(state, c)
	}
}

func TestJSONString(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, pattern := range []string{``, `^[a-zé"\\\n]*$`, `^\u{1F600}+$`, `^[\x00-\x1f]+$`, `^[^a]{1,3}$`, `^[\u0080-\u0800]+$`, `^\p{Lo}*$`} {
		d := build(t, pattern, true)
		for _, spelling := range []Spelling{Canonical, Any} {
			e, err := NewBuilder(Limits{}).JSONString(d, spelling)
			if err != nil {
				t.Fatal(err)
			}
			for range 300 {
				spelled := walk(e, r)
				var text string
				if err := json.Unmarshal([]byte(`"`+spelled+`"`), &text); err != nil || !d.Match(text) {
					t.Fatalf("%s: %q, which reads %q: %v", pattern, spelled, text, err)
				}
				text = walk(d, r)
				if !e.Match(spell(text, spelling, r)) {
					t.Fatalf("%s: %q is missing", pattern, spell(text, spelling, r))
				}
			}
		}
	}
}

func spell(text string, spelling Spelling, r *rand.Rand) string {
	var out strings.Builder
	for _, c := range text {
		if spelling == Any && r.IntN(2) == 0 {
			for _, u := range utf16Of(c) {
				digits := "0123456789abcdef"
				if r.IntN(2) == 0 {
					digits = "0123456789ABCDEF"
				}
				out.WriteString(`\u`)
				for shift := 12; shift >= 0; shift -= 4 {
					out.WriteByte(digits[u>>shift&15])
				}
			}
			continue
		}
		switch i := strings.IndexRune("\"\\\b\f\n\r\t", c); {
		case i >= 0:
			out.WriteString(`\` + `"\bfnrt`[i:i+1])
		case c < 0x20:
			out.WriteString(`\u00` + string("01"[c>>4]) + string("0123456789abcdef"[c&15]))
		default:
			out.WriteRune(c)
		}
	}
	return out.String()
}

func utf16Of(c rune) []rune {
	if c < 0x10000 {
		return []rune{c}
	}
	c -= 0x10000
	return []rune{0xD800 + c>>10, 0xDC00 + c&0x3FF}
}
