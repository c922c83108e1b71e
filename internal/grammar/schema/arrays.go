package schema

// arrayForm is arrays whose items are merged over all parts.
type arrayForm struct {
	prefix   []*conj
	rest     *conj
	contains []contain // at most maxContains
	min, max int       // max < 0: no bound
	unique   *Schema   // where uniqueItems stands, nil: nowhere
}

// Limits of arrays.
const (
	maxPrefix   = 1_000
	maxContains = 2
)

func (c *compiler) finishArray(x *alt) ([]*form, error) {
	if len(x.exclude) > 0 {
		return c.withoutValue(x)
	}
	a := &arrayForm{max: -1}
	n := 0
	for _, p := range x.arrays {
		a.bound(p)
		n = max(n, len(p.prefix))
	}
	a.dropContains(x.arrays)
	for _, k := range a.contains {
		if k.max == 0 {
			n = max(n, k.from)
		}
	}
	if n > maxPrefix {
		return nil, &Error{Limit, "prefixItems", x.arrays[0].s.Where, "has more than " + itoa(maxPrefix) + " items"}
	}
	for i := range n + 1 {
		item, err := c.itemAt(x.arrays, a.contains, i)
		if err != nil {
			return nil, err
		}
		empty, err := c.isEmpty(item)
		if err != nil {
			return nil, err
		}
		if empty && (a.max < 0 || a.max > i) {
			a.max = i
		}
		if i < n {
			a.prefix = append(a.prefix, item)
		} else {
			a.rest = item
		}
	}
	return c.checkArray(a)
}

// bound merges the counts of a part.
func (a *arrayForm) bound(p *arrayPart) {
	a.min = max(a.min, p.min)
	if p.max >= 0 && (a.max < 0 || p.max < a.max) {
		a.max = p.max
	}
	if p.unique && a.unique == nil {
		a.unique = p.s
	}
}

// dropContains gathers those contains that say something.
func (a *arrayForm) dropContains(parts []*arrayPart) {
	for _, p := range parts {
		for _, k := range p.contains {
			if k.min <= 0 && k.max < 0 {
				continue
			}
			a.contains = append(a.contains, k)
			if k.min > 0 {
				a.min = max(a.min, k.from+k.min)
			}
		}
	}
}

// itemAt is what the item i satisfies; a contains of no items says what all of them do not satisfy.
func (c *compiler) itemAt(parts []*arrayPart, contains []contain, i int) (*conj, error) {
	out := c.free
	var err error
	for _, p := range parts {
		if out, err = c.and(out, p.at(c, i)); err != nil {
			return nil, err
		}
	}
	for _, k := range contains {
		if k.max == 0 && i >= k.from {
			if out, err = c.and(out, k.other); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// checkArray drops what says nothing and what has no values.
func (c *compiler) checkArray(a *arrayForm) ([]*form, error) {
	var contains []contain
	for _, k := range a.contains {
		if k.max >= 0 && k.min > k.max {
			return nil, nil
		}
		if k.max == 0 {
			continue // in the items already
		}
		contains = append(contains, k)
	}
	a.contains = contains
	if a.max >= 0 {
		if a.min > a.max {
			return nil, nil
		}
		a.prefix = a.prefix[:min(len(a.prefix), a.max)]
	}
	if len(a.contains) > maxContains {
		return nil, Refuse(a.contains[maxContains].s, "contains", "more than %d at the same array", maxContains)
	}
	if a.max >= 0 && a.max <= 1 {
		a.unique = nil
	}
	for _, k := range a.contains {
		if possible, err := c.containable(a, k); !possible || err != nil {
			return nil, err
		}
	}
	return []*form{{t: TypeArray, array: a}}, nil
}

// containable says whether an array may have an item that k asks for.
func (c *compiler) containable(a *arrayForm, k contain) (bool, error) {
	if k.min <= 0 {
		return true, nil
	}
	for i := k.from; i <= max(len(a.prefix), k.from) && (a.max < 0 || i < a.max); i++ {
		item := a.rest
		if i < len(a.prefix) {
			item = a.prefix[i]
		}
		both, err := c.and(item, k.value)
		if err != nil {
			return false, err
		}
		if empty, err := c.isEmpty(both); !empty || err != nil {
			return !empty, err
		}
	}
	return false, nil
}
