package schema

import (
	"math/bits"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/regular"
)

// Limits of written objects and arrays.
const (
	maxStates   = 20_000 // places times counts
	maxDistinct = 8      // names without a place in the schema that must differ
	ruleEvery   = 32     // properties in one rule: sequences are copied into those that hold them
)

// object is written from its end: after[n] is what may follow the properties so far, n of which are there.
func (c *compiler) object(o *objectForm) (cfg.Expr, error) {
	most := o.countTo()
	if (len(o.properties)+1)*(most+1) > maxStates {
		return 0, &Error{Limit, "maxProperties", "", "counting the properties takes more than " + itoa(maxStates) + " states"}
	}
	after := make([]cfg.Expr, most+1)
	for n := range after {
		var err error
		if after[n], err = c.others(o, n); err != nil {
			return 0, err
		}
	}
	for i := len(o.properties) - 1; i >= 0; i-- {
		p := o.properties[i]
		value, err := c.expr(p.value)
		if err != nil {
			return 0, err
		}
		member := c.out.Seq(c.out.Bytes(Quote(p.name)), c.colon(), value)
		before := make([]cfg.Expr, most+1)
		for n := range before {
			var with cfg.Expr
			if o.max < 0 || n < o.max {
				with = c.out.Seq(c.separator(n), member, after[min(n+1, most)])
			}
			if !p.required {
				with = c.out.Alt(with, after[n])
			}
			if i > 0 && i%ruleEvery == 0 {
				with = c.rule(p.name, with)
			}
			before[n] = with
		}
		after = before
	}
	return c.out.Seq(c.out.Bytes("{"), c.space(), after[0], c.space(), c.out.Bytes("}")), nil
}

// rule gives an expression a name.
func (c *compiler) rule(name string, e cfg.Expr) cfg.Expr {
	r := c.newRule(name)
	c.out.Define(r, e)
	return c.out.Ref(r)
}

// countTo is the number from which on the properties need not be counted.
func (o *objectForm) countTo() int {
	if o.max >= 0 && (o.max < len(o.properties) || len(o.others) > 0) {
		return min(o.max, max(len(o.properties), o.min, 1))
	}
	o.max = -1
	return max(o.min, 1)
}

func (c *compiler) separator(n int) cfg.Expr {
	if n == 0 {
		return c.out.Bytes("")
	}
	return c.comma()
}

// others is the properties without a place of their own, after n others.
func (c *compiler) others(o *objectForm, n int) (cfg.Expr, error) {
	need, room := max(o.min-n, 0), -1
	if o.max >= 0 {
		room = o.max - n
	}
	if o.last != nil {
		return c.otherThenLast(o, n, need, room)
	}
	switch {
	case len(o.others) == 0 && need == 0:
		return c.out.Bytes(""), nil
	case len(o.others) == 0 || room >= 0 && need > room:
		return 0, nil
	case need > 1:
		return c.distinct(o, n, need, room)
	}
	member, err := c.members(o.others, nil)
	if err != nil {
		return 0, err
	}
	if room == 0 {
		return c.out.Bytes(""), nil
	}
	some := c.out.Seq(c.separator(n), member, c.more(member, room-1, room >= 0))
	if need == 0 {
		some = c.out.Opt(some)
	}
	return some, nil
}

// more is up to most further members, or any number of them.
func (c *compiler) more(member cfg.Expr, most int, bounded bool) cfg.Expr {
	if !bounded {
		most = -1
	}
	return c.out.Repeat(c.out.Seq(c.comma(), member), 0, most)
}

// members is a member of one of the classes whose name is in a language as well.
func (c *compiler) members(classes []class, names *regular.DFA) (cfg.Expr, error) {
	var out []cfg.Expr
	for _, k := range classes {
		k, err := c.narrow(k, names)
		if err != nil {
			return 0, err
		}
		if k.names != nil && k.names.Empty() {
			continue
		}
		name, err := c.name(k)
		if err != nil {
			return 0, err
		}
		value, err := c.expr(k.value)
		if err != nil {
			return 0, err
		}
		out = append(out, c.out.Seq(name, c.colon(), value))
	}
	return c.out.Alt(out...), nil
}

// name is a name of a class, with its quotes.
func (c *compiler) name(k class) (cfg.Expr, error) {
	if k.names == nil && len(k.except) > 0 {
		return c.anyName(k.except)
	}
	return c.text(&textForm{language: k.names, max: -1})
}

// otherThenLast ends with the member that must be there: of two members with one name the later counts.
func (c *compiler) otherThenLast(o *objectForm, n, need, room int) (cfg.Expr, error) {
	if need > 1 {
		return 0, Refuse(o.minAt, "minProperties", "together with a negated schema")
	}
	if room == 0 {
		return 0, nil
	}
	last, err := c.members([]class{*o.last}, nil)
	if err != nil {
		return 0, err
	}
	other, err := c.members(o.others, nil)
	if err != nil {
		return 0, err
	}
	if n > 0 {
		return c.out.Seq(c.more(other, room-1, room >= 0), c.comma(), last), nil
	}
	if room == 1 {
		return last, nil
	}
	return c.out.Alt(last, c.out.Seq(other, c.more(other, room-2, room >= 0), c.comma(), last)), nil
}

// distinct writes need members whose names differ, and then others. A grammar cannot compare names,
// so the lengths of these differ modulo a small number.
func (c *compiler) distinct(o *objectForm, n, need, room int) (cfg.Expr, error) {
	if need > maxDistinct {
		return 0, Refuse(o.minAt, "minProperties", "asks for %d different names that the schema does not list; up to %d can be", need, maxDistinct)
	}
	mod := max(need, 4)
	of := make([]cfg.Expr, mod)
	for r := range of {
		d, err := c.pattern("^(?:[^]{" + itoa(mod) + "})*[^]{" + itoa(r) + "}$")
		if err != nil {
			return 0, err
		}
		if of[r], err = c.members(o.others, d); err != nil {
			return 0, err
		}
	}
	any, err := c.members(o.others, nil)
	if err != nil {
		return 0, err
	}
	after := make([]cfg.Expr, 1<<mod) // by the set of lengths that are taken
	for set := len(after) - 1; set >= 0; set-- {
		taken := bits.OnesCount(uint(set))
		if taken >= need {
			after[set] = c.more(any, room-need, room >= 0)
			continue
		}
		var list []cfg.Expr
		for r := range of {
			if set&(1<<r) == 0 {
				list = append(list, c.out.Seq(c.separator(n+taken), of[r], after[set|1<<r]))
			}
		}
		after[set] = c.out.Alt(list...)
	}
	return after[0], nil
}
