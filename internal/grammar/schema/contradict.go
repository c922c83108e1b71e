package schema

// contradict looks for a required property that has no value if both alternatives hold. It sees what
// most alternatives of real schemas exclude each other by, before they are merged.
func (c *compiler) contradict(x, y *alt) (bool, error) {
	if len(x.objects) == 0 || len(y.objects) == 0 {
		return false, nil
	}
	parts := join(x.objects, y.objects)
	seen := map[string]bool{}
	for _, p := range parts {
		for _, name := range p.required {
			if seen[name] || !touches(x.objects, name) || !touches(y.objects, name) {
				continue
			}
			seen[name] = true
			if empty, err := c.noValue(parts, name); empty || err != nil {
				return empty, err
			}
		}
	}
	return false, nil
}

// touches says whether parts may say something of the values of a property.
func touches(parts []*objectPart, name string) bool {
	for _, p := range parts {
		if p.values[name] != nil || p.rest != nil || p.patterns != nil || p.keys != nil {
			return true
		}
	}
	return false
}

// noValue says whether a property is known to have no value that satisfies all parts.
func (c *compiler) noValue(parts []*objectPart, name string) (bool, error) {
	var all []*conj
	for _, p := range parts {
		k, err := c.valueOf(p, name)
		if err != nil {
			return false, err
		}
		if k == c.never {
			return true, nil
		}
		if k != c.free {
			all = append(all, k)
		}
	}
	if empty, known := c.noListed(all); known {
		return empty, nil
	}
	value := c.free
	for _, k := range all {
		var err error
		if value, err = c.and(value, k); err != nil {
			return false, err
		}
	}
	return c.isEmpty(value)
}

// noListed answers for lists of values, as of const and enum, and their contraries; known says that it can.
func (c *compiler) noListed(all []*conj) (empty, known bool) {
	var values []*Value
	listed := false
	for _, k := range all {
		for _, l := range k.lits {
			s := c.doc.Schemas[l>>1]
			if l.negated() || s.lists() == nil {
				continue
			}
			for _, list := range s.lists() {
				if listed {
					list = common(values, list)
				}
				values, listed = list, true
			}
		}
	}
	if !listed {
		return false, false
	}
	left := 0
	for _, v := range values {
		excluded := false
		for _, k := range all {
			excluded = excluded || c.excludes(k, v)
		}
		if !excluded {
			left++
		}
	}
	return left == 0, left == 0 || len(all) == 1
}

// excludes says whether a value is in a list that must not hold.
func (c *compiler) excludes(k *conj, v *Value) bool {
	for _, l := range k.lits {
		s := c.doc.Schemas[l>>1]
		if l.negated() && s.isList() && isOneOf(v, s.lists()[0]) {
			return true
		}
	}
	return false
}

// isList says whether a schema is nothing but one enum or const.
func (s *Schema) isList() bool {
	only := *s
	only.Enum, only.Const = nil, nil
	return len(s.lists()) == 1 && !only.hasAssertions() && len(s.parts()) == 0 && s.AnyOf == nil && s.OneOf == nil &&
		s.If == nil && len(s.DependentSchemas) == 0
}
