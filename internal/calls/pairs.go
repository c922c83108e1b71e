package calls

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/schema"
)

// freeKey is a name of an argument where the schema lists none.
const freeKey = "[A-Za-z_][A-Za-z0-9_]{0,63}"

// pairs are a tool's arguments, each in the form's pair, in the schema's order.
func pairs(w *writer, t *tool) (cfg.Expr, error) {
	members, free, err := t.members(t.doc.Root)
	if err != nil {
		return 0, err
	}
	var all []cfg.Expr
	for _, m := range members {
		if w.f.badKey(m.name) {
			return 0, badKey(m.value, m.name)
		}
		e, err := maybe(w.pair(t, w.b.Bytes(m.name), m.name, m.value))
		if err != nil || len(e) == 0 && m.required {
			return 0, notWritten(err, m.value)
		}
		all = append(all, w.optional(e, m.required)...)
	}
	if free != nil {
		key, err := w.regexp(freeKey)
		if err != nil {
			return 0, err
		}
		e, err := maybe(w.pair(t, key, "", free))
		if err != nil {
			return 0, err
		}
		for _, one := range e {
			all = append(all, w.b.Repeat(one, 0, -1))
		}
	}
	return w.b.Seq(all...), w.b.Err()
}

func notWritten(err error, s *schema.Schema) error {
	if err != nil {
		return err
	}
	return noValue(s)
}

func (w *writer) optional(e []cfg.Expr, required bool) []cfg.Expr {
	if !required && len(e) > 0 {
		return []cfg.Expr{w.b.Opt(e[0])}
	}
	return e
}

// badKey says that a pair cannot have a key: what stands behind it would end it too soon.
func (f *form) badKey(key string) bool {
	_, after, _ := strings.Cut(f.pair, "$key")
	return key == "" || len(key) > maxWord || !utf8.ValidString(key) || strings.ContainsAny(key, "\n&"+after[:1])
}

// pair is a key and its value.
func (w *writer) pair(t *tool, key cfg.Expr, name string, s *schema.Schema) (cfg.Expr, error) {
	expand := func(value cfg.Expr, says string) (cfg.Expr, error) {
		says = strings.TrimSpace(says)
		return w.expand(w.f.pair, map[string]cfg.Expr{"key": key, "value": value, "type": w.b.Bytes(says), "string": w.b.Bytes(says)})
	}
	switch {
	case strings.Contains(w.f.pair, "$string"):
		return w.saying(t, s, expand, []typed{{"true", schema.TypeString}, {"false", schema.AnyType &^ schema.TypeString}})
	case strings.Contains(w.f.pair, "$type"):
		return w.saying(t, s, expand, []typed{
			{"string", schema.TypeString}, {"number", anyNumber}, {"boolean", schema.TypeBoolean},
			{"null", schema.TypeNull}, {"object", schema.TypeObject}, {"array", schema.TypeArray},
		})
	}
	value, err := w.value(t, s, t.typing.Types(t.typing.Argument(name)))
	if err != nil {
		return 0, err
	}
	return expand(value, "")
}

// typed are the types of which a form says something.
type typed struct {
	says  string
	types schema.Types
}

// saying is a pair that says which type its value has.
func (w *writer) saying(t *tool, s *schema.Schema, expand func(cfg.Expr, string) (cfg.Expr, error), all []typed) (cfg.Expr, error) {
	var parts []func() (cfg.Expr, error)
	for _, one := range all {
		parts = append(parts, func() (cfg.Expr, error) {
			var value cfg.Expr
			var err error
			if one.types == schema.TypeString {
				value, err = w.raw(s, w.f.ends, nil)
			} else {
				value, err = w.json(t, s, one.types, w.f.ends)
			}
			if err != nil {
				return 0, err
			}
			return expand(value, one.says)
		})
	}
	return w.oneOf(s, parts...)
}

// value is a text that the parser reads as a value of the schema, of which it knows the types.
func (w *writer) value(t *tool, s *schema.Schema, types []string) (cfg.Expr, error) {
	others := slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "string" })
	switch {
	case len(others) == len(types):
		return w.json(t, s, schema.AnyType, w.f.ends)
	case len(others) == 0:
		return w.raw(s, w.f.ends, nil)
	}
	return w.oneOf(s,
		func() (cfg.Expr, error) { return w.json(t, s, typesOf(others), w.f.ends) },
		func() (cfg.Expr, error) { return w.raw(s, w.f.ends, others) })
}

// typesOf are types by their names.
func typesOf(names []string) (out schema.Types) {
	for _, name := range names {
		switch name {
		case "null":
			out |= schema.TypeNull
		case "boolean":
			out |= schema.TypeBoolean
		case "integer":
			out |= schema.TypeInteger
		case "number":
			out |= anyNumber
		case "array":
			out |= schema.TypeArray
		case "object":
			out |= schema.TypeObject
		}
	}
	return out
}
