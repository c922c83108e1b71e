package dialect

import (
	"slices"
	"strings"

	"github.com/spillway/spillway/internal/chat"
)

// maxRefs bounds how many references and alternatives of a schema are followed.
const maxRefs = 32

// member returns a member of a JSON object, nil of anything else.
func member(v any, key string) any {
	if o, ok := v.(*chat.Object); ok && o != nil {
		return o.Get(key)
	}
	return nil
}

// schema returns the schema of an argument of a tool; nil if it is not known.
func (p *Parser) schema(tool, key string) any {
	t := p.tools[tool]
	if t == nil || t.Parameters == nil {
		return nil
	}
	return p.resolve(tool, property(t.Parameters, key))
}

// property returns the schema of a member of an object.
func property(schema any, key string) any {
	if sub := member(member(schema, "properties"), key); sub != nil {
		return sub
	}
	return member(schema, "additionalProperties")
}

// resolve follows references into the tool's own schema.
func (p *Parser) resolve(tool string, schema any) any {
	for range maxRefs {
		ref, ok := member(schema, "$ref").(string)
		if !ok {
			return schema
		}
		path, local := strings.CutPrefix(ref, "#/")
		if !local {
			return nil
		}
		schema = p.tools[tool].Parameters
		for step := range strings.SplitSeq(path, "/") {
			schema = member(schema, step)
		}
	}
	return nil
}

// types are the JSON types that a schema allows, as far as it says so.
func (p *Parser) types(tool string, schema any) []string {
	var out []string
	budget := maxRefs
	var walk func(schema any)
	walk = func(schema any) {
		s, ok := p.resolve(tool, schema).(*chat.Object)
		if budget--; !ok || budget < 0 {
			return
		}
		out = append(out, direct(s)...)
		for _, key := range []string{"anyOf", "oneOf", "allOf"} {
			list, _ := s.Get(key).([]any)
			for _, sub := range list {
				walk(sub)
			}
		}
	}
	walk(schema)
	return out
}

// direct are the types that a schema itself names, or shows by its values or its parts.
func direct(s *chat.Object) []string {
	switch t := s.Get("type").(type) {
	case string:
		return []string{t}
	case []any:
		var out []string
		for _, name := range t {
			if name, ok := name.(string); ok {
				out = append(out, name)
			}
		}
		return out
	}
	var out []string
	values, _ := s.Get("enum").([]any)
	if constant := s.Get("const"); constant != nil {
		values = append(slices.Clone(values), constant)
	}
	for _, v := range values {
		out = append(out, typeOf(v))
	}
	if s.Get("properties") != nil {
		out = append(out, "object")
	}
	if s.Get("items") != nil {
		out = append(out, "array")
	}
	return out
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case int64, float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// typed gives the text of an argument as JSON by its schema: what may be a string stays one unless it is a value
// of another type that is allowed.
func (p *Parser) typed(tool string, schema any, text string) string {
	types := p.types(tool, schema)
	if len(types) == 0 {
		if value, ok := asJSON(text); ok {
			return value
		}
		return string(quote(nil, text))
	}
	others := slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "string" })
	if len(others) == 0 {
		return string(quote(nil, text))
	}
	value, ok := literal(text)
	if !ok || len(others) < len(types) && !allowed(value, others) {
		return string(quote(nil, text))
	}
	return value
}

// literal reads JSON, else a Python literal.
func literal(text string) (string, bool) {
	if value, ok := asJSON(text); ok {
		return value, true
	}
	return pyJSON(text)
}

// allowed reports whether a JSON value has one of the types.
func allowed(value string, types []string) bool {
	var name string
	switch value[0] {
	case '{':
		name = "object"
	case '[':
		name = "array"
	case '"':
		name = "string"
	case 't', 'f':
		name = "boolean"
	case 'n':
		name = "null"
	default:
		if name = "number"; !strings.ContainsAny(value, ".eE") && slices.Contains(types, "integer") {
			return true
		}
	}
	return slices.Contains(types, name)
}

// argument adds the raw text of an argument by the tool's schema.
func (p *Parser) argument(tool, key, text string) {
	p.member(key, p.typed(tool, p.schema(tool, key), text))
}
