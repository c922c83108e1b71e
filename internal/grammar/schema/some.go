package schema

import "github.com/spillway/spillway/internal/grammar/regular"

// finishSome writes out a part that asks for some property: one of those with a name, or another one.
func (c *compiler) finishSome(x *alt, at int) ([]*form, error) {
	some := x.objects[at].some
	parts := append(append([]*objectPart{}, x.objects[:at]...), x.objects[at+1:]...)
	rest := *x
	rest.objects = parts
	keys, err := c.someKeys(some)
	if err != nil {
		return nil, err
	}
	var out []*form
	names, _ := namesOf(parts)
	for _, name := range names {
		if keys != nil && !keys.Match(name) {
			continue
		}
		part := &objectPart{s: some.s, names: []string{name}, values: map[string]*conj{name: some.value}, required: []string{name}, max: -1}
		y := rest
		y.objects = append(parts[:len(parts):len(parts)], part)
		forms, err := c.finish(&y)
		if err != nil {
			return nil, err
		}
		out = append(out, forms...)
	}
	others, err := c.finishLast(&rest, some, keys)
	return append(out, others...), err
}

// finishLast puts the property that must be there after all others, so that nothing overwrites it.
func (c *compiler) finishLast(x *alt, some *somePart, keys *regular.DFA) ([]*form, error) {
	forms, err := c.finish(x)
	if err != nil {
		return nil, err
	}
	var out []*form
	for _, f := range forms {
		if f.object.last != nil {
			return nil, Refuse(some.s, some.keyword, "cannot be negated together with another one")
		}
		for _, k := range f.object.others {
			last := k
			if last, err = c.narrow(k, keys); err != nil {
				return nil, patternError(err, some.s, some.keyword)
			}
			if last.value, err = c.and(k.value, some.value); err != nil {
				return nil, err
			}
			if last.names != nil && last.names.Empty() {
				continue
			}
			if empty, err := c.isEmpty(last.value); err != nil {
				return nil, err
			} else if empty {
				continue
			}
			o := *f.object
			o.last = &last
			out = append(out, &form{t: TypeObject, object: &o})
		}
	}
	return out, nil
}

// narrow is a class with those names alone that are in a language as well; nil is all names.
func (c *compiler) narrow(k class, names *regular.DFA) (class, error) {
	if names == nil {
		return k, nil
	}
	if k.names == nil {
		d, err := c.without(names, k.except)
		return class{names: d, value: k.value}, err
	}
	d, err := c.intersect(k.names, names)
	return class{names: d, value: k.value}, err
}

// someKeys are the names that a property may have for some; nil is all names.
func (c *compiler) someKeys(some *somePart) (*regular.DFA, error) {
	var d *regular.DFA
	var err error
	if some.pattern != nil {
		if d, err = c.keyPattern(some.s, *some.pattern); err != nil {
			return nil, err
		}
	}
	for _, p := range some.patterns {
		no, err := c.keyPattern(some.s, p.pattern)
		if err != nil {
			return nil, err
		}
		if d, err = c.minus(d, no); err != nil {
			return nil, patternError(err, some.s, some.keyword)
		}
	}
	if some.keys != nil {
		no, err := c.keyLanguage(some.keys, true)
		if err != nil {
			return nil, err
		}
		if d, err = c.intersect(d, no); err != nil {
			return nil, patternError(err, some.s, some.keyword)
		}
	}
	if d, err = c.without(d, some.names); err != nil {
		return nil, patternError(err, some.s, some.keyword)
	}
	return d, nil
}
