package accept

import (
	"strings"

	"github.com/spillway/spillway/internal/grammar/schema"
)

// A kind is what the first byte of a value tells.
type kind uint8

const (
	kindNull kind = iota
	kindTrue
	kindFalse
	kindNumber
	kindString
	kindArray
	kindObject
)

func (k kind) types() schema.Types {
	return [...]schema.Types{schema.TypeNull, schema.TypeBoolean, schema.TypeBoolean, schema.TypeNumber | schema.TypeInteger,
		schema.TypeString, schema.TypeArray, schema.TypeObject}[k]
}

func (k kind) name() string {
	return [...]string{"null", "a boolean", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

func (k kind) value() schema.Kind {
	return [...]schema.Kind{schema.Null, schema.Boolean, schema.Boolean, schema.Number, schema.String, schema.Array, schema.Object}[k]
}

func typeNames(t schema.Types) string {
	var names []string
	add := func(bit schema.Types, name string) {
		if t&bit != 0 {
			names = append(names, name)
		}
	}
	add(schema.TypeNull, "null")
	add(schema.TypeBoolean, "boolean")
	if t&schema.TypeNumber == 0 {
		add(schema.TypeInteger, "integer")
	}
	add(schema.TypeNumber, "number")
	add(schema.TypeString, "string")
	add(schema.TypeArray, "array")
	add(schema.TypeObject, "object")
	return strings.Join(names, " or ")
}

// A frame is a value that is being read.
type frame struct {
	kind   kind
	isName bool    // of a property
	evals  []*eval // schemas before those that ask for them
	byNode map[*node]*eval
	text   strings.Builder // of a string, decoded; of a number, as it is
	chars  int

	names  []string // of an object's members so far
	known  map[string]int
	inName bool
	count  int // items that have begun

	value        *schema.Value // if it is needed: of the whole
	hash         uint64        // of the value
	capture      bool          // this value is needed
	captureItems bool          // its items are
}

// enter begins a value. The schemas that apply to it were subscribed by the value around.
func (c *Checker) enter(k kind) *frame {
	f := &frame{kind: k, byNode: map[*node]*eval{}}
	outer := c.top()
	switch {
	case outer == nil:
		root := c.apply(f, c.program.root)
		root.waiting = append(root.waiting, listener{role: roleRoot})
	case outer.kind == kindArray:
		c.item(outer, f)
	case outer.inName:
		f.isName = true
		c.name(outer, f)
	default:
		c.member(outer, f)
	}
	c.stack = append(c.stack, f)
	if outer != nil && !f.isName && (outer.capture || outer.kind == kindArray && outer.captureItems) {
		f.capture = true
	}
	for _, e := range f.evals {
		c.begin(e)
	}
	if k == kindObject {
		f.known = map[string]int{}
	}
	return f
}

func (c *Checker) top() *frame {
	if len(c.stack) == 0 {
		return nil
	}
	return c.stack[len(c.stack)-1]
}

// leave ends the innermost value.
func (c *Checker) leave() {
	f := c.top()
	if f.capture && f.value == nil {
		if f.value = c.scalarValue(f); f.value != nil {
			f.hash = c.hashScalar(f.value)
		}
	}
	for _, e := range f.evals {
		c.end(e)
	}
	c.stack = c.stack[:len(c.stack)-1]
	outer := c.top()
	switch {
	case outer == nil || c.refused != nil || c.broken != nil:
	case f.isName:
		c.nameEnds(outer, f)
	case outer.kind == kindArray:
		c.itemEnds(outer, f)
	case outer.capture:
		name := outer.names[len(outer.names)-1]
		outer.keep().Members = append(outer.value.Members, schema.Member{Name: name, Value: f.value})
		outer.hash = c.hashMember(outer.hash, name, f.hash)
	}
}

// keep is the value of a container that is captured.
func (f *frame) keep() *schema.Value {
	if f.value == nil {
		f.value = &schema.Value{Kind: f.kind.value()}
	}
	return f.value
}

// subscribe applies a schema to a value inside that of e.
func (c *Checker) subscribe(f *frame, n *node, e *eval, r role, index int) {
	sub := c.apply(f, n)
	sub.waiting = append(sub.waiting, listener{e, r, index})
}
