package schema

import (
	"math/bits"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// Limits of uniqueItems.
const (
	maxPermuted = 6   // values that come in any order; more come in the schema's order
	maxFinite   = 256 // values of items
	maxApart    = 16  // items whose schemas exclude each other
)

// uniqueItems is the items of an array that must differ: few values, or places that exclude each other.
func (c *compiler) uniqueItems(a *arrayForm) (cfg.Expr, error) {
	apart, err := c.placesApart(a)
	if err != nil {
		return 0, err
	}
	if apart {
		if len(a.contains) > 0 {
			return c.countedItems(a)
		}
		return c.items(a)
	}
	if len(a.prefix) > 0 || len(a.contains) > 0 {
		return 0, Refuse(a.unique, "uniqueItems", "can be enforced with prefixItems and contains only where the items exclude each other")
	}
	values, all, err := c.finite(a.rest)
	if err != nil {
		return 0, err
	}
	if !all {
		return 0, Refuse(a.unique, "uniqueItems", "can be enforced only where the items are from a list of at most %d values, as with enum", maxFinite)
	}
	bounded := a.max >= 0 && a.max < len(values)
	most := len(values)
	if bounded {
		most = a.max
	}
	switch {
	case most < a.min:
		return c.out.Alt(), nil
	case len(values) <= maxPermuted:
		return c.permuted(values, a.min, most), nil
	case len(values)*(max(a.min, 1)+most) > maxStates && bounded, len(values)*max(a.min, 1) > maxStates:
		return 0, &Error{Limit, "uniqueItems", a.unique.Where, "counting the items takes more than " + itoa(maxStates) + " states"}
	}
	return c.ordered(values, a.min, most, bounded), nil
}

// placesApart says whether no value can stand at two places.
func (c *compiler) placesApart(a *arrayForm) (bool, error) {
	n := a.max
	if n < 0 || n > maxApart {
		return false, nil
	}
	at := func(i int) *conj {
		if i < len(a.prefix) {
			return a.prefix[i]
		}
		return a.rest
	}
	for i := range n {
		for j := range i {
			both, err := c.and(at(i), at(j))
			if err != nil {
				return false, err
			}
			if empty, err := c.isEmpty(both); !empty || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// finite has the values of a conj, if they are few.
func (c *compiler) finite(k *conj) (values []*Value, all bool, err error) {
	forms, err := c.formsOf(k)
	if err != nil {
		return nil, false, err
	}
	for _, f := range forms {
		var list []*Value
		all := f.listed
		switch {
		case f.listed:
			list = f.values
		case f.number != nil:
			list, all = f.number.list()
		case f.text != nil && f.text.language != nil && f.text.char == nil:
			var texts []string
			if texts, all = f.text.language.Strings(maxFinite); all {
				for _, text := range texts {
					list = append(list, &Value{Kind: String, Text: text})
				}
			}
		}
		if !all {
			return nil, false, nil
		}
		for _, v := range list {
			if !isOneOf(v, values) {
				values = append(values, v)
			}
		}
	}
	return values, len(values) <= maxFinite, nil
}

// permuted is least to most of the values in any order.
func (c *compiler) permuted(values []*Value, least, most int) cfg.Expr {
	after := make([]cfg.Expr, 1<<len(values)) // by the set of values that were written
	for set := len(after) - 1; set >= 0; set-- {
		n := bits.OnesCount(uint(set))
		var out []cfg.Expr
		if n >= least {
			out = append(out, c.out.Bytes(""))
		}
		for i, v := range values {
			if n < most && set&(1<<i) == 0 {
				out = append(out, c.out.Seq(c.separator(n), c.value(v), after[set|1<<i]))
			}
		}
		after[set] = c.out.Alt(out...)
	}
	return after[0]
}

// ordered is least to most of the values in their order.
func (c *compiler) ordered(values []*Value, least, most int, bounded bool) cfg.Expr {
	count := max(least, 1) // from there on it does not matter how many were written
	if bounded {
		count = most
	}
	after := make([]cfg.Expr, count+1)
	for n := range after {
		if n >= least {
			after[n] = c.out.Bytes("")
		}
	}
	for i := len(values) - 1; i >= 0; i-- {
		before := make([]cfg.Expr, count+1)
		for n := range before {
			before[n] = after[n]
			if n < count || !bounded {
				with := c.out.Seq(c.separator(n), c.value(values[i]), after[min(n+1, count)])
				before[n] = c.out.Alt(with, after[n])
			}
			if i%ruleEvery == 0 && i > 0 {
				before[n] = c.rule("items", before[n])
			}
		}
		after = before
	}
	return after[0]
}
