package schema

import "math/big"

var one = big.NewRat(1, 1)

// ownAlt is what the keywords of s itself ask of a value of type t, nil if nothing can satisfy them.
func (c *compiler) ownAlt(s *Schema, annotate bool, t Types) (*alt, error) {
	x := &alt{t: t}
	if s.Enum != nil {
		x.list(s.Enum)
	}
	if s.Const != nil {
		x.list([]*Value{s.Const})
	}
	if x.listed && len(x.values) == 0 {
		return nil, nil
	}
	var err error
	switch t {
	case TypeNumber:
		x.numbers = ownNumbers(s)
	case TypeString:
		for _, keyword := range s.stringKeywords() {
			x.strings = append(x.strings, stringPart{s, keyword, false})
		}
	case TypeArray:
		if s.hasArray() {
			x.arrays, err = c.ownArray(s, annotate)
		}
	case TypeObject:
		if s.hasObject() {
			x.objects, err = c.ownObject(s, annotate)
		}
	}
	return x, err
}

// list keeps those values that have the alternative's type.
func (x *alt) list(values []*Value) {
	var of []*Value
	seen := map[string]bool{}
	for _, v := range values {
		if v.typeOf() != x.t || seen[v.key()] {
			continue
		}
		seen[v.key()] = true
		of = append(of, v)
	}
	if x.listed {
		of = common(x.values, of)
	}
	x.values, x.listed = of, true
}

func (v *Value) typeOf() Types {
	switch v.Kind {
	case Null:
		return TypeNull
	case Boolean:
		return TypeBoolean
	case Number:
		return TypeNumber
	case String:
		return TypeString
	case Array:
		return TypeArray
	}
	return TypeObject
}

func ownNumbers(s *Schema) []numberPart {
	var out []numberPart
	if s.Types&TypeNumber == 0 {
		out = append(out, numberPart{s: s, step: one})
	}
	if s.Minimum != nil || s.Maximum != nil {
		out = append(out, numberPart{s: s, min: s.Minimum, max: s.Maximum})
	}
	if s.MultipleOf != nil {
		out = append(out, numberPart{s: s, step: s.MultipleOf})
	}
	return out
}

func (s *Schema) stringKeywords() []string {
	var out []string
	if s.MinLength > 0 {
		out = append(out, "minLength")
	}
	if s.MaxLength >= 0 {
		out = append(out, "maxLength")
	}
	if s.Pattern != nil {
		out = append(out, "pattern")
	}
	if s.Format != "" {
		out = append(out, "format")
	}
	return out
}

func (c *compiler) ownArray(s *Schema, annotate bool) ([]*arrayPart, error) {
	out := &arrayPart{s: s, min: max(s.MinItems, 0), max: s.MaxItems, unique: s.UniqueItems, annotates: annotate}
	for _, item := range s.PrefixItems {
		v, err := c.of(item, false)
		if err != nil {
			return nil, err
		}
		out.prefix = append(out.prefix, v)
	}
	var err error
	if s.Items != nil {
		if out.rest, err = c.of(s.Items, false); err != nil {
			return nil, err
		}
	}
	if s.Contains == nil {
		return []*arrayPart{out}, nil
	}
	yes, err := c.contain(s, s.Contains, s.MinContains, s.MaxContains)
	out.contains = []contain{yes}
	return []*arrayPart{out}, err
}

// contain asks for least to most items that satisfy item.
func (c *compiler) contain(s, item *Schema, least, most int) (contain, error) {
	value, err := c.of(item, false)
	if err != nil {
		return contain{}, err
	}
	other, err := c.of(item, true)
	return contain{s: s, value: value, other: other, min: least, max: most}, err
}

func (c *compiler) ownObject(s *Schema, annotate bool) ([]*objectPart, error) {
	out := &objectPart{s: s, required: s.Required, keys: s.PropertyNames, min: max(s.MinProperties, 0),
		max: s.MaxProperties, annotates: annotate}
	if len(s.Properties) > 0 {
		out.names = make([]string, len(s.Properties))
		out.values = make(map[string]*conj, len(s.Properties))
	}
	var err error
	for i, p := range s.Properties {
		out.names[i] = p.Name
		if out.values[p.Name], err = c.of(p.Schema, false); err != nil {
			return nil, err
		}
	}
	for _, p := range s.PatternProperties {
		v, err := c.of(p.Schema, false)
		if err != nil {
			return nil, err
		}
		out.patterns = append(out.patterns, patternPart{p.Name, v})
	}
	if s.AdditionalProperties != nil {
		out.rest, err = c.of(s.AdditionalProperties, false)
	}
	return []*objectPart{out}, err
}

// addUnevaluated applies unevaluatedProperties or unevaluatedItems of s to what each of its
// alternatives leaves unevaluated.
func (c *compiler) addUnevaluated(s *Schema, t Types, alts []*alt) ([]*alt, error) {
	out := make([]*alt, 0, len(alts))
	for _, x := range alts {
		y := *x
		if t == TypeObject {
			part, err := c.unevaluatedProperties(s, x)
			if err != nil {
				return nil, err
			}
			y.objects = join(x.objects, part)
		} else {
			part, err := c.unevaluatedItems(s, x)
			if err != nil {
				return nil, err
			}
			y.arrays = join(x.arrays, part)
		}
		out = append(out, &y)
	}
	return out, nil
}

func (c *compiler) unevaluatedProperties(s *Schema, x *alt) ([]*objectPart, error) {
	value, err := c.of(s.UnevaluatedProperties, false)
	if err != nil {
		return nil, err
	}
	out := &objectPart{s: s, rest: value, max: -1, annotates: true, values: map[string]*conj{}}
	for _, p := range x.objects {
		if !p.annotates {
			continue
		}
		if p.rest != nil {
			return nil, nil // everything is evaluated
		}
		for _, name := range p.names {
			if out.values[name] == nil {
				out.names = append(out.names, name)
				out.values[name] = c.free
			}
		}
		for _, pattern := range p.patterns {
			out.patterns = append(out.patterns, patternPart{pattern.pattern, c.free})
		}
	}
	return []*objectPart{out}, nil
}

func (c *compiler) unevaluatedItems(s *Schema, x *alt) ([]*arrayPart, error) {
	evaluated := 0
	rest := []*Schema{s.UnevaluatedItems}
	for _, p := range x.arrays {
		if !p.annotates {
			continue
		}
		if p.rest != nil {
			return nil, nil
		}
		evaluated = max(evaluated, len(p.prefix))
		for _, k := range p.contains {
			if k.s.Draft >= Draft2020 {
				rest = append(rest, k.s.Contains)
			}
		}
	}
	of := rest[0]
	if len(rest) > 1 {
		of = c.doc.Add(s.Where+"/unevaluatedItems", s.Draft)
		of.AnyOf = rest
	}
	value, err := c.of(of, false)
	if err != nil {
		return nil, err
	}
	out := &arrayPart{s: s, rest: value, max: -1, annotates: true}
	for range evaluated {
		out.prefix = append(out.prefix, c.free)
	}
	return []*arrayPart{out}, nil
}
