package accept

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/spillway/spillway/internal/grammar/schema"
)

// A maker draws schemas and instances from few names and values, so that they meet.
type maker struct{ *rand.Rand }

func (m maker) pick(from ...string) string { return from[m.IntN(len(from))] }

func (m maker) name() string { return m.pick("a", "b", "ab", "c") }

func (m maker) scalar() string {
	return m.pick("null", "true", "false", "0", "1", "1.0", "2", "-1", "1.5", "3e0", `"a"`, `"ab"`, `"b"`, `""`, `"\u00e9"`, `"2020-01-01"`, "10", "[]", "{}")
}

func (m maker) instance(depth int) string {
	if depth == 0 || m.IntN(3) == 0 {
		return m.scalar()
	}
	var parts []string
	if m.IntN(2) == 0 {
		for range m.IntN(4) {
			parts = append(parts, m.instance(depth-1))
		}
		return "[" + strings.Join(parts, m.pick(",", " ,\n")) + "]"
	}
	used := map[string]bool{}
	for range m.IntN(4) {
		name := m.name()
		if used[name] {
			continue
		}
		used[name] = true
		parts = append(parts, fmt.Sprintf("%q:%s%s", name, m.pick("", " "), m.instance(depth-1)))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (m maker) list(depth int) string {
	var parts []string
	for range 1 + m.IntN(3) {
		parts = append(parts, m.schema(depth))
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func (m maker) properties(depth int, name func() string) string {
	parts := map[string]string{}
	for range m.IntN(3) {
		parts[name()] = m.schema(depth)
	}
	return object(parts)
}

func (m maker) small() string { return fmt.Sprint(m.IntN(4)) }

func (m maker) schema(depth int) string {
	if depth == 0 {
		return m.pick("true", "false", "{}", `{"type":"string"}`, `{"type":"integer"}`, `{"type":["number","null"]}`, `{"const":1}`, `{"enum":["a",1,[]]}`, `{"$ref":"#"}`)
	}
	keywords := map[string]string{}
	for range 1 + m.IntN(4) {
		m.keyword(keywords, depth-1)
	}
	return object(keywords)
}

func object(members map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(members)) {
		out = append(out, fmt.Sprintf("%q:%s", k, members[k]))
	}
	return "{" + strings.Join(out, ",") + "}"
}

func (m maker) keyword(into map[string]string, depth int) {
	switch name := m.pick("type", "enum", "const", "minimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "format",
		"properties", "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties", "maxProperties",
		"dependentRequired", "dependentSchemas", "unevaluatedProperties", "prefixItems", "items", "contains", "minItems", "maxItems",
		"uniqueItems", "unevaluatedItems", "allOf", "anyOf", "oneOf", "not", "if"); name {
	case "type":
		into[name] = m.pick(`"string"`, `"integer"`, `"number"`, `"object"`, `"array"`, `["object","array"]`, `["null","string"]`, `"boolean"`)
	case "enum":
		into[name] = "[" + m.instance(1) + "," + m.instance(1) + "]"
	case "const":
		into[name] = m.instance(1)
	case "minimum", "exclusiveMaximum":
		into[name] = m.pick("0", "1", "1.5", "-1", "2")
	case "multipleOf":
		into[name] = m.pick("1", "0.5", "2", "1.5")
	case "minLength", "maxLength", "minProperties", "maxProperties", "minItems", "maxItems":
		into[name] = m.small()
	case "pattern":
		into[name] = m.pick(`"^a"`, `"b$"`, `"^[a-c]*$"`, `"a|b"`)
	case "format":
		into[name] = m.pick(`"date"`, `"uri"`, `"email"`)
	case "properties", "dependentSchemas":
		into[name] = m.properties(depth, m.name)
	case "patternProperties":
		into[name] = m.properties(depth, func() string { return m.pick("^a", "b", "c$") })
	case "required":
		into[name] = fmt.Sprintf("[%q]", m.name())
	case "dependentRequired":
		into[name] = fmt.Sprintf("{%q:[%q]}", m.name(), m.name())
	case "uniqueItems":
		into[name] = "true"
	case "prefixItems", "allOf", "anyOf", "oneOf":
		into[name] = m.list(depth)
	case "contains":
		into[name] = m.schema(depth)
		if m.IntN(2) == 0 {
			into["minContains"] = m.small()
		}
		if m.IntN(2) == 0 {
			into["maxContains"] = m.small()
		}
	case "if":
		into[name] = m.schema(depth)
		if m.IntN(3) > 0 {
			into["then"] = m.schema(depth)
		}
		if m.IntN(3) > 0 {
			into["else"] = m.schema(depth)
		}
	default:
		into[name] = m.schema(depth)
	}
}

// reference compiles a schema with the validator that is trusted.
func reference(t testing.TB, text string) *jsonschema.Schema {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(text, err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("s.json", v); err != nil {
		t.Fatal(text, err)
	}
	s, err := c.Compile("s.json")
	if err != nil {
		return nil
	}
	return s
}

func TestRandomSchemas(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(11, 12))}
	compared, good, refused := 0, 0, 0
	for range 2500 {
		text := m.schema(1 + m.IntN(3))
		doc, err := schema.Parse([]byte(text), nil)
		if err != nil {
			refused++
			continue
		}
		p, err := Compile(doc, Options{})
		if err != nil {
			t.Fatal(text, err)
		}
		ref := reference(t, text)
		if ref == nil {
			t.Fatalf("%s is no schema for the other validator", text)
		}
		for range 25 {
			instance := m.instance(3)
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(instance)))
			if err != nil {
				t.Fatal(instance, err)
			}
			want, got := ref.Validate(v), p.Check([]byte(instance))
			if (want == nil) != (got == nil) {
				t.Fatalf("schema %s\ninstance %s\ngot %v\nwant %v", text, instance, got, want)
			}
			compared++
			if got == nil {
				good++
			}
			checkPieces(t, text, p, []byte(instance), got)
		}
	}
	t.Logf("%d instances compared, %d of them valid; %d schemas refused", compared, good, refused)
	if good < compared/10 || compared < 30_000 {
		t.Error("the random instances are no test")
	}
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-0.5e+3,"\u00e9\ud83d\ude00\n",null,true,false]}`, `"\ud800"`, `[1,]`, "01", `"` + "\xff" + `"`, `{"a":1,"a":2}`, " 1 ", "1.", "[", "nul", "\"\t\"", "1 2"} {
		f.Add([]byte(seed))
	}
	doc, err := schema.Parse([]byte(`{"uniqueItems":true,"additionalProperties":{"$ref":"#"},"items":{"$ref":"#"},"pattern":"","maxLength":1000}`), nil)
	if err != nil {
		f.Fatal(err)
	}
	p, err := Compile(doc, Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := p.Check(text)
		checkPieces(t, "fuzz", p, text, err)
		// A text is JSON for encoding/json if it is for us; that one also takes double names, bad UTF-8 and depth.
		if err == nil && !json.Valid(text) {
			t.Fatalf("%q is no JSON", text)
		}
		var failure *Failure
		if err != nil {
			failure = err.(*Failure)
			if failure.Offset > int64(len(text)) || failure.Line < 1 || failure.Column < 1 {
				t.Fatalf("%+v of %d bytes", failure, len(text))
			}
		}
		if err != nil && failure.Keyword == "" && json.Valid(text) && bytes.Equal(text, bytes.ToValidUTF8(text, nil)) &&
			!strings.Contains(failure.Detail, "twice") && !strings.Contains(failure.Detail, "nest") && !strings.Contains(failure.Detail, "too long") {
			t.Fatalf("%q is JSON: %v", text, err)
		}
	})
}
