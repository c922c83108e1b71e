package schema

import (
	"github.com/spillway/spillway/internal/grammar/regular"
)

// objectForm is objects whose properties are merged over all parts.
type objectForm struct {
	properties []property
	others     []class // of names that are not in properties, apart from each other
	last       *class  // a property that must be there, after all others
	min, max   int     // max < 0: no bound
	minAt      *Schema // where min stands
}

// property is one name with a value, which is not known to be empty.
type property struct {
	name     string
	value    *conj
	required bool
}

// class is a set of names with one kind of value.
type class struct {
	names  *regular.DFA // nil: all texts
	except []string     // but not these; only where names is nil
	value  *conj
}

// Limits of objects.
const (
	maxProperties = 5_000
	maxClasses    = 64
)

func (c *compiler) finishObject(x *alt) ([]*form, error) {
	if len(x.exclude) > 0 {
		return c.withoutValue(x)
	}
	for i, p := range x.objects {
		if p.some != nil {
			return c.finishSome(x, i)
		}
	}
	o, err := c.mergeObject(x.objects)
	if o == nil || err != nil {
		return nil, err
	}
	return []*form{{t: TypeObject, object: o}}, nil
}

// mergeObject is nil if there is no such object.
func (c *compiler) mergeObject(parts []*objectPart) (*objectForm, error) {
	o := &objectForm{max: -1}
	for _, p := range parts {
		if p.min > o.min {
			o.min, o.minAt = p.min, p.s
		}
		if p.max >= 0 && (o.max < 0 || p.max < o.max) {
			o.max = p.max
		}
	}
	if o.max >= 0 && o.min > o.max {
		return nil, nil
	}
	possible, err := c.mergeNames(o, parts)
	if !possible || err != nil {
		return nil, err
	}
	if o.others, err = c.classes(parts); err != nil {
		return nil, err
	}
	required := 0
	for _, p := range o.properties {
		if p.required {
			required++
		}
	}
	if o.max >= 0 && required > o.max || o.min > len(o.properties) && len(o.others) == 0 {
		return nil, nil
	}
	if o.min <= required {
		o.min = 0
	}
	return o, nil
}

// mergeNames sets the properties in the order in which the parts name them.
func (c *compiler) mergeNames(o *objectForm, parts []*objectPart) (possible bool, err error) {
	names, required := namesOf(parts)
	if len(names) > maxProperties {
		return false, &Error{Limit, "properties", parts[0].s.Where, "more than " + itoa(maxProperties) + " properties"}
	}
	for _, name := range names {
		if err := c.step(parts[0].s, 1); err != nil {
			return false, err
		}
		value := c.free
		for _, p := range parts {
			k, err := c.valueOf(p, name)
			if err != nil {
				return false, err
			}
			if value, err = c.and(value, k); err != nil {
				return false, err
			}
		}
		empty, err := c.isEmpty(value)
		if err != nil {
			return false, err
		}
		if empty && required[name] {
			return false, nil
		}
		if !empty {
			o.properties = append(o.properties, property{name, value, required[name]})
		}
	}
	return true, nil
}

// namesOf are all names of the parts, and which are required.
func namesOf(parts []*objectPart) (names []string, required map[string]bool) {
	seen := map[string]bool{}
	required = map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, p := range parts {
		for _, name := range p.names {
			add(name)
		}
		for _, name := range p.required {
			required[name] = true
		}
	}
	for _, p := range parts {
		for _, name := range p.required {
			add(name)
		}
	}
	return names, required
}

// classes are the sets of names outside of properties, by what their values satisfy.
func (c *compiler) classes(parts []*objectPart) ([]class, error) {
	out := []class{{value: c.free}}
	var err error
	for _, p := range parts {
		if p.rest == c.never && len(p.patterns) == 0 {
			return nil, nil
		}
	}
	for _, p := range parts {
		if out, err = c.split(out, p); err != nil {
			return nil, err
		}
		if len(out) > maxClasses {
			return nil, &Error{Limit, "patternProperties", p.s.Where, "the patterns overlap in more than " + itoa(maxClasses) + " ways"}
		}
	}
	names, _ := namesOf(parts)
	var kept []class
	for _, k := range out {
		if k.names == nil {
			k.except = names
		} else if k.names, err = c.without(k.names, names); err != nil {
			return nil, err
		} else if k.names.Empty() {
			continue
		}
		empty, err := c.isEmpty(k.value)
		if err != nil {
			return nil, err
		}
		if !empty {
			kept = append(kept, k)
		}
	}
	return kept, nil
}

// split cuts classes by what one part says of their names.
func (c *compiler) split(in []class, p *objectPart) ([]class, error) {
	if p.keys != nil {
		keys, err := c.keyLanguage(p.keys, false)
		if err != nil {
			return nil, err
		}
		for i := range in {
			if in[i].names, err = c.intersect(in[i].names, keys); err != nil {
				return nil, patternError(err, p.s, "propertyNames")
			}
		}
	}
	var out []class
	for _, k := range in {
		pieces, err := c.splitClass(k, p)
		if err != nil {
			return nil, err
		}
		out = append(out, pieces...)
	}
	return out, nil
}

// splitClass cuts a class by the patterns of a part; what no pattern has satisfies rest.
func (c *compiler) splitClass(k class, p *objectPart) ([]class, error) {
	type piece struct {
		class
		found bool
	}
	pieces := []piece{{k, false}}
	for _, pattern := range p.patterns {
		d, err := c.keyPattern(p.s, pattern.pattern)
		if err != nil {
			return nil, err
		}
		var next []piece
		for _, x := range pieces {
			yes, no := x, x
			if yes.names, err = c.intersect(x.names, d); err != nil {
				return nil, patternError(err, p.s, "patternProperties")
			}
			if no.names, err = c.minus(x.names, d); err != nil {
				return nil, patternError(err, p.s, "patternProperties")
			}
			if yes.value, err = c.and(x.value, pattern.value); err != nil {
				return nil, err
			}
			yes.found = true
			for _, y := range []piece{yes, no} {
				if !y.names.Empty() {
					next = append(next, y)
				}
			}
		}
		if pieces = next; len(pieces) > maxClasses {
			break // the caller refuses
		}
	}
	var out []class
	var err error
	for _, x := range pieces {
		if !x.found && p.rest != nil {
			if x.value, err = c.and(x.value, p.rest); err != nil {
				return nil, err
			}
		}
		out = append(out, x.class)
	}
	return out, nil
}

// keyPattern is the language of a pattern of patternProperties.
func (c *compiler) keyPattern(s *Schema, pattern string) (*regular.DFA, error) {
	d, err := c.pattern(pattern)
	if err != nil {
		return nil, patternError(err, s, "patternProperties")
	}
	return d, nil
}

// keyLanguage is the names that satisfy, or do not satisfy, a schema; nil is all names.
func (c *compiler) keyLanguage(s *Schema, negated bool) (*regular.DFA, error) {
	k, err := c.of(s, negated)
	if err != nil {
		return nil, err
	}
	if d, ok := c.keys[k]; ok {
		return d, nil
	}
	alts, err := c.altsOf(k, TypeString)
	if err != nil {
		return nil, err
	}
	forms, err := c.finishAll(alts)
	if err != nil {
		return nil, err
	}
	var all []*regular.DFA
	for _, f := range forms {
		d, err := c.formLanguage(f)
		if err != nil {
			return nil, patternError(err, s, "propertyNames")
		}
		if d == nil {
			c.keys[k] = nil
			return nil, nil
		}
		all = append(all, d)
	}
	d, err := c.words.Union(all...)
	if err != nil {
		return nil, patternError(err, s, "propertyNames")
	}
	c.keys[k] = d
	return d, nil
}

// formLanguage is the strings of a form, nil for all.
func (c *compiler) formLanguage(f *form) (*regular.DFA, error) {
	if f.listed {
		return c.words.Literal(textsOf(f.values)...)
	}
	if f.text.char != nil {
		return c.words.Repeat(f.text.char, f.text.min, f.text.max)
	}
	if f.text.language != nil {
		return f.text.language, nil
	}
	if f.text.min == 0 && f.text.max < 0 {
		return nil, nil
	}
	return c.length(f.text.min, f.text.max)
}
