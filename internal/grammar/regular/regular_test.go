package regular

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

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
	type texts []string
	for _, c := range []struct {
		pattern string
		yes, no texts
	}{
		{`^a|b$`, texts{"a", "ax", "b", "xb"}, texts{"", "xa", "bx"}},
		{`^(?:(?!foo).)*$`, texts{"", "fo", "bar"}, texts{"foo", "xfoo", "foox"}},
		{`^(?=.*[a-z])(?=.*\d)(?=.*[A-Z]).{4,8}$`, texts{"aB3x", "xxxxxxB3"}, texts{"aB3", "abcd", "aB3xxxxxx"}},
		{`^(?=a)(?!ab)\w+$`, texts{"a", "ac"}, texts{"ab", "abc", "b"}},
		{`^(?:a(?=b)|b)+$`, texts{"b", "ab", "bab"}, texts{"a", "aab", "ba"}},
		{`^(?!(?=a)ab)a`, texts{"a", "aab"}, texts{"ab", "b"}},
		{`\bfoo\b`, texts{"foo", "a foo b", "foo-", "\u00e9foo"}, texts{"xfoo", "food", "foo_"}},
		{`\Boo\B`, texts{"foox"}, texts{"foo", "oox", "oo"}},
		{`(?=\bb)`, texts{"b", "a b"}, texts{"ab", ""}},
		{`^\p{Lu}\p{L}+$`, texts{"\u00c9a", "Abc"}, texts{"abc", "A", "A1"}},
		{`^\P{L}$`, texts{"1", "-", "\U0001f600"}, texts{"a", "\u00e9"}},
		{`^\p{Script=Greek}+$`, texts{"\u03b1\u03b2"}, texts{"abc"}},
		{`^[\p{Letter}_-]+$`, texts{"a_-\u00e9"}, texts{"1"}},
		{`^\p{ASCII}\p{Any}\P{Cn}$`, texts{"a\u0378b"}, texts{"\u00e9aa", "aa\u0378"}},
		{`^[\d\-\]]+$`, texts{"1-]"}, texts{"a"}},
		{`^[\w-.]+$`, texts{"a-."}, texts{"+"}},
		{`^[^\s]$`, texts{"a", "\u00e9", "\U0001f600"}, texts{" ", "\u00a0", "\u2003", ""}},
		{`^.$`, texts{"a", "\u00e9", "\U0001f600"}, texts{"\n", "\u2028", "ab", ""}},
		{`^(?s:.)$`, texts{"\n"}, texts{""}},
		{`^\u{1F600}\ud83d\ude00$`, texts{"\U0001f600\U0001f600"}, texts{"\U0001f600"}},
		{`^[^\ud800-\udfff]$`, texts{"a"}, texts{""}},
		{`^(?i:a\u00df)$`, texts{"a\u00df", "A\u1e9e"}, texts{"b"}},
		{`^a{2,3}?b{0}c{1,}$`, texts{"aac", "aaacc"}, texts{"ac", "aabc", "aa"}},
		{`^{a}]{,2}$`, texts{"{a}]{,2}"}, texts{"a"}},
		{`a^b`, nil, texts{"ab", "a^b"}},
		{`^(?<year>\d{4})-\cJ\x41\0$`, texts{"2020-\nA\x00"}, texts{"2020"}},
		{`^[\b]\t\n\v\f\r\/\.$`, texts{"\b\t\n\v\f\r/."}, texts{"b"}},
		{`$^`, texts{""}, texts{"a"}},
		{`[]`, nil, texts{"", "a"}},
		{`^[^]$`, texts{"a", "\n"}, texts{""}},
		{`^(?:(?<y>\d{4})-|(?P<m>\d\d)/|(?<y>\d))$`, texts{"2024-", "12/", "5"}, texts{"12-", "2024"}},
		{``, texts{"", "a"}, texts{"\xff", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80"}},
	} {
		d := build(t, c.pattern, true)
		for _, s := range c.yes {
			if !d.Match(s) {
				t.Errorf("%s must match %q", c.pattern, s)
			}
		}
		for _, s := range c.no {
			if d.Match(s) {
				t.Errorf("%s must not match %q", c.pattern, s)
			}
		}
	}
}

func TestRegexpRefused(t *testing.T) {
	for _, c := range []struct {
		pattern string
		offset  int
		refused bool // though a regular expression
	}{
		{`a(?<=b)`, 1, true}, {`(?<!b)`, 0, true}, {`(a)\1`, 3, true}, {`(?<x>a)\k<x>`, 7, true},
		{`(`, 0, false}, {`a)`, 1, false}, {`a**`, 2, false}, {`+`, 0, false}, {`{1}`, 3, false}, {`[a`, 0, false}, {`[b-a]`, 1, false},
		{`\`, 0, false}, {`\a`, 0, false}, {`x\Z`, 1, false}, {`\p{Nope}`, 0, false}, {`\pL`, 0, false}, {`\u{110000}`, 0, false}, {`\u12`, 0, false},
		{`\x1`, 0, false}, {`a{2,1}`, 1, false}, {`(?x:a)`, 0, false}, {`(?m:a)`, 0, false}, {`^*`, 1, false}, {`(?<a>)(?<a>)`, 6, false},
		{`(?:(?<a>)|(?<b>)|(?<a>))(?<b>)`, 24, false}, {`(?<a>(?<a>)|)`, 5, false},
		{"a\xff", 1, false}, {`\01`, 0, false}, {`a{99999999}`, 1, false},
	} {
		_, err := NewBuilder(Limits{}).Regexp(c.pattern, true)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		if syntax.Offset != c.offset || syntax.Refused != c.refused || (CheckRegexp(c.pattern) == nil) != c.refused {
			t.Errorf("%s: %v, refused: %v; want byte %d, %v", c.pattern, err, syntax.Refused, c.offset, c.refused)
		}
	}
	if err := CheckRegexp(strings.Repeat("(", 100_000)); err == nil {
		t.Error("deep nesting must be refused")
	}
	var names strings.Builder
	for i := range 300_000 {
		fmt.Fprintf(&names, "(?<a%d>)", i)
	}
	if err := CheckRegexp(names.String()); err == nil {
		t.Error("so many names must be refused")
	}
	long := strings.Repeat("[ab]", mostPattern/4)
	if _, err := NewBuilder(Limits{States: 1 << 17}).Regexp(long, false); err != nil {
		t.Error(err)
	}
	if _, err := NewBuilder(Limits{}).Regexp(long+"a", false); err == nil || !strings.Contains(err.Error(), "more than 65536 bytes") {
		t.Errorf("a pattern too long: %v", err)
	}
	if err := CheckRegexp(`(?P<a>b)`); err == nil {
		t.Error("(?P< is none of ECMA-262")
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		limits  Limits
		pattern string
		limit   string
	}{
		{Limits{}, `^[01]*1[01]{40}$`, "states"},
		{Limits{}, `^((a{100}){100}){100}$`, "states"},
		{Limits{Steps: 1000}, `^\p{L}{20}$`, "steps"},
		{Limits{Bytes: 1000}, `^\p{L}{20}$`, "bytes"},
		{Limits{Until: time.Now().Add(-time.Second)}, `^[01]*1[01]{40}$`, "time"},
	} {
		_, err := NewBuilder(c.limits).Regexp(c.pattern, true)
		var limit *LimitError
		if !errors.As(err, &limit) || limit.Limit != c.limit || !strings.Contains(err.Error(), c.limit) {
			t.Errorf("%s: %v, want the limit of %s", c.pattern, err, c.limit)
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
	lazy, err := NewBuilder(Limits{}).Pattern(pattern, true)
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	for range 60 {
		s := randomText(r)
		if want, got, late := match(s), d.Match(s), lazy.Run().Match(s); want != got || want != late {
			t.Fatalf("%s on %q: %v and %v, want %v", pattern, s, got, late, want)
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
