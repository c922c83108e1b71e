package schema

// expandNegation gives the alternatives of values of type t that do not satisfy s: for each of its
// constraints those that break it.
func (c *compiler) expandNegation(s *Schema, t Types) ([]*alt, error) {
	if !s.hasType(t) {
		return free(t), nil
	}
	if s.UnevaluatedProperties != nil && t == TypeObject {
		return nil, Refuse(s, "unevaluatedProperties", "cannot be negated")
	}
	if s.UnevaluatedItems != nil && t == TypeArray {
		return nil, Refuse(s, "unevaluatedItems", "cannot be negated")
	}
	out, err := c.negateOwn(s, t)
	if err != nil {
		return nil, err
	}
	for _, x := range out {
		if x.isFree() {
			return free(t), nil
		}
	}
	add := func(list []*alt, err error) error {
		out = append(out, list...)
		return err
	}
	if err := c.negateCombinations(s, t, add); err != nil {
		return nil, err
	}
	if len(out) > maxAlts {
		return nil, &Error{Limit, "", s.Where, "its negation has more than " + itoa(maxAlts) + " alternatives"}
	}
	return withFree(out), nil
}

// negateCombinations breaks one of the schemas that s applies to the same value each.
func (c *compiler) negateCombinations(s *Schema, t Types, add func([]*alt, error) error) error {
	for _, p := range s.parts() {
		if err := add(c.expand(p.schema, !p.negated, false, t)); err != nil {
			return err
		}
	}
	if s.AnyOf != nil {
		if err := add(c.noneOf(s, s.AnyOf, t)); err != nil {
			return err
		}
	}
	if s.OneOf != nil {
		if err := add(c.negateOne(s, t)); err != nil {
			return err
		}
	}
	if s.If != nil {
		if err := c.negateIf(s, t, add); err != nil {
			return err
		}
	}
	if t == TypeObject {
		if err := c.negateDependents(s, add); err != nil {
			return err
		}
	}
	return nil
}

// noneOf is the values that satisfy no schema of a list.
func (c *compiler) noneOf(s *Schema, list []*Schema, t Types) ([]*alt, error) {
	out := free(t)
	for _, b := range list {
		no, err := c.expand(b, true, false, t)
		if err != nil {
			return nil, err
		}
		if out, err = c.cross(s, out, no); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// negateOne is the values that satisfy no branch of oneOf, or two of them.
func (c *compiler) negateOne(s *Schema, t Types) ([]*alt, error) {
	out, err := c.noneOf(s, s.OneOf, t)
	if err != nil {
		return nil, err
	}
	for i := range s.OneOf {
		a, err := c.expand(s.OneOf[i], false, false, t)
		if err != nil {
			return nil, err
		}
		for j := range i {
			b, err := c.expand(s.OneOf[j], false, false, t)
			if err != nil {
				return nil, err
			}
			both, err := c.cross(s, a, b)
			if err != nil {
				return nil, err
			}
			out = append(out, both...)
		}
	}
	return out, nil
}

func (c *compiler) negateIf(s *Schema, t Types, add func([]*alt, error) error) error {
	for _, branch := range []struct {
		negated bool
		then    *Schema
	}{{false, s.Then}, {true, s.Else}} {
		if branch.then == nil {
			continue
		}
		cond, err := c.expand(s.If, branch.negated, false, t)
		if err != nil {
			return err
		}
		no, err := c.expand(branch.then, true, false, t)
		if err != nil {
			return err
		}
		if err := add(c.cross(s, cond, no)); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) negateDependents(s *Schema, add func([]*alt, error) error) error {
	for _, d := range s.DependentSchemas {
		no, err := c.expand(d.Schema, true, false, TypeObject)
		if err != nil {
			return err
		}
		if err := add(c.cross(s, []*alt{c.present(s, d.Name)}, no)); err != nil {
			return err
		}
	}
	for _, d := range s.DependentRequired {
		for _, need := range d.Needs {
			if x := c.present(s, d.Name).and(c.absent(s, need)); x != nil {
				if err := add([]*alt{x}, nil); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// negateOwn breaks one keyword of s itself each.
func (c *compiler) negateOwn(s *Schema, t Types) ([]*alt, error) {
	var out []*alt
	if t == TypeNumber && s.Types&TypeNumber == 0 {
		out = append(out, &alt{t: t, numbers: []numberPart{{s: s, step: one, off: true}}})
	}
	for _, values := range s.lists() {
		x := &alt{t: t}
		x.list(values)
		if len(x.values) == 0 {
			return free(t), nil
		}
		out = append(out, &alt{t: t, exclude: x.values})
	}
	var more []*alt
	var err error
	switch t {
	case TypeNumber:
		more = negateNumbers(s)
	case TypeString:
		for _, keyword := range s.stringKeywords() {
			more = append(more, &alt{t: t, strings: []stringPart{{s, keyword, true}}})
		}
	case TypeArray:
		more, err = c.negateArray(s)
	case TypeObject:
		more, err = c.negateObject(s)
	}
	return append(out, more...), err
}

// lists are the values of enum and const.
func (s *Schema) lists() [][]*Value {
	var out [][]*Value
	if s.Enum != nil {
		out = append(out, s.Enum)
	}
	if s.Const != nil {
		out = append(out, []*Value{s.Const})
	}
	return out
}

func negateNumbers(s *Schema) []*alt {
	var out []*alt
	add := func(p numberPart) { out = append(out, &alt{t: TypeNumber, numbers: []numberPart{p}}) }
	if s.Minimum != nil {
		add(numberPart{s: s, max: &Bound{s.Minimum.Value, !s.Minimum.Exclusive}})
	}
	if s.Maximum != nil {
		add(numberPart{s: s, min: &Bound{s.Maximum.Value, !s.Maximum.Exclusive}})
	}
	if s.MultipleOf != nil {
		add(numberPart{s: s, step: s.MultipleOf, off: true})
	}
	return out
}

func (c *compiler) negateArray(s *Schema) ([]*alt, error) {
	var out []*alt
	add := func(p arrayPart) {
		p.s = s
		out = append(out, &alt{t: TypeArray, arrays: []*arrayPart{&p}})
	}
	if s.UniqueItems {
		return nil, Refuse(s, "uniqueItems", "cannot be negated")
	}
	if s.MinItems > 0 {
		add(arrayPart{max: s.MinItems - 1})
	}
	if s.MaxItems >= 0 {
		add(arrayPart{min: s.MaxItems + 1, max: -1})
	}
	for i, item := range s.PrefixItems {
		no, err := c.of(item, true)
		if err != nil {
			return nil, err
		}
		p := arrayPart{min: i + 1, max: -1}
		for range i {
			p.prefix = append(p.prefix, c.free)
		}
		p.prefix = append(p.prefix, no)
		add(p)
	}
	contains, err := c.negateItems(s)
	for _, k := range contains {
		add(arrayPart{min: k.from, max: -1, contains: []contain{k}})
	}
	return out, err
}

// negateItems asks for an item that breaks items, and for fewer or more than contains does.
func (c *compiler) negateItems(s *Schema) ([]contain, error) {
	var out []contain
	if s.Items != nil {
		k, err := c.contain(s, s.Items, 1, -1)
		if err != nil {
			return nil, err
		}
		k.value, k.other = k.other, k.value
		k.from = len(s.PrefixItems)
		out = append(out, k)
	}
	if s.Contains == nil {
		return out, nil
	}
	if s.MinContains > 0 {
		k, err := c.contain(s, s.Contains, 0, s.MinContains-1)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	if s.MaxContains >= 0 {
		k, err := c.contain(s, s.Contains, s.MaxContains+1, -1)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	return out, nil
}

func (c *compiler) negateObject(s *Schema) ([]*alt, error) {
	var out []*alt
	add := func(p objectPart) {
		p.s = s
		out = append(out, &alt{t: TypeObject, objects: []*objectPart{&p}})
	}
	for _, name := range s.Required {
		out = append(out, c.absent(s, name))
	}
	if s.MinProperties > 0 {
		add(objectPart{max: s.MinProperties - 1})
	}
	if s.MaxProperties >= 0 {
		add(objectPart{min: s.MaxProperties + 1, max: -1})
	}
	for _, p := range s.Properties {
		no, err := c.of(p.Schema, true)
		if err != nil {
			return nil, err
		}
		if no != c.never {
			add(objectPart{names: []string{p.Name}, values: map[string]*conj{p.Name: no}, required: []string{p.Name}, max: -1})
		}
	}
	some, err := c.negateNames(s)
	if err != nil {
		return nil, err
	}
	for _, p := range some {
		add(objectPart{max: -1, some: p})
	}
	return out, nil
}

// negateNames asks for a property that breaks what s says of sets of names.
func (c *compiler) negateNames(s *Schema) ([]*somePart, error) {
	var out []*somePart
	for _, p := range s.PatternProperties {
		no, err := c.of(p.Schema, true)
		if err != nil {
			return nil, err
		}
		if no != c.never {
			out = append(out, &somePart{s: s, keyword: "patternProperties", value: no, pattern: &p.Name})
		}
	}
	if s.AdditionalProperties != nil {
		no, err := c.of(s.AdditionalProperties, true)
		if err != nil {
			return nil, err
		}
		part := &somePart{s: s, keyword: "additionalProperties", value: no}
		for _, p := range s.Properties {
			part.names = append(part.names, p.Name)
		}
		for _, p := range s.PatternProperties {
			part.patterns = append(part.patterns, patternPart{pattern: p.Name})
		}
		if no != c.never {
			out = append(out, part)
		}
	}
	if s.PropertyNames != nil {
		out = append(out, &somePart{s: s, keyword: "propertyNames", value: c.free, keys: s.PropertyNames})
	}
	return out, nil
}
