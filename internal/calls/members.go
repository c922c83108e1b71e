package calls

import (
	"fmt"
	"slices"

	"github.com/spillway/spillway/internal/grammar/schema"
)

// A member is one that an object may have.
type member struct {
	name     string
	value    *schema.Schema
	required bool
}

// together are the schemas that apply to a value at once.
func together(s *schema.Schema) []*schema.Schema {
	out := []*schema.Schema{s}
	for i := 0; i < len(out); i++ {
		if out[i].Ref != nil && !slices.Contains(out, out[i].Ref) {
			out = append(out, out[i].Ref)
		}
		for _, part := range out[i].AllOf {
			if !slices.Contains(out, part) {
				out = append(out, part)
			}
		}
	}
	return out
}

// members are the members of objects of a schema in their order, and the schema of others where none are listed; nil:
// there are no others. Objects of the schema with members that it does not list are left out where it lists some.
func (t *tool) members(s *schema.Schema) ([]member, *schema.Schema, error) {
	if !may(s, schema.TypeObject) {
		return nil, nil, noValue(s)
	}
	parts := together(s)
	names, required, err := namesOf(parts)
	if err != nil {
		return nil, nil, err
	}
	var out []member
	for _, name := range names {
		value, ok := t.valueOf(s, parts, name)
		if !ok && required[name] {
			return nil, nil, noValue(s)
		}
		if ok {
			out = append(out, member{name, value, required[name]})
		}
	}
	if err := t.count(parts, len(required)); err != nil {
		return nil, nil, err
	}
	others, ok := t.valueOf(s, parts, "")
	if !ok || slices.ContainsFunc(parts, func(p *schema.Schema) bool { return len(p.Properties) > 0 }) {
		return out, nil, nil
	}
	return out, others, nil
}

// namesOf are the names that schemas list, and after them those that they only ask for.
func namesOf(parts []*schema.Schema) (names []string, required map[string]bool, err error) {
	required = map[string]bool{}
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, p := range parts {
		if keyword := hindrance(p); keyword != "" {
			return nil, nil, refuse(p, keyword)
		}
		for _, x := range p.Properties {
			add(x.Name)
		}
	}
	for _, p := range parts {
		for _, name := range p.Required {
			add(name)
			required[name] = true
		}
	}
	return names, required, nil
}

// valueOf is the schema of a member; "" is one that is not listed. There may be none.
func (t *tool) valueOf(s *schema.Schema, parts []*schema.Schema, name string) (*schema.Schema, bool) {
	var all []*schema.Schema
	for _, p := range parts {
		i := slices.IndexFunc(p.Properties, func(x schema.Property) bool { return x.Name == name && name != "" })
		switch {
		case i >= 0:
			all = append(all, p.Properties[i].Schema)
		case p.AdditionalProperties != nil:
			all = append(all, p.AdditionalProperties)
		case p.UnevaluatedProperties != nil && !slices.ContainsFunc(parts, func(q *schema.Schema) bool { return lists(q, name) }):
			all = append(all, p.UnevaluatedProperties)
		}
	}
	for _, one := range all {
		if one.Bool != nil && !*one.Bool {
			return nil, false
		}
	}
	switch len(all) {
	case 0:
		return t.any, true
	case 1:
		return all[0], true
	}
	both := t.node(s)
	both.AllOf = all
	return both, true
}

func lists(s *schema.Schema, name string) bool {
	return s.AdditionalProperties != nil || slices.ContainsFunc(s.Properties, func(x schema.Property) bool { return x.Name == name })
}

// count says whether bounds on the number of members hold however the others are left out.
func (t *tool) count(parts []*schema.Schema, required int) error {
	for _, p := range parts {
		if p.MinProperties > required {
			return refuse(p, "minProperties")
		}
		if n := p.MaxProperties; n >= 0 && n < len(p.Properties) {
			return refuse(p, "maxProperties")
		}
	}
	return nil
}

// hindrance is a keyword for which the members of an object cannot be told one by one.
func hindrance(s *schema.Schema) string {
	switch {
	case s.Bool != nil && !*s.Bool:
		return "false"
	case s.MaxProperties >= 0 && len(s.Properties) == 0:
		return "maxProperties"
	case len(s.PatternProperties) > 0:
		return "patternProperties"
	case s.PropertyNames != nil:
		return "propertyNames"
	case len(s.DependentRequired) > 0:
		return "dependentRequired"
	case len(s.DependentSchemas) > 0:
		return "dependentSchemas"
	}
	return choice(s)
}

// choice is a keyword that makes values depend on each other.
func choice(s *schema.Schema) string {
	switch {
	case s.Enum != nil:
		return "enum"
	case s.Const != nil:
		return "const"
	case s.AnyOf != nil:
		return "anyOf"
	case s.OneOf != nil:
		return "oneOf"
	case s.Not != nil:
		return "not"
	case s.If != nil:
		return "if"
	}
	return ""
}

func refuse(s *schema.Schema, keyword string) error {
	return schema.Refuse(s, keyword, "the dialect cannot write arguments that it holds for")
}

// badKey says that a key cannot be written.
func badKey(s *schema.Schema, key string) error {
	return &schema.Error{Reason: schema.Unsupported, Keyword: "properties", Where: s.Where, Detail: fmt.Sprintf("the dialect cannot write an argument of the name %.100q", key)}
}
