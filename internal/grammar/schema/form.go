package schema

// form is an alternative that is ready to be written: its parts are merged, and it is not known to
// be empty.
type form struct {
	t      Types
	values []*Value // where listed: all values, null and booleans too
	listed bool
	number *numberForm
	text   *textForm
	array  *arrayForm
	object *objectForm
}

// maxNesting bounds how deep it is looked whether parts of a schema have any value; deeper ones count as not empty.
const maxNesting = 64

// forms are the ways to write a conj's values; none: it has no values.
func (c *compiler) formsOf(k *conj) ([]*form, error) {
	if k.known {
		return k.forms, nil
	}
	k.busy = true
	c.nesting++
	defer func() { k.busy = false; c.nesting-- }()
	var out []*form
	for _, t := range oneTypes {
		alts, err := c.altsOf(k, t)
		if err != nil {
			return nil, c.at(k, err)
		}
		forms, err := c.finishAll(alts)
		if err != nil {
			return nil, c.at(k, err)
		}
		out = append(out, forms...)
	}
	if len(out) > maxAlts {
		return nil, &Error{Limit, "", c.whereOf(k), "has more than " + itoa(maxAlts) + " alternatives"}
	}
	k.forms, k.known = out, true
	return out, nil
}

// altsOf are the alternatives of a conj for one type.
func (c *compiler) altsOf(k *conj, t Types) ([]*alt, error) {
	if k == c.never {
		return nil, nil
	}
	out := free(t)
	for _, l := range k.lits {
		s := c.doc.Schemas[l>>1]
		list, err := c.expand(s, l.negated(), false, t)
		if err != nil {
			return nil, err
		}
		if out, err = c.cross(s, out, list); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *compiler) whereOf(k *conj) string {
	if len(k.lits) == 0 {
		return ""
	}
	return c.doc.Schemas[k.lits[0]>>1].Where
}

// isEmpty says whether a conj is known to have no values; recursion counts as values.
func (c *compiler) isEmpty(k *conj) (bool, error) {
	if k == c.free || k.busy || !k.known && c.nesting > maxNesting {
		return false, nil
	}
	if branches, ok, err := c.branches(k); err != nil {
		return false, err
	} else if ok {
		for _, b := range branches {
			if empty, err := c.isEmpty(b); !empty || err != nil {
				return false, err
			}
		}
		return true, nil
	}
	forms, err := c.formsOf(k)
	return len(forms) == 0, err
}

// branches are the conjs of which one must hold, where a conj is nothing but an anyOf or oneOf. They
// are written by themselves, so that other places can share them.
func (c *compiler) branches(k *conj) (out []*conj, ok bool, err error) {
	if len(k.lits) != 1 || k.lits[0].negated() {
		return nil, false, nil
	}
	s := c.doc.Schemas[k.lits[0]>>1]
	if s.hasAssertions() || len(s.parts()) > 0 || s.If != nil || len(s.DependentSchemas) > 0 || (s.AnyOf == nil) == (s.OneOf == nil) {
		return nil, false, nil
	}
	if found, ok := c.unions[k]; ok {
		return found, true, nil
	}
	for i, b := range append(s.AnyOf[:len(s.AnyOf):len(s.AnyOf)], s.OneOf...) {
		x, err := c.of(b, false)
		if err != nil {
			return nil, false, err
		}
		if s.OneOf != nil {
			if x, err = c.excludeRivals(s, i, x); err != nil {
				return nil, false, err
			}
		}
		out = append(out, x)
	}
	c.unions[k] = out
	return out, true, nil
}

// excludeRivals adds to a branch of oneOf the contrary of those others that may hold with it.
func (c *compiler) excludeRivals(s *Schema, i int, x *conj) (*conj, error) {
	for j := range s.OneOf {
		if i == j {
			continue
		}
		for _, t := range oneTypes {
			apart, err := c.branchesApart(s, i, j, t)
			if err != nil {
				return nil, err
			}
			if apart {
				continue
			}
			if _, err := c.expand(s.OneOf[j], true, false, t); err != nil {
				return nil, withKeyword(err, s, "oneOf", "branches %d and %d may hold together, and %d cannot be excluded", i, j, j)
			}
			no, err := c.of(s.OneOf[j], true)
			if err != nil {
				return nil, err
			}
			if x, err = c.and(x, no); err != nil {
				return nil, err
			}
			break
		}
	}
	return x, nil
}

func (c *compiler) branchesApart(s *Schema, i, j int, t Types) (bool, error) {
	a, err := c.expand(s.OneOf[i], false, false, t)
	if err != nil || len(a) == 0 {
		return true, err
	}
	b, err := c.expand(s.OneOf[j], false, false, t)
	if err != nil || len(b) == 0 {
		return true, err
	}
	return c.apart(a, b)
}

// finish merges the parts of an alternative; an alternative without values has no forms.
func (c *compiler) finish(x *alt) ([]*form, error) {
	if x.listed || x.t == TypeNull || x.t == TypeBoolean {
		return c.finishListed(x)
	}
	switch x.t {
	case TypeNumber:
		n, err := c.finishNumber(x)
		if n == nil || err != nil {
			return nil, err
		}
		return []*form{{t: x.t, number: n}}, nil
	case TypeString:
		text, err := c.finishText(x)
		if text == nil || err != nil {
			return nil, err
		}
		return []*form{{t: x.t, text: text}}, nil
	case TypeArray:
		return c.finishArray(x)
	}
	return c.finishObject(x)
}

func (c *compiler) finishListed(x *alt) ([]*form, error) {
	values := x.values
	switch {
	case x.listed:
	case x.t == TypeNull:
		values = []*Value{{Kind: Null}}
	default:
		values = []*Value{{Kind: Boolean, Bool: true}, {Kind: Boolean}}
	}
	var out []*Value
	excluded := setOf(x.exclude)
	for _, v := range values {
		if excluded[v.key()] {
			continue
		}
		ok, err := c.partsHold(x, v)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, v)
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return []*form{{t: x.t, values: out, listed: true}}, nil
}
