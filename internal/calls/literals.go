package calls

import (
	"slices"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/schema"
)

// A spelling is how literals are written.
type spelling struct {
	yes, no, null string
	comma, colon  string
	text          func(w *writer, s *schema.Schema) (cfg.Expr, error) // strings
	key           func(w *writer, name string) (cfg.Expr, bool)
	freeKey       string // before and behind a key that the schema does not list
	json          bool   // arrays and objects may be JSON
}

// A place is arrays or objects of a schema.
type place struct {
	s *schema.Schema
	t schema.Types
}

// literal is any value of a schema.
func (w *writer) literal(t *tool, s *schema.Schema, p *spelling) (cfg.Expr, error) {
	constant := func(value *schema.Value, types schema.Types, text string) func() (cfg.Expr, error) {
		return func() (cfg.Expr, error) { return w.constant(t, s, value, types, text) }
	}
	return w.oneOf(s,
		constant(&schema.Value{Kind: schema.Boolean, Bool: true}, schema.TypeBoolean, p.yes),
		constant(&schema.Value{Kind: schema.Boolean}, schema.TypeBoolean, p.no),
		constant(&schema.Value{Kind: schema.Null}, schema.TypeNull, p.null),
		func() (cfg.Expr, error) { return w.json(t, s, anyNumber, nil) },
		func() (cfg.Expr, error) { return p.text(w, s) },
		func() (cfg.Expr, error) { return w.container(t, s, p, schema.TypeArray) },
		func() (cfg.Expr, error) { return w.container(t, s, p, schema.TypeObject) },
	)
}

// constant is a text that stands for a value, if the schema has it.
func (w *writer) constant(t *tool, s *schema.Schema, v *schema.Value, types schema.Types, text string) (cfg.Expr, error) {
	if !may(s, types) {
		return 0, noValue(s)
	}
	doc := &schema.Document{Schemas: slices.Clip(t.doc.Schemas)}
	doc.Root = doc.Add(s.Where, s.Draft)
	doc.Root.Const, doc.Root.AllOf = v, []*schema.Schema{s}
	if _, err := schema.CompileDocument(cfg.New(w.b.Limits()), doc, schema.Options{}); err != nil {
		return 0, err
	}
	return w.b.Bytes(text), nil
}

// container is the arrays or the objects of a schema, as a rule: schemas may hold themselves.
func (w *writer) container(t *tool, s *schema.Schema, p *spelling, of schema.Types) (cfg.Expr, error) {
	if !may(s, of) {
		return 0, noValue(s)
	}
	if r, ok := t.rules[place{s, of}]; ok {
		return w.b.Ref(r), nil
	}
	r := w.b.NewRule(s.Where)
	w.b.Lenient(r)
	t.rules[place{s, of}] = r
	e, err := w.inside(t, s, p, of)
	if err != nil && p.json {
		e, err = w.json(t, s, of, []string{"\x00"}) // a string with a NUL is rare, and gives the spelling that Python shares
	}
	w.b.Define(r, e)
	return w.b.Ref(r), err
}

func (w *writer) inside(t *tool, s *schema.Schema, p *spelling, of schema.Types) (cfg.Expr, error) {
	switch branches, err := w.branches(t, s, of); {
	case err != nil:
		return 0, err
	case branches != nil:
		var parts []func() (cfg.Expr, error)
		for _, b := range branches {
			parts = append(parts, func() (cfg.Expr, error) { return w.container(t, b, p, of) })
		}
		return w.oneOf(s, parts...)
	}
	if of == schema.TypeArray {
		return w.array(t, s, p)
	}
	return w.object(t, s, p)
}

// branches are the schemas of which one holds, where a schema says nothing else of its arrays or objects.
func (w *writer) branches(t *tool, s *schema.Schema, of schema.Types) ([]*schema.Schema, error) {
	list := s.AnyOf
	if s.OneOf != nil {
		list = s.OneOf
	}
	bare := *s
	bare.AnyOf, bare.OneOf = nil, nil
	if list == nil || s.AnyOf != nil && s.OneOf != nil || s.Ref != nil || len(s.AllOf) > 0 || hindrance(&bare) != "" ||
		len(s.Properties)+len(s.Required)+len(s.PrefixItems) > 0 || s.Items != nil || s.AdditionalProperties != nil || s.MinItems >= 0 || s.MaxItems >= 0 {
		return nil, nil
	}
	out := slices.DeleteFunc(slices.Clone(list), func(b *schema.Schema) bool { return !may(b, of) })
	if s.OneOf != nil && len(out) > 1 {
		return nil, refuse(s, "oneOf")
	}
	return out, nil
}

// object is {key: value, …}, in the schema's order.
func (w *writer) object(t *tool, s *schema.Schema, p *spelling) (cfg.Expr, error) {
	e, err := w.list(t, s, p, p)
	return w.b.Seq(w.b.Bytes("{"), e, w.b.Bytes("}")), err
}

// list is an object's members without its brackets; keys spells their names, p what they hold.
func (w *writer) list(t *tool, s *schema.Schema, keys, p *spelling) (cfg.Expr, error) {
	members, free, err := t.members(s)
	if err != nil {
		return 0, err
	}
	first, more := w.b.Bytes(""), w.b.Bytes("") // what may follow: nothing so far, and something
	if free != nil {
		if first, more, err = w.others(t, free, keys, p); err != nil {
			return 0, err
		}
	}
	for i := len(members) - 1; i >= 0; i-- {
		m := members[i]
		key, ok := keys.key(w, m.name)
		if !ok {
			return 0, badKey(m.value, m.name)
		}
		value, err := maybe(w.literal(t, m.value, p))
		if err != nil || len(value) == 0 && m.required {
			return 0, notWritten(err, m.value)
		}
		for _, v := range value {
			one := w.b.Seq(key, w.b.Bytes(keys.colon), v)
			withFirst, withMore := w.b.Seq(one, more), w.b.Seq(w.b.Bytes(p.comma), one, more)
			if !m.required {
				withFirst, withMore = w.b.Alt(withFirst, first), w.b.Alt(withMore, more)
			}
			first, more = withFirst, withMore
		}
	}
	return first, w.b.Err()
}

// others are members that the schema does not list.
func (w *writer) others(t *tool, free *schema.Schema, keys, p *spelling) (first, more cfg.Expr, err error) {
	value, err := maybe(w.literal(t, free, p))
	if err != nil || len(value) == 0 {
		return w.b.Bytes(""), w.b.Bytes(""), err
	}
	key, err := w.regexp(freeKey)
	if err != nil {
		return 0, 0, err
	}
	quote := w.b.Bytes(keys.freeKey)
	one := w.b.Seq(quote, key, quote, w.b.Bytes(keys.colon), value[0])
	more = w.b.Repeat(w.b.Seq(w.b.Bytes(p.comma), one), 0, -1)
	return w.b.Opt(w.b.Seq(one, more)), more, nil
}
