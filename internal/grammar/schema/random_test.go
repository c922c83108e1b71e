package schema

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maker makes random schemas out of few names, values and patterns, so that keywords meet.
type maker struct{ r *rand.Rand }

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// pool are instances that random schemas tell apart.
var pool = []string{
	`null`, `true`, `false`, `0`, `1`, `-1`, `2`, `3`, `1.5`, `0.25`, `10`, `""`, `"a"`, `"b"`, `"ab"`, `"abc"`, `"é"`,
	`"2024-02-29"`, `"10.0.0.1"`, `[]`, `[1]`, `[1,2]`, `["a"]`, `["a",1]`, `["a","b"]`, `[1,1]`, `[true,false]`, `[[],[1]]`, `[null,1,"a"]`,
	`{}`, `{"a":1}`, `{"a":"a"}`, `{"b":1}`, `{"a":1,"b":2}`, `{"a":"a","b":true}`, `{"a":1,"c":"x"}`, `{"c":null}`,
	`{"a":{"a":1}}`, `{"a":1,"b":2,"c":3}`, `{"b":[1],"c":{}}`, `{"a":null,"ab":1}`,
}

var patterns = []string{"^a", "b$", "^[a-c]{1,2}$", "^.$", "[^a]", "^(a|bc)*$", "c"}

func (m maker) value() any {
	var v any
	if err := json.Unmarshal([]byte(pick(m.r, pool...)), &v); err != nil {
		panic(err)
	}
	return v
}

func (m maker) name() string { return pick(m.r, "a", "b", "c", "ab") }

func (m maker) schema(depth int) any {
	if depth <= 0 || m.r.IntN(14) == 0 {
		return pick[any](m.r, true, true, false, map[string]any{}, map[string]any{"$ref": "#/$defs/d"}, map[string]any{"type": m.typeName()})
	}
	s := map[string]any{}
	if m.r.IntN(3) > 0 {
		s["type"] = m.typeName()
		if m.r.IntN(4) == 0 {
			s["type"] = []any{m.typeName(), "null"}
			if s["type"].([]any)[0] == "null" {
				s["type"] = "null"
			}
		}
	}
	for range 1 + m.r.IntN(3) {
		switch m.r.IntN(6) {
		case 0:
			m.scalars(s)
		case 1, 2:
			m.objects(s, depth-1)
		case 3:
			m.arrays(s, depth-1)
		default:
			m.combine(s, depth-1)
		}
	}
	return s
}

func (m maker) typeName() string {
	return pick(m.r, "null", "boolean", "integer", "number", "string", "array", "object", "object", "object")
}

func (m maker) scalars(s map[string]any) {
	switch m.r.IntN(10) {
	case 0:
		s["enum"] = []any{m.value(), m.value(), m.value()}
	case 1:
		s["const"] = m.value()
	case 2:
		s["minimum"] = pick(m.r, -2, 0, 1.5, 3)
	case 3:
		s["exclusiveMaximum"] = pick(m.r, 0, 2, 10, 99.5)
	case 4:
		s["multipleOf"] = pick(m.r, 2, 0.5, 3, 0.01, 1.5)
	case 5:
		s["minLength"] = m.r.IntN(3)
	case 6:
		s["maxLength"] = m.r.IntN(4)
	case 7:
		s["pattern"] = pick(m.r, patterns...)
	case 8:
		s["format"] = pick(m.r, "date", "ipv4", "uuid", "time", "email")
	case 9:
		s["maximum"] = pick(m.r, 1, 2.5, 7)
	}
}

func (m maker) objects(s map[string]any, depth int) {
	switch m.r.IntN(12) {
	case 0, 1, 2:
		props := map[string]any{}
		for range 1 + m.r.IntN(3) {
			props[m.name()] = m.schema(depth)
		}
		s["properties"] = props
	case 3, 4:
		required := []any{m.name()}
		if n := m.name(); m.r.IntN(2) == 0 && n != required[0] {
			required = append(required, n)
		}
		s["required"] = required
	case 5:
		s["additionalProperties"] = pick[any](m.r, false, m.schema(depth))
	case 6:
		s["patternProperties"] = map[string]any{pick(m.r, patterns...): m.schema(depth)}
	case 7:
		s["propertyNames"] = map[string]any{pick(m.r, "maxLength", "minLength"): m.r.IntN(3)}
	case 8:
		s["minProperties"] = m.r.IntN(3)
	case 9:
		s["maxProperties"] = m.r.IntN(4)
	case 10:
		s["dependentRequired"] = map[string]any{m.name(): []any{m.name()}}
		if m.r.IntN(2) == 0 {
			s["dependentSchemas"] = map[string]any{m.name(): m.schema(depth)}
		}
	case 11:
		s["unevaluatedProperties"] = pick[any](m.r, false, m.schema(depth))
	}
}

func (m maker) arrays(s map[string]any, depth int) {
	switch m.r.IntN(7) {
	case 0:
		s["items"] = m.schema(depth)
	case 1:
		s["prefixItems"] = []any{m.schema(depth), m.schema(depth)}
	case 2:
		s["contains"] = m.schema(depth)
		if m.r.IntN(3) == 0 {
			s["maxContains"] = 1 + m.r.IntN(2)
		}
		if m.r.IntN(3) == 0 {
			s["minContains"] = m.r.IntN(3)
		}
	case 3:
		s["minItems"] = m.r.IntN(3)
	case 4:
		s["maxItems"] = m.r.IntN(4)
	case 5:
		s["uniqueItems"] = true
	case 6:
		s["unevaluatedItems"] = pick[any](m.r, false, m.schema(depth))
	}
}

func (m maker) combine(s map[string]any, depth int) {
	list := func() []any {
		out := []any{m.schema(depth), m.schema(depth)}
		if m.r.IntN(3) == 0 {
			out = append(out, m.schema(depth))
		}
		return out
	}
	switch m.r.IntN(7) {
	case 0:
		s["anyOf"] = list()
	case 1:
		s["oneOf"] = list()
	case 2:
		s["allOf"] = list()
	case 3:
		s["not"] = m.schema(depth)
	case 4:
		s["if"] = m.schema(depth)
		s["then"] = m.schema(depth)
		s["else"] = m.schema(depth)
	case 5:
		s["$ref"] = pick(m.r, "#/$defs/d", "#/$defs/e")
	case 6:
		s["oneOf"] = []any{
			map[string]any{"properties": map[string]any{"a": map[string]any{"const": m.value()}}, "required": []any{"a"}},
			map[string]any{"properties": map[string]any{"a": m.schema(depth), "b": m.schema(depth)}, "required": []any{"b"}},
		}
	}
}

// root is a schema with two definitions; e recurs only through properties and items.
func (m maker) root() []byte {
	s, ok := m.schema(3).(map[string]any)
	if !ok {
		s = map[string]any{"allOf": []any{m.schema(3)}}
	}
	s["$defs"] = map[string]any{
		"d": pick[any](m.r, any(map[string]any{"type": "string"}), any(map[string]any{"enum": []any{m.value(), m.value()}}), map[string]any{"type": "object", "properties": map[string]any{"a": true}}),
		"e": map[string]any{"properties": map[string]any{"a": map[string]any{"$ref": "#/$defs/e"}, "b": map[string]any{"type": "integer"}}, "items": map[string]any{"$ref": "#/$defs/e"}},
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return text
}

// TestRandomSchemas writes texts of random schemas; the validator must take all of them. What the
// language has of the pool must be valid, and a schema that is said to have no values has none of it.
func TestRandomSchemas(t *testing.T) {
	want := 10_000
	if testing.Short() {
		want = 600
	}
	m := maker{rand.New(rand.NewPCG(seed(), 12))}
	var n tally
	for i := 0; n.texts < want; i++ {
		text := m.root()
		w, err := newWriter(text, Options{FlexibleSpace: i%4 == 0, MaxSpace: 1}, jsonschema.Draft2020)
		if err != nil {
			n.refuse(t, text, err)
			continue
		}
		n.compiled++
		for range 4 {
			out, done := w.write(m.r, 40, 3000)
			if !done {
				n.long++
				continue
			}
			n.texts++
			if err := w.check(out); err != nil {
				t.Fatalf("schema %s\nwrites %s\n%v", text, out, err)
			}
		}
		n.instances(t, w, text)
	}
	t.Logf("%d compiled, %d empty, %d texts, %d too long; of the pool %d valid, %d written; refused: %v", n.compiled, n.empty, n.texts, n.long, n.valid, n.written, n.refused)
}

type tally struct {
	compiled, empty, texts, long int
	valid, written               int
	refused                      map[string]int
}

func (n *tally) refuse(t *testing.T, text []byte, err error) {
	var e *Error
	if n.refused == nil {
		n.refused = map[string]int{}
	}
	if !asError(err, &e) || e.Reason != Empty {
		if asError(err, &e) && e.Reason == Invalid {
			t.Fatalf("schema %s: %v", text, err)
		}
		n.refused[keywordOf(err)]++
		return
	}
	n.empty++
	valid, err := validator(text, Options{}, jsonschema.Draft2020)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range pool {
		if checkWith(valid, v) == nil {
			t.Fatalf("schema %s\nis said to have no values, but has %s", text, v)
		}
	}
}

func (n *tally) instances(t *testing.T, w *writer, text []byte) {
	for _, v := range pool {
		err := w.check(v)
		if err == nil {
			n.valid++
		}
		if w.accepts(v) {
			n.written++
			if err != nil {
				t.Fatalf("schema %s\nmay write %s\n%v", text, v, err)
			}
		}
	}
}

// seed is fixed, unless the environment asks for another one.
func seed() uint64 {
	n, err := strconv.ParseUint(os.Getenv("SCHEMA_SEED"), 10, 64)
	if err != nil {
		return 11
	}
	return n
}
