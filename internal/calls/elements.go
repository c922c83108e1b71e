package calls

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spillway/spillway/internal/chat"
	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/schema"
)

// maxElements is how deep elements nest; what is deeper is written as JSON.
const maxElements = 16

// elements are a tool's arguments as MiniMax M3 writes them: an element for each, with elements in it for the members
// of objects and the items of arrays.
func elements(w *writer, t *tool) (cfg.Expr, error) {
	return w.elements(t, t.doc.Root, 0, t.typing.Argument)
}

func (w *writer) elements(t *tool, s *schema.Schema, depth int, child func(key string) any) (cfg.Expr, error) {
	members, free, err := t.members(s)
	if err != nil {
		return 0, err
	}
	var all []cfg.Expr
	for _, m := range members {
		if badElement(m.name) {
			return 0, badKey(m.value, m.name)
		}
		e, err := maybe(w.element(t, m.name, m.value, child(m.name), depth))
		if err != nil || len(e) == 0 && m.required {
			return 0, notWritten(err, m.value)
		}
		all = append(all, w.optional(e, m.required)...)
	}
	if free != nil && depth > 0 {
		return 0, refuse(s, "additionalProperties") // names of opening and closing tags cannot be compared
	}
	return w.b.Seq(all...), w.b.Err()
}

func badElement(name string) bool {
	return name == "" || len(name) > maxWord || name[0] == '/' || !utf8.ValidString(name) || strings.ContainsAny(name, ">\n")
}

// element is a value between tags.
func (w *writer) element(t *tool, name string, s *schema.Schema, raw any, depth int) (cfg.Expr, error) {
	e, err := w.inElement(t, s, raw, depth)
	return w.b.Seq(w.text(m3+"<"+name+">"), e, w.text(m3+"</"+name+">")), err
}

// An elementPlace is values of a schema that the parser knows as another.
type elementPlace struct {
	s   *schema.Schema
	raw *chat.Object
}

// inElement is a rule for objects and arrays, which may hold themselves; where they have no elements they are JSON.
func (w *writer) inElement(t *tool, s *schema.Schema, raw any, depth int) (cfg.Expr, error) {
	types := t.typing.Types(raw)
	object, ok := raw.(*chat.Object)
	if !ok || len(types) != 1 || types[0] != "object" && types[0] != "array" {
		return w.value(t, s, types)
	}
	at := elementPlace{s, object}
	if r, ok := t.elements[at]; ok {
		return w.b.Ref(r), nil
	}
	r := w.b.NewRule(s.Where)
	w.b.Lenient(r)
	t.elements[at] = r
	e, err := w.nested(t, s, object, types[0], depth)
	if err != nil {
		e, err = w.value(t, s, types)
	}
	w.b.Define(r, e)
	return w.b.Ref(r), err
}

// nested is the elements of an object or an array.
func (w *writer) nested(t *tool, s *schema.Schema, raw *chat.Object, of string, depth int) (cfg.Expr, error) {
	if depth == maxElements {
		return 0, refuse(s, of)
	}
	if of == "object" {
		if err := ownItem(t, s, raw); err != nil {
			return 0, err
		}
		return w.elements(t, s, depth+1, func(key string) any { return t.typing.Child(raw, key) })
	}
	items, err := itemsOf(t, s)
	if err != nil {
		return 0, err
	}
	if len(items.first) > 0 || !t.typing.List(raw) {
		return 0, refuse(s, "prefixItems")
	}
	return w.items(items, w.b.Bytes(""), func(s *schema.Schema) ([]cfg.Expr, error) {
		return maybe(w.element(t, "item", s, t.typing.Child(raw, "item"), depth+1))
	})
}

// ownItem says whether an object has a member that would make an array of it.
func ownItem(t *tool, s *schema.Schema, raw any) error {
	members, _, err := t.members(s)
	if err == nil && t.typing.List(raw) && slices.ContainsFunc(members, func(m member) bool { return m.name == "item" }) {
		return refuse(s, "properties")
	}
	return err
}
