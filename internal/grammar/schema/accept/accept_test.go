package accept

import (
	"errors"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/grammar/regular"
	"github.com/spillway/spillway/internal/grammar/schema"
)

func program(t testing.TB, text string) *Program {
	t.Helper()
	doc, err := schema.Parse([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(doc, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A failure says where, and as early as it is decided: at the byte |.
func TestFailures(t *testing.T) {
	for _, c := range []struct{ schema, text, want string }{
		{`{"type":"object"}`, ` |[`, `the value is an array, not object (keyword "type" at #)`},
		{`{"properties":{"a":{"items":{"maxLength":2}}}}`, `{"a":["x","xx|x`, `/a/1 has more than 2 characters (keyword "maxLength" at #/properties/a/items)`},
		{`{"properties":{"a/b~c":{"const":1}}}`, `{"a/b~c":2|}`, `/a~1b~0c is not 1 (keyword "const" at #/properties/a~1b~0c)`},
		{`{"enum":["abc","abd"]}`, `"ab|x`, `the value is none of "abc", "abd" (keyword "enum" at #)`},
		{`{"const":"abc"}`, `"ab|"`, `the value is not "abc" (keyword "const" at #)`},
		{`{"pattern":"^a[0-9]+$"}`, `"a1|x`, `the value does not match "^a[0-9]+$" (keyword "pattern" at #)`},
		{`{"format":"ipv4"}`, `"1.2.29|9`, `the value is no ipv4 (keyword "format" at #)`},
		{`{"additionalProperties":false,"properties":{"a":{}}}`, `{"a":1,"b|":1}`, `the value must have no property "b" (keyword "additionalProperties" at #)`},
		{`{"required":["a","b"]}`, `{"a":1|}`, `the value has no property "b" (keyword "required" at #)`},
		{`{"maxItems":1}`, `[1,|2`, `the value has more than 1 items (keyword "maxItems" at #)`},
		{`{"uniqueItems":true}`, `[{"a":1,"b":[]},{"b":[],"a":1.0|}]`, `the value has the same value at 0 and 1 (keyword "uniqueItems" at #)`},
		{`{"items":{"minimum":2}}`, `[2,1|,3]`, `/1 must be at least 2 (keyword "minimum" at #/items)`},
		{`{"exclusiveMaximum":2.5}`, `2.50| `, `the value must be below 2.5 (keyword "exclusiveMaximum" at #)`},
		{`{"multipleOf":0.01}`, `0.015|`, `the value is no multiple of 0.01 (keyword "multipleOf" at #)`},
		{`{"type":"integer"}`, `1.5|`, `the value is a number, not an integer (keyword "type" at #)`},
		{`{"not":{}}`, `|1`, `must not be valid against (keyword "not" at #)`},
		{`{"anyOf":[{"type":"string"},{"required":["a"]}]}`, `{|}`, `the last to fail: the value has no property "a" (keyword "required" at #/anyOf/1) (keyword "anyOf" at #)`},
		{`{"oneOf":[{"minimum":1},{"minimum":2}]}`, `3| `, `more than one of the schemas (keyword "oneOf" at #)`},
		{`{"propertyNames":{"maxLength":1}}`, `{"a|b":1}`, `(keyword "maxLength" at #/propertyNames)`},
		{`{"items":{"$ref":"#/$defs/a"},"$defs":{"a":{"items":false}}}`, `[[|1]]`, `/0/0 is not allowed here`},
		{`{"unevaluatedProperties":false,"allOf":[{"properties":{"a":{}}}]}`, `{"a":1,"b":2|}`, `"b" (keyword "unevaluatedProperties" at #)`},
		{`{"contains":{"const":1},"maxContains":1}`, `[1,1|,2]`, `(keyword "maxContains" at #)`},
		{`true`, `[1,|]`, `"line 1`},
		{`true`, "{\n \"a\": tru|x", `line 2, column 10`},
		{`true`, `"a|` + "\n", `byte 0x0a within a string`},
		{`true`, `"\ud83d|` + "\x80", `no UTF-8`},
		{`true`, "\"\xed|\xa0\x80\"", `byte 0xa0 is no UTF-8`},
		{`true`, `0|1`, `must come`},
		{`true`, `{"a":1,"a|":1}`, `the name "a" occurs twice`},
		{`true`, `1 |2`, `where the end of the text must come`},
		{`true`, `[1|`, `the text ends within the JSON value`},
		{`true`, `|`, `the text ends within the JSON value`},
		{`true`, `-|`, `a number ends where a digit must come`},
	} {
		text := strings.Replace(c.text, "|", "", 1)
		err := program(t, c.schema).Check([]byte(text))
		var f *Failure
		if !errors.As(err, &f) {
			t.Errorf("%s: %s: %v", c.schema, text, err)
			continue
		}
		if at := strings.IndexByte(c.text, '|'); int(f.Offset) != at {
			t.Errorf("%s: %s: fails at byte %d, want %d", c.schema, text, f.Offset, at)
		}
		if want := strings.TrimPrefix(c.want, `"`); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s: %v; want %s", c.schema, text, err, want)
		}
	}
}

func TestFailureIsFinal(t *testing.T) {
	c := program(t, `{"type":"array"}`).New()
	first := c.Write([]byte("1"))
	if first == nil || c.Write([]byte("[]")) != first || c.Close() != first {
		t.Error("a failure must stay")
	}
}

func TestRefused(t *testing.T) {
	for text, reason := range map[string]schema.Reason{
		`{"pattern":"(?<=a)b"}`:          schema.Unsupported,
		`{"pattern":"("}`:                schema.Invalid,
		`{"patternProperties":{"[":{}}}`: schema.Invalid,
		`{"format":"idn-hostname"}`:      schema.Unsupported,
		`{"pattern":"(a{1000}){1000}"}`:  schema.Limit,
	} {
		doc, err := schema.Parse([]byte(text), nil)
		if err == nil {
			_, err = Compile(doc, Options{Limits: regular.Limits{States: 1000}})
		}
		var e *schema.Error
		if !errors.As(err, &e) || e.Reason != reason || e.Keyword == "" || e.Where != "#" {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A pattern whose automaton is too large is followed state by state, also two at once.
func TestLargePatterns(t *testing.T) {
	p := program(t, `{"items":{"pattern":"^[01]*1[01]{40}$"},"patternProperties":{"^[01]*1[01]{40}$":{"type":"null"}},"allOf":[{"items":{"pattern":"^[01]*1[01]{40}$"}},{"items":{"pattern":"^[\\p{L}\\p{N}]{0,1000}$"}}]}`)
	one := "1" + strings.Repeat("0", 40)
	for text, ok := range map[string]bool{
		`["` + one + `","0` + one + `"]`: true, `["` + one + `0"]`: false, `["` + one + `-"]`: false,
		`{"` + one + `":null}`: true, `{"` + one + `":1}`: false, `{"` + one + `0":1}`: true,
	} {
		if err := p.Check([]byte(text)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Texts that nest deep or have long values take time in proportion to their length.
func TestHostileTexts(t *testing.T) {
	p := program(t, `{"uniqueItems":true,"additionalProperties":{"$ref":"#"},"items":{"$ref":"#"},"maxLength":100}`)
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"nested":   {strings.Repeat("[", 9000) + strings.Repeat("]", 9000), true},
		"objects":  {strings.Repeat(`{"a":[`, 4000) + strings.Repeat("]}", 4000), true},
		"too deep": {strings.Repeat("[", 20_000), false},
		"long":     {`"` + strings.Repeat("a", 1<<20) + `"`, false},
		"digits":   {"[" + strings.Repeat("9", 10_000) + "]", false},
		"exponent": {"[1e999999999]", false},
	} {
		if err := p.Check([]byte(c.text)); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	p := program(b, `{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer","minimum":0},"name":{"type":"string","pattern":"^[a-z ]+$"},"tags":{"type":"array","items":{"enum":["red","green","blue"]}}},"required":["id"],"additionalProperties":false}}`)
	text := []byte("[" + strings.Repeat(`{"id": 12345, "name": "somebody else", "tags": ["red", "blue"]},`, 1000) + `{"id":1}]`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if err := p.Check(text); err != nil {
			b.Fatal(err)
		}
	}
}
