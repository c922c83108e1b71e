package calls

import (
	"errors"
	"slices"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/schema"
)

// anyNumber is all numbers.
const anyNumber = schema.TypeNumber | schema.TypeInteger

// jsonObject is a tool's arguments as JSON.
func jsonObject(w *writer, t *tool) (cfg.Expr, error) {
	return w.json(t, t.doc.Root, schema.TypeObject, nil)
}

// json is the values of a schema that have one of the types, as JSON; no string in them has one of the words, and with
// any words at all strings have no needless escapes.
func (w *writer) json(t *tool, s *schema.Schema, types schema.Types, words []string) (cfg.Expr, error) {
	if !may(s, types) {
		return 0, noValue(s)
	}
	doc := &schema.Document{Schemas: slices.Clip(t.doc.Schemas)}
	root := doc.Add(s.Where, s.Draft)
	root.Types, root.AllOf = types, []*schema.Schema{s}
	if len(words) > 0 {
		root.AllOf = append(root.AllOf, plain(doc, s, words))
	}
	doc.Root = root
	return schema.CompileDocument(w.b, doc, schema.Options{})
}

// plain is values whose strings and names have none of the words in them.
func plain(doc *schema.Document, like *schema.Schema, words []string) *schema.Schema {
	pattern := anyOf(words)
	has, text := doc.Add(like.Where, like.Draft), doc.Add(like.Where, like.Draft)
	has.Types, has.Pattern = schema.TypeString, &pattern
	text.Not = has
	all := doc.Add(like.Where, like.Draft)
	all.Not, all.PropertyNames = has, text
	all.Items, all.AdditionalProperties = all, all
	return all
}

// maybe leaves out what has no values.
func maybe(e cfg.Expr, err error) ([]cfg.Expr, error) {
	var empty *schema.Error
	if errors.As(err, &empty) && empty.Reason == schema.Empty {
		return nil, nil
	}
	return []cfg.Expr{e}, err
}

// oneOf is any of what has values; it is an error if nothing has.
func (w *writer) oneOf(s *schema.Schema, parts ...func() (cfg.Expr, error)) (cfg.Expr, error) {
	var all []cfg.Expr
	for _, part := range parts {
		e, err := maybe(part())
		if err != nil {
			return 0, err
		}
		all = append(all, e...)
	}
	if len(all) == 0 {
		return 0, noValue(s)
	}
	return w.b.Alt(all...), w.b.Err()
}

func noValue(s *schema.Schema) error {
	return &schema.Error{Reason: schema.Empty, Where: s.Where, Detail: "the dialect can write no value that satisfies the schema"}
}

// may says whether a schema may have values of one of the types; it does not look at all keywords.
func may(s *schema.Schema, types schema.Types) bool {
	for _, p := range together(s) {
		if p.Bool != nil && !*p.Bool || p.Types&types == 0 {
			return false
		}
		if p.Enum != nil && !slices.ContainsFunc(p.Enum, func(v *schema.Value) bool { return kinds[v.Kind]&types != 0 }) {
			return false
		}
		if p.Const != nil && kinds[p.Const.Kind]&types == 0 {
			return false
		}
		for _, list := range [][]*schema.Schema{p.AnyOf, p.OneOf} {
			if list != nil && !slices.ContainsFunc(list, func(b *schema.Schema) bool { return may(b, types) }) {
				return false
			}
		}
	}
	return true
}

// kinds are the types of values.
var kinds = [...]schema.Types{
	schema.Null: schema.TypeNull, schema.Boolean: schema.TypeBoolean, schema.Number: anyNumber,
	schema.String: schema.TypeString, schema.Array: schema.TypeArray, schema.Object: schema.TypeObject,
}
