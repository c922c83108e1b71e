package schema

import (
	"errors"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/regular"
)

// TestLanguage says which texts schemas write, and which they do not.
func TestLanguage(t *testing.T) {
	for _, test := range []struct {
		name, schema string
		o            Options
		in, out      []string
	}{
		{"order of properties", `{"properties":{"b":{"type":"integer"},"a":true},"required":["a"],"additionalProperties":false}`, Options{},
			[]string{`{"b":1,"a":2}`, `{"a":"x"}`, `[]`, `null`}, []string{`{"a":1,"b":1}`, `{"b":1}`, `{"a":1,}`, `{ "a":1}`, `{"a":1,"c":1}`}},
		{"compact", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}},"required":["a"]}`, Options{},
			[]string{`{"a":[1,2]}`, `{"a":[],"x":null}`}, []string{`{"a": [1]}`, `{"a":[1, 2]}`}},
		{"white space", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}},"required":["a"]}`, Options{FlexibleSpace: true},
			[]string{`{"a":[1,2]}`, "{\n  \"a\" : [\n 1 ,\t2 ] }"}, []string{`{"a":[1 2]}`, ` {"a":[]}`}},
		{"bounded white space", `{"const":{"a":[]}}`, Options{FlexibleSpace: true, MaxSpace: 2},
			[]string{`{"a":[]}`, `{  "a": [  ] }`}, []string{`{   "a":[]}`}},
		{"other names", `{"properties":{"ab":{"type":"integer"}},"additionalProperties":{"type":"string"}}`, Options{},
			[]string{`{"ab":1,"abc":"x","a":"","b":""}`, `{"":"x"}`}, []string{`{"ab":"x"}`, `{"x":"y","ab":1}`, `{"a\u0062":"x"}`}},
		{"patterns of names", `{"properties":{"xa":{"minimum":3}},"patternProperties":{"^x":{"type":"integer"}},"additionalProperties":false}`, Options{},
			[]string{`{"xa":3,"xb":-1}`}, []string{`{"xa":2}`, `{"xa":3.5}`, `{"y":1}`, `{"xb":""}`}},
		{"property names", `{"type":"object","propertyNames":{"pattern":"^[a-z]+$"},"minProperties":1}`, Options{},
			[]string{`{"a":1}`, `{"ab":1,"cd":2}`}, []string{`{}`, `{"A":1}`}},
		{"names that differ", `{"type":"object","minProperties":2}`, Options{},
			[]string{`{"a":1,"bc":2}`}, []string{`{"a":1}`, `{"a":1,"a":2}`}},
		{"most properties", `{"type":"object","maxProperties":1,"properties":{"a":true}}`, Options{},
			[]string{`{}`, `{"a":1}`, `{"b":1}`}, []string{`{"a":1,"b":1}`, `{"b":1,"c":1}`}},
		{"tuples", `{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"null"},"minItems":1}`, Options{},
			[]string{`[1]`, `[1,"a"]`, `[1,"a",null,null]`}, []string{`[]`, `["a"]`, `[1,"a",1]`}},
		{"contains", `{"type":"array","items":{"type":"integer"},"contains":{"minimum":5},"maxContains":1}`, Options{},
			[]string{`[5]`, `[1,7,2]`}, []string{`[]`, `[1]`, `[5,6]`}},
		{"unique items", `{"type":"array","items":{"enum":["a","b",1]},"uniqueItems":true,"minItems":2}`, Options{},
			[]string{`["b","a"]`, `[1,"a","b"]`}, []string{`["a"]`, `["a","a"]`, `["a","b","a"]`}},
		{"integers", `{"type":"integer","minimum":-3,"exclusiveMaximum":120,"multipleOf":7}`, Options{},
			[]string{`0`, `7`, `119`}, []string{`-7`, `126`, `8`, `7.0`, `07`}},
		{"decimals", `{"type":"number","minimum":0,"multipleOf":0.01}`, Options{},
			[]string{`0`, `12.5`, `0.01`, `100`}, []string{`0.001`, `-1`, `1e2`}},
		{"text", `{"type":"string","minLength":2,"maxLength":3,"pattern":"^[a-zé]*$"}`, Options{},
			[]string{`"ab"`, `"éab"`}, []string{`"a"`, `"abcd"`, `"A1"`}},
		{"escapes", `{"type":"string"}`, Options{}, []string{`"a\n\u00e9\ud83d\ude00"`, `"😀"`}, []string{"\"a\nb\"", `"\x"`, "\"\xff\""}},
		{"lists of equal values", `{"enum":[1,1.0,{"a":1,"b":[2]},{"b":[2.0],"a":1},[null],"x","1"],"not":{"enum":[[null],{"b":[2],"a":2}]}}`, Options{},
			[]string{`1`, `{"a":1,"b":[2]}`, `"x"`, `"1"`}, []string{`[null]`, `{"b":[2],"a":1}`, `{"a":2,"b":[2]}`}},
		{"formats", `{"type":"string","format":"date","pattern":"^2024"}`, Options{}, []string{`"2024-02-29"`}, []string{`"2023-02-28"`, `"2024-02-30"`}},
		{"types", `{"type":["integer","null"]}`, Options{}, []string{`1`, `null`}, []string{`"1"`, `true`, `1.5`}},
		{"one of", `{"oneOf":[{"multipleOf":3},{"multipleOf":5}],"type":"integer","minimum":0}`, Options{},
			[]string{`3`, `5`, `9`}, []string{`15`, `0`, `30`, `4`}},
		{"not", `{"type":"object","not":{"required":["a"]},"properties":{"b":{"not":{"const":1}}}}`, Options{},
			[]string{`{}`, `{"b":2,"c":1}`}, []string{`{"a":1}`, `{"b":1}`}},
		{"if", `{"type":"object","properties":{"k":{"enum":["x","y"]},"n":true},"required":["k"],"additionalProperties":false,
			"if":{"properties":{"k":{"const":"x"}}},"then":{"required":["n"]},"else":{"properties":{"n":false}}}`, Options{},
			[]string{`{"k":"x","n":1}`, `{"k":"y"}`}, []string{`{"k":"x"}`, `{"k":"y","n":1}`}},
		{"dependent", `{"type":"object","properties":{"a":true,"b":true},"additionalProperties":false,"dependentRequired":{"a":["b"]}}`, Options{},
			[]string{`{}`, `{"b":1}`, `{"a":1,"b":1}`}, []string{`{"a":1}`}},
		{"unevaluated", `{"allOf":[{"properties":{"a":true}}],"anyOf":[{"properties":{"b":true}},{"properties":{"c":true}}],"unevaluatedProperties":false,"type":"object"}`, Options{},
			[]string{`{"a":1,"b":1}`, `{"b":1,"c":1}`}, []string{`{"d":1}`}},
		{"recursion", `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"additionalProperties":false}}}`, Options{},
			[]string{`{}`, `{"n":{"n":{}}}`}, []string{`{"n":1}`}},
		{"draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"number","minimum":1,"exclusiveMinimum":true,"maximum":2}`, Options{},
			[]string{`1.5`, `2`}, []string{`1`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, err := newWriter([]byte(test.schema), test.o, jsonschema.Draft2020)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range test.in {
				if !w.accepts(text) {
					t.Errorf("%s is not written", text)
				}
			}
			for _, text := range test.out {
				if w.accepts(text) {
					t.Errorf("%s is written", text)
				}
			}
		})
	}
}

// TestRefusals says what errors name.
func TestRefusals(t *testing.T) {
	union := ""
	for i := range 200 {
		union += `,{"properties":{"k":{"const":` + itoa(i) + `}},"required":["k"]}`
	}
	deep := strings.Repeat(`{"items":`, 300) + `{}` + strings.Repeat(`}`, 300)
	many := `{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"anyOf":[{"required":["a"]},{"required":["b"]},{"required":["c"]}]},`, 12), ",") + `]}`
	for _, test := range []struct {
		name, schema   string
		reason         Reason
		keyword, where string
	}{
		{"no JSON", `{"type":`, Invalid, "", ""},
		{"no schema", `[1]`, Invalid, "", "#"},
		{"unknown type", `{"properties":{"a/b":{"type":"text"}}}`, Invalid, "type", "#/properties/a~1b"},
		{"negative count", `{"items":{"minItems":-1}}`, Invalid, "minItems", "#/items"},
		{"bad pattern", `{"properties":{"a":{"pattern":"("}}}`, Invalid, "pattern", "#/properties/a"},
		{"look-behind", `{"pattern":"(?<=a)b"}`, Unsupported, "pattern", "#"},
		{"unique strings", `{"properties":{"a":{"type":"array","items":{"type":"string"},"uniqueItems":true}}}`, Unsupported, "uniqueItems", "#/properties/a"},
		{"unknown dialect", `{"$schema":"http://example.com/x"}`, Unsupported, "$schema", "#"},
		{"nowhere", `{"items":{"$ref":"#/$defs/x"}}`, Unresolved, "$ref", "#/items"},
		{"another document", `{"$ref":"http://example.com/x"}`, Unresolved, "$ref", "#"},
		{"loop", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}}`, Invalid, "$ref", "#/$defs/a"},
		{"many multiples", `{"type":"integer","multipleOf":1000003}`, Unsupported, "multipleOf", "#"},
		{"nothing", `{"type":"string","enum":[1]}`, Empty, "", "#"},
		{"deep", deep, Limit, "", ""},
		{"many ways", many, Limit, "", "#/allOf/6"},
		{"large ways", `{"properties":{"a":{"oneOf":[` + union[1:] + `]}}}`, Limit, "", "#/properties/a/oneOf/0"},
		{"huge number", `{"minimum":1e99999}`, Limit, "", ""},
		{"many counts", `{"contains":{"const":1},"minContains":200000}`, Limit, "contains", "#"},
		{"many names", `{"minProperties":20,"type":"object"}`, Unsupported, "minProperties", "#"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Compile(cfg.New(cfg.Limits{}), []byte(test.schema), Options{})
			var e *Error
			if !asError(err, &e) {
				t.Fatalf("error %v", err)
			}
			if e.Reason != test.reason || e.Keyword != test.keyword || e.Where != test.where {
				t.Errorf("reason %d, keyword %q at %q: %v", e.Reason, e.Keyword, e.Where, e)
			}
			if e.Keyword != "" && !strings.Contains(e.Error(), e.Keyword) {
				t.Errorf("%v", e)
			}
		})
	}
}

// TestLongLists: lists take time in proportion to their length. A limit of the grammar is met at a place.
func TestLongLists(t *testing.T) {
	list := func(from int) string {
		var b strings.Builder
		for i := range 3000 {
			b.WriteString(`,{"a":` + itoa(from+i) + `,"b":[` + itoa(from+i) + `]}`)
		}
		return `{"enum":[` + b.String()[1:] + `]}`
	}
	w, err := newWriter([]byte(`{"oneOf":[`+list(0)+`,`+list(1)+`]}`), Options{}, jsonschema.Draft2020)
	if err != nil {
		t.Fatal(err)
	}
	if !w.accepts(`{"a":0,"b":[0]}`) || !w.accepts(`{"a":3000,"b":[3000]}`) || w.accepts(`{"a":1,"b":[1]}`) {
		t.Error("the lists are not those of one branch alone")
	}
	var own *cfg.LimitError
	_, err = Compile(cfg.New(cfg.Limits{Bytes: 1000}), []byte(`{"type":"object","properties":{"x":`+list(0)+`}}`), Options{})
	if !errors.As(err, &own) || !strings.HasPrefix(err.Error(), "at #/properties/x: ") {
		t.Errorf("error %v", err)
	}
}

// TestLimitOfAutomaton: the error has the place at which an automaton grew too large.
func TestLimitOfAutomaton(t *testing.T) {
	var names strings.Builder
	for i := range 200 {
		names.WriteString(`,"` + strings.Repeat("xa"+string(rune('a'+i%26))+string(rune('a'+i/26)), 3) + `":true`)
	}
	var words *regular.LimitError
	_, err := Compile(cfg.New(cfg.Limits{Nodes: 500}), []byte(`{"items":{"type":"object","properties":{`+names.String()[1:]+`},
		"patternProperties":{"^[a-z]*a[a-z]{3}$":true},"additionalProperties":false}}`), Options{})
	if !errors.As(err, &words) || !strings.HasPrefix(err.Error(), "at #/items: ") {
		t.Errorf("error %v", err)
	}
}

// TestSharing: what many places refer to is compiled once.
func TestSharing(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"$defs":{"d0":{"type":"string"}`)
	for i := 1; i < 60; i++ { // 2^60 places, were references copied
		d := `{"$ref":"#/$defs/d` + itoa(i-1) + `"}`
		b.WriteString(`,"d` + itoa(i) + `":{"type":"object","properties":{"a":` + d + `,"b":` + d + `},"additionalProperties":false}`)
	}
	b.WriteString(`},"$ref":"#/$defs/d59"}`)
	if _, err := newWriter([]byte(b.String()), Options{}, jsonschema.Draft2020); err != nil {
		t.Fatal(err)
	}
}

// FuzzCompile: no schema makes Compile panic, and what it writes is JSON.
func FuzzCompile(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`))
	f.Add([]byte(`{"oneOf":[{"not":{"type":"string"}},{"enum":[1,"a",{"b":[]}]}],"unevaluatedItems":false}`))
	f.Add([]byte(`{"$id":"http://a/b","$ref":"c#d","$defs":{"x":{"$id":"c","$anchor":"d","pattern":"a*"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b := cfg.New(cfg.Limits{Nodes: 1 << 14})
		e, err := Compile(b, text, Options{})
		if err != nil {
			return
		}
		if g, err := b.Grammar(e); err == nil {
			g.NewMachine().Start()
		}
	})
}
