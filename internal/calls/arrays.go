package calls

import (
	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/schema"
)

// array is [value, …].
func (w *writer) array(t *tool, s *schema.Schema, p *spelling) (cfg.Expr, error) {
	items, err := itemsOf(t, s)
	if err != nil {
		return 0, err
	}
	literal := func(s *schema.Schema) ([]cfg.Expr, error) { return maybe(w.literal(t, s, p)) }
	e, err := w.items(items, w.b.Bytes(p.comma), literal)
	return w.b.Seq(w.b.Bytes("["), e, w.b.Bytes("]")), err
}

// An itemList is what an array may hold.
type itemList struct {
	first       []*schema.Schema
	rest        *schema.Schema
	least, most int // most < 0: no bound
}

func itemsOf(t *tool, s *schema.Schema) (itemList, error) {
	out := itemList{most: -1}
	told := false
	for _, p := range together(s) {
		switch keyword := choice(p); {
		case keyword != "":
			return out, refuse(p, keyword)
		case p.Contains != nil:
			return out, refuse(p, "contains")
		case p.UniqueItems:
			return out, refuse(p, "uniqueItems")
		case p.UnevaluatedItems != nil:
			return out, refuse(p, "unevaluatedItems")
		}
		out.least = max(out.least, p.MinItems)
		if p.MaxItems >= 0 && (out.most < 0 || p.MaxItems < out.most) {
			out.most = p.MaxItems
		}
		if len(p.PrefixItems) > 0 || p.Items != nil {
			if told {
				return out, refuse(p, "items")
			}
			told = true
			out.first, out.rest = p.PrefixItems, p.Items
		}
	}
	if out.rest == nil {
		out.rest = t.any
	}
	return out, nil
}

// items are the items of an array, with comma between them.
func (w *writer) items(l itemList, comma cfg.Expr, literal func(*schema.Schema) ([]cfg.Expr, error)) (cfg.Expr, error) {
	rest, err := literal(l.rest)
	if err != nil {
		return 0, err
	}
	after := w.restOf(l, rest, comma) // behind the items that have a place of their own
	for i := len(l.first) - 1; i >= 0; i-- {
		one, err := literal(l.first[i])
		if err != nil {
			return 0, err
		}
		var all []cfg.Expr
		if i >= l.least {
			all = append(all, w.b.Bytes(""))
		}
		for _, e := range one {
			if i > 0 {
				e = w.b.Seq(comma, e)
			}
			if l.most < 0 || i < l.most {
				all = append(all, w.b.Seq(e, after))
			}
		}
		after = w.b.Alt(all...)
	}
	return after, w.b.Err()
}

func (w *writer) restOf(l itemList, rest []cfg.Expr, comma cfg.Expr) cfg.Expr {
	n := len(l.first)
	least, most := max(l.least-n, 0), -1
	if l.most >= 0 {
		most = max(l.most-n, 0)
	}
	nothing := w.b.Alt()
	if least == 0 {
		nothing = w.b.Bytes("")
	}
	if len(rest) == 0 || most == 0 {
		return nothing
	}
	more := w.b.Seq(comma, rest[0])
	if n > 0 {
		return w.b.Repeat(more, least, most)
	}
	if most > 0 {
		most--
	}
	return w.b.Alt(nothing, w.b.Seq(rest[0], w.b.Repeat(more, max(least-1, 0), most)))
}
