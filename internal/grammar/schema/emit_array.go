package schema

import (
	"github.com/spillway/spillway/internal/grammar/cfg"
)

func (c *compiler) array(a *arrayForm) (cfg.Expr, error) {
	var items cfg.Expr
	var err error
	switch {
	case a.unique != nil:
		items, err = c.uniqueItems(a)
	case len(a.contains) > 0:
		items, err = c.countedItems(a)
	default:
		items, err = c.items(a)
	}
	return c.out.Seq(c.out.Bytes("["), c.space(), items, c.space(), c.out.Bytes("]")), err
}

// items is written from its end: the rest, then the prefix backwards.
func (c *compiler) items(a *arrayForm) (cfg.Expr, error) {
	n := len(a.prefix)
	out := c.out.Bytes("")
	if a.max < 0 || a.max > n {
		rest, err := c.expr(a.rest)
		if err != nil {
			return 0, err
		}
		least, most := max(a.min-n, 0), -1
		if a.max >= 0 {
			most = a.max - n
		}
		out = c.list(rest, n, least, most)
	}
	for i := n - 1; i >= 0; i-- {
		item, err := c.expr(a.prefix[i])
		if err != nil {
			return 0, err
		}
		out = c.out.Seq(c.separator(i), item, out)
		if i >= a.min {
			out = c.out.Opt(out)
		}
		if i > 0 && i%ruleEvery == 0 {
			out = c.rule("items", out)
		}
	}
	return out, nil
}

// list is least to most items after n others.
func (c *compiler) list(item cfg.Expr, n, least, most int) cfg.Expr {
	next := c.out.Seq(c.comma(), item)
	if n > 0 {
		return c.out.Repeat(next, least, most)
	}
	if most == 0 {
		return c.out.Bytes("")
	}
	if most > 0 {
		most--
	}
	out := c.out.Seq(item, c.out.Repeat(next, max(least-1, 0), most))
	if least == 0 {
		out = c.out.Opt(out)
	}
	return out
}

// counting writes the items of an array with contains: one rule for each place and count.
type counting struct {
	c     *compiler
	a     *arrayForm
	rules map[counted]cfg.Expr
	todo  []openCount
	last  int // the place from which on all places are the same
}

// counted is a place and how many items each contains has found.
type counted struct {
	i      int
	counts [maxContains]int
}

type openCount struct {
	rule cfg.Rule
	at   counted
}

func (c *compiler) countedItems(a *arrayForm) (cfg.Expr, error) {
	w := &counting{c: c, a: a, rules: map[counted]cfg.Expr{}, last: max(len(a.prefix), a.min, 1)}
	for _, k := range a.contains {
		w.last = max(w.last, k.from)
	}
	if a.max >= 0 {
		w.last = a.max
	}
	start, err := w.at(counted{})
	for err == nil && len(w.todo) > 0 {
		next := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		var e cfg.Expr
		if e, err = w.body(next.at); err == nil {
			c.out.Define(next.rule, e)
			err = c.out.Err()
		}
	}
	return start, err
}

func (w *counting) at(s counted) (cfg.Expr, error) {
	if e, ok := w.rules[s]; ok {
		return e, nil
	}
	if len(w.rules) >= maxStates/4 {
		return 0, &Error{Limit, "contains", w.a.contains[0].s.Where, "counting the items takes more than " + itoa(maxStates/4) + " states"}
	}
	r := w.c.newRule("contains")
	w.todo = append(w.todo, openCount{r, s})
	w.rules[s] = w.c.out.Ref(r)
	return w.rules[s], w.c.out.Err()
}

func (w *counting) body(s counted) (cfg.Expr, error) {
	var out []cfg.Expr
	if w.mayEnd(s) {
		out = append(out, w.c.out.Bytes(""))
	}
	if w.a.max >= 0 && s.i >= w.a.max {
		return w.c.out.Alt(out...), nil
	}
	item := w.a.rest
	if s.i < len(w.a.prefix) {
		item = w.a.prefix[s.i]
	}
	for set := range 1 << len(w.a.contains) {
		e, err := w.item(s, item, set)
		if err != nil {
			return 0, err
		}
		out = append(out, e)
	}
	return w.c.out.Alt(out...), nil
}

func (w *counting) mayEnd(s counted) bool {
	if s.i < w.a.min {
		return false
	}
	for j, k := range w.a.contains {
		if s.counts[j] < k.min {
			return false
		}
	}
	return true
}

// item is one item that satisfies the contains of a set and no others, and all that follows it.
func (w *counting) item(s counted, item *conj, set int) (cfg.Expr, error) {
	next := counted{min(s.i+1, w.last), s.counts}
	var err error
	for j, k := range w.a.contains {
		in := set&(1<<j) != 0
		full := k.max < 0 && s.counts[j] >= k.min
		if s.i < k.from || full {
			if in {
				return 0, nil // the other sets say it
			}
			continue
		}
		if in {
			if next.counts[j]++; k.max >= 0 && next.counts[j] > k.max {
				return 0, nil
			}
			item, err = w.c.and(item, k.value)
		} else if k.max >= 0 {
			item, err = w.c.and(item, k.other)
		}
		if err != nil {
			return 0, err
		}
	}
	if empty, err := w.c.isEmpty(item); empty || err != nil {
		return 0, err
	}
	e, err := w.c.expr(item)
	if err != nil {
		return 0, err
	}
	after, err := w.at(next)
	if err != nil {
		return 0, err
	}
	return w.c.out.Seq(w.c.separator(s.i), e, after), nil
}
