package schema

// withoutValue excludes a single array or object: another length, or another value at one place.
func (c *compiler) withoutValue(x *alt) ([]*form, error) {
	s := c.literal(x.exclude[0])
	rest := *x
	rest.exclude = x.exclude[1:]
	not, err := c.expand(s, true, false, x.t)
	if err != nil {
		return nil, err
	}
	both, err := c.cross(s, []*alt{&rest}, not)
	if err != nil {
		return nil, err
	}
	return c.finishAll(both)
}

// finishAll is the forms of several alternatives.
func (c *compiler) finishAll(alts []*alt) ([]*form, error) {
	var out []*form
	for _, x := range alts {
		forms, err := c.finish(x)
		if err != nil {
			return nil, err
		}
		out = append(out, forms...)
	}
	return out, nil
}

// literal is a schema of exactly one array or object, written out in keywords.
func (c *compiler) literal(v *Value) *Schema {
	if s := c.literals[v]; s != nil {
		return s
	}
	s := c.doc.Add("enum", Draft2020)
	c.literals[v] = s
	no := false
	not := c.doc.Add("enum", Draft2020)
	not.Bool = &no
	constant := func(v *Value) *Schema {
		t := c.doc.Add("enum", Draft2020)
		t.Const = v
		return t
	}
	if v.Kind == Array {
		s.MinItems, s.Items = len(v.Items), not
		for _, item := range v.Items {
			s.PrefixItems = append(s.PrefixItems, constant(item))
		}
		return s
	}
	s.AdditionalProperties = not
	for _, m := range v.Members {
		s.Properties = append(s.Properties, Property{m.Name, constant(m.Value)})
		s.Required = append(s.Required, m.Name)
	}
	return s
}
