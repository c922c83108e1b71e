package schema

import (
	"unicode/utf8"

	"github.com/spillway/spillway/internal/grammar/regular"
)

// holds says whether a value satisfies a conj.
func (c *compiler) holds(k *conj, v *Value) (bool, error) {
	if k == c.free || k == c.never {
		return k == c.free, nil
	}
	alts, err := c.altsOf(k, v.typeOf())
	if err != nil {
		return false, err
	}
	for _, x := range alts {
		if ok, err := c.altHolds(x, v); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// altHolds says whether a value of the alternative's type satisfies all of its parts.
func (c *compiler) altHolds(x *alt, v *Value) (bool, error) {
	if x.listed && !isOneOf(v, x.values) || isOneOf(v, x.exclude) {
		return false, nil
	}
	return c.partsHold(x, v)
}

// partsHold is altHolds of a value that is known to be in the alternative's lists as it must be.
func (c *compiler) partsHold(x *alt, v *Value) (bool, error) {
	for _, p := range x.numbers {
		n := numberForm{lo: p.min, hi: p.max}
		if !n.contains(v.Number) || p.step != nil && isMultiple(v.Number, p.step) == p.off {
			return false, nil
		}
	}
	for _, p := range x.strings {
		if ok, err := c.stringHolds(p, v.Text); !ok || err != nil {
			return false, err
		}
	}
	for _, p := range x.arrays {
		if ok, err := c.arrayHolds(p, v); !ok || err != nil {
			return false, err
		}
	}
	for _, p := range x.objects {
		if ok, err := c.objectHolds(p, v); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (c *compiler) stringHolds(p stringPart, text string) (bool, error) {
	t := textForm{max: -1}
	t.bound(p)
	if n := utf8.RuneCountInString(text); n < t.min || t.max >= 0 && n > t.max {
		return false, nil
	}
	if p.keyword != "pattern" && p.keyword != "format" {
		return true, nil
	}
	if p.keyword == "format" && p.s.Format == "regex" {
		return (regular.CheckRegexp(text) == nil) != p.negated, nil
	}
	d, err := c.partLanguage(p, forJudging)
	return d == nil || err == nil && d.Match(text), err
}

func (c *compiler) arrayHolds(p *arrayPart, v *Value) (bool, error) {
	if len(v.Items) < p.min || p.max >= 0 && len(v.Items) > p.max {
		return false, nil
	}
	for i, item := range v.Items {
		if ok, err := c.holds(p.at(c, i), item); !ok || err != nil {
			return false, err
		}
		if p.unique && isOneOf(item, v.Items[:i]) {
			return false, nil
		}
	}
	for _, k := range p.contains {
		count := 0
		for i := k.from; i < len(v.Items); i++ {
			ok, err := c.holds(k.value, v.Items[i])
			if err != nil {
				return false, err
			}
			if ok {
				count++
			}
		}
		if count < k.min || k.max >= 0 && count > k.max {
			return false, nil
		}
	}
	return true, nil
}

// at is what the item i satisfies.
func (p *arrayPart) at(c *compiler, i int) *conj {
	switch {
	case i < len(p.prefix):
		return p.prefix[i]
	case p.rest == nil:
		return c.free
	}
	return p.rest
}

func (c *compiler) objectHolds(p *objectPart, v *Value) (bool, error) {
	if len(v.Members) < p.min || p.max >= 0 && len(v.Members) > p.max {
		return false, nil
	}
	for _, name := range p.required {
		if v.Get(name) == nil {
			return false, nil
		}
	}
	found := p.some == nil
	for _, m := range v.Members {
		k, err := c.valueOf(p, m.Name)
		if err != nil {
			return false, err
		}
		if ok, err := c.holds(k, m.Value); !ok || err != nil {
			return false, err
		}
		if !found {
			if found, err = c.someHolds(p.some, m); err != nil {
				return false, err
			}
		}
	}
	return found, nil
}

// valueOf is what the value of a property satisfies; never, if the name is not allowed.
func (c *compiler) valueOf(p *objectPart, name string) (*conj, error) {
	if p.keys != nil {
		if ok, err := c.keyHolds(p.keys, false, name); err != nil {
			return nil, err
		} else if !ok {
			return c.never, nil
		}
	}
	out, found := p.values[name]
	if !found {
		out = c.free
	}
	for _, pattern := range p.patterns {
		d, err := c.keyPattern(p.s, pattern.pattern)
		if err != nil {
			return nil, err
		}
		if !d.Match(name) {
			continue
		}
		found = true
		if out, err = c.and(out, pattern.value); err != nil {
			return nil, err
		}
	}
	if !found && p.rest != nil {
		return p.rest, nil
	}
	return out, nil
}

// keyHolds says whether a name satisfies, or does not satisfy, a schema.
func (c *compiler) keyHolds(s *Schema, negated bool, name string) (bool, error) {
	k, err := c.of(s, negated)
	if err != nil {
		return false, err
	}
	return c.holds(k, &Value{Kind: String, Text: name})
}

// someHolds says whether a property is one that p asks for.
func (c *compiler) someHolds(p *somePart, m Member) (bool, error) {
	keys, err := c.someKeys(p)
	if err != nil || keys != nil && !keys.Match(m.Name) {
		return false, err
	}
	return c.holds(p.value, m.Value)
}
