package schema

import (
	"errors"
	"fmt"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/regular"
)

// pending is a rule whose body is still to be written.
type pending struct {
	rule cfg.Rule
	k    *conj
}

// expr is the texts of a conj. Arrays and objects are rules, written later, so that recursion ends.
func (c *compiler) expr(k *conj) (cfg.Expr, error) {
	if e, ok := c.exprs[k]; ok {
		return e, nil
	}
	branches, ok, err := c.branches(k)
	if err != nil {
		return 0, err
	}
	var e cfg.Expr
	if ok {
		var list []cfg.Expr
		for _, b := range branches {
			x, err := c.expr(b)
			if err != nil {
				return 0, err
			}
			list = append(list, x)
		}
		e = c.out.Alt(list...)
	} else if e, err = c.exprOfForms(k); err != nil {
		return 0, err
	}
	c.exprs[k] = e
	return e, nil
}

func (c *compiler) exprOfForms(k *conj) (cfg.Expr, error) {
	forms, err := c.formsOf(k)
	if err != nil {
		return 0, err
	}
	for _, f := range forms {
		if f.array != nil || f.object != nil {
			r := c.newRule(c.whereOf(k))
			c.todo = append(c.todo, pending{r, k})
			return c.out.Ref(r), c.out.Err()
		}
	}
	e, err := c.body(k)
	if err == nil {
		err = c.out.Err()
	}
	return e, c.at(k, err)
}

// at says at which schema a limit of the grammar or of an automaton was met.
func (c *compiler) at(k *conj, err error) error {
	var own *Error
	var known *limitAt
	where := c.whereOf(k)
	if err == nil || where == "" || errors.As(err, &own) || errors.As(err, &known) {
		return err
	}
	return &limitAt{where, err}
}

// newRule makes a rule that may turn out to have no texts: of parts that need themselves again.
func (c *compiler) newRule(name string) cfg.Rule {
	r := c.out.NewRule(name)
	c.out.Lenient(r)
	return r
}

// defineRules writes the rules that are still open, and those that they ask for.
func (c *compiler) defineRules() error {
	for len(c.todo) > 0 {
		next := c.todo[len(c.todo)-1]
		c.todo = c.todo[:len(c.todo)-1]
		e, err := c.body(next.k)
		if err != nil {
			return c.at(next.k, err)
		}
		c.out.Define(next.rule, e)
		if err := c.out.Err(); err != nil {
			return c.at(next.k, err)
		}
	}
	return nil
}

// body is one text of any form.
func (c *compiler) body(k *conj) (cfg.Expr, error) {
	forms, err := c.formsOf(k)
	if err != nil {
		return 0, err
	}
	var list []cfg.Expr
	for _, f := range forms {
		e, err := c.form(f)
		if err != nil {
			return 0, err
		}
		list = append(list, e)
	}
	return c.out.Alt(list...), nil
}

func (c *compiler) form(f *form) (cfg.Expr, error) {
	switch {
	case f.listed:
		var list []cfg.Expr
		for _, v := range f.values {
			list = append(list, c.value(v))
		}
		return c.out.Alt(list...), nil
	case f.number != nil:
		return c.number(f.number)
	case f.text != nil:
		return c.text(f.text)
	case f.array != nil:
		return c.array(f.array)
	}
	return c.object(f.object)
}

// value is one JSON value; white space in it is as free as elsewhere.
func (c *compiler) value(v *Value) cfg.Expr {
	switch {
	case v.Kind == Number && v.Number.IsInt() && len(v.Text) < 32:
		if text := v.Number.Num().String(); len(text) < 32 {
			return c.out.Bytes(text) // 1 for 1.0: draft 4 does not take 1.0 for an integer
		}
	case v.Kind == Array:
		list := []cfg.Expr{c.out.Bytes("["), c.space()}
		for i, item := range v.Items {
			if i > 0 {
				list = append(list, c.comma())
			}
			list = append(list, c.value(item))
		}
		return c.out.Seq(append(list, c.space(), c.out.Bytes("]"))...)
	case v.Kind == Object:
		list := []cfg.Expr{c.out.Bytes("{"), c.space()}
		for i, m := range v.Members {
			if i > 0 {
				list = append(list, c.comma())
			}
			list = append(list, c.out.Bytes(Quote(m.Name)), c.colon(), c.value(m.Value))
		}
		return c.out.Seq(append(list, c.space(), c.out.Bytes("}"))...)
	}
	return c.out.Bytes(v.String())
}

// space is the white space between two tokens.
func (c *compiler) space() cfg.Expr {
	if !c.o.FlexibleSpace {
		return c.out.Bytes("")
	}
	most := -1
	if c.o.MaxSpace > 0 {
		most = c.o.MaxSpace
	}
	char := c.out.Alt(c.out.Byte(' ', ' '), c.out.Byte('\t', '\n'), c.out.Byte('\r', '\r'))
	return c.out.Repeat(char, 0, most)
}

func (c *compiler) comma() cfg.Expr { return c.out.Seq(c.space(), c.out.Bytes(","), c.space()) }
func (c *compiler) colon() cfg.Expr { return c.out.Seq(c.space(), c.out.Bytes(":"), c.space()) }

// anyNumber is JSON's numbers; exponents beyond two digits are no numbers to most readers.
const anyNumber = `-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,16})?(?:[eE][-+]?[0-9]{1,2})?`

func (c *compiler) number(n *numberForm) (cfg.Expr, error) {
	if list, all := n.list(); all {
		var out []cfg.Expr
		for _, v := range list {
			out = append(out, c.value(v))
		}
		return c.out.Alt(out...), nil
	}
	return c.once(n.key(), func() (*regular.DFA, error) {
		if n.isFree() {
			return shared.get("number", func() (*regular.DFA, error) { return c.words.Regexp(anyNumber, false) })
		}
		d, err := n.language(c.words)
		if err != nil && n.s != nil {
			err = Refuse(n.s, n.keyword(), "%v", err)
		}
		return d, err
	})
}

// isFree says whether the form is all numbers.
func (n *numberForm) isFree() bool {
	return n.lo == nil && n.hi == nil && n.step == nil && n.off == nil && n.exclude == nil
}

// key names forms of the same numbers alike.
func (n *numberForm) key() string {
	bound := func(b *Bound) string {
		if b == nil {
			return ""
		}
		return fmt.Sprint(b.Value, b.Exclusive)
	}
	return fmt.Sprint("number ", bound(n.lo), ";", bound(n.hi), ";", n.step, n.off, n.exclude)
}

// keyword is the keyword that costs most.
func (n *numberForm) keyword() string {
	if n.s.MultipleOf != nil {
		return "multipleOf"
	}
	if n.s.Minimum != nil {
		return "minimum"
	}
	return "maximum"
}

// once is the expression of an automaton, made once for all expressions of a name.
func (c *compiler) once(name string, build func() (*regular.DFA, error)) (cfg.Expr, error) {
	if e, ok := c.named[name]; ok {
		return e, nil
	}
	d, err := build()
	if err != nil {
		return 0, err
	}
	e := c.out.DFA(d)
	c.named[name] = e
	return e, nil
}

// text is the strings of a form, with their quotes. Where any text will do, any escapes will do.
func (c *compiler) text(t *textForm) (cfg.Expr, error) {
	var body cfg.Expr
	var err error
	switch {
	case t.language != nil && t.language.Empty():
		return c.out.Alt(), nil
	case t.char != nil:
		body, err = c.spelled(t.char)
		body = c.out.Repeat(body, t.min, t.max)
	case t.language != nil:
		body, err = c.spelled(t.language)
	case t.min == 0 && t.max < 0:
		body, err = c.once("text", func() (*regular.DFA, error) { return c.spelledText("text", 0, -1, regular.Any) })
	default:
		body, err = c.once("character", func() (*regular.DFA, error) { return c.spelledText("character", 1, 1, regular.Any) })
		body = c.out.Repeat(body, t.min, t.max)
	}
	quote := c.out.Bytes(`"`)
	return c.out.Seq(quote, body, quote), err
}

// spelled is the texts of a language as JSON spells them, with no needless escape.
func (c *compiler) spelled(d *regular.DFA) (cfg.Expr, error) {
	if e, ok := c.dfas[d]; ok {
		return e, nil
	}
	spelled := d
	if needsEscapes(d) {
		var err error
		if spelled, err = c.words.JSONString(d, regular.Canonical); err != nil {
			return 0, err
		}
	}
	e := c.out.DFA(spelled)
	c.dfas[d] = e
	return e, nil
}

// needsEscapes says whether some text of a language has a character that JSON escapes.
func needsEscapes(d *regular.DFA) bool {
	for state := range d.States() {
		if d.Next(state, '"') >= 0 || d.Next(state, '\\') >= 0 {
			return true
		}
		for c := range byte(0x20) {
			if d.Next(state, c) >= 0 {
				return true
			}
		}
	}
	return false
}
