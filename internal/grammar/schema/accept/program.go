// Package accept checks JSON texts against a schema while they arrive, byte by byte: any spelling, order of
// properties and white space that JSON allows. A text is refused at the first byte after which the schema's
// keywords decide that no end of it is valid.
//
// Names that occur twice in an object are refused, as by Go's encoding/json/v2 and I-JSON (RFC 7493): parsers
// differ in which value they take. Lone surrogates in escapes read as U+FFFD, as in Go.
package accept

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spillway/spillway/internal/grammar/regular"
	"github.com/spillway/spillway/internal/grammar/schema"
)

// Options say how a schema is meant.
type Options struct {
	// IgnoreFormats takes the keyword format for an annotation, as the specification does unless told otherwise.
	IgnoreFormats bool
	Limits        regular.Limits // of all patterns and formats together
}

// A Program is a schema made ready. It is immutable and for any number of goroutines.
type Program struct {
	root  *node
	track bool // a schema has unevaluatedItems or unevaluatedProperties
}

// A node is a schema made ready.
type node struct {
	s       *schema.Schema
	choices []*choice // enum, const

	pattern *pattern
	format  *format

	all, any, one         []*node // of the same value
	not, iff, then, else_ *node
	dependent             []property

	properties    map[string]*node
	patterns      []patterned
	additional    *node
	names         *node
	needs         []need
	unevaluated   *node // properties
	prefix        []*node
	items         *node
	contains      *node
	unevaluatedIt *node // items
}

type property struct {
	name string
	node *node
}

type patterned struct {
	match *pattern
	node  *node
}

// A need is what must be there if a name is; of required, the name is absent.
type need struct {
	keyword string
	name    *string
	needs   []string
}

// Compile makes a schema ready. Errors about its keywords are of type *schema.Error.
func Compile(doc *schema.Document, o Options) (*Program, error) {
	c := &compiler{options: o, build: regular.NewBuilder(o.Limits), nodes: make([]*node, len(doc.Schemas)), patterns: map[string]*pattern{}}
	for i, s := range doc.Schemas {
		c.nodes[i] = &node{s: s}
	}
	p := &Program{root: c.nodes[doc.Root.ID]}
	for _, n := range c.nodes {
		if err := c.fill(n); err != nil {
			return nil, err
		}
		p.track = p.track || n.unevaluated != nil || n.unevaluatedIt != nil
	}
	return p, nil
}

type compiler struct {
	options  Options
	build    *regular.Builder
	nodes    []*node
	patterns map[string]*pattern
}

func (c *compiler) node(s *schema.Schema) *node {
	if s == nil {
		return nil
	}
	return c.nodes[s.ID]
}

func (c *compiler) list(schemas []*schema.Schema) (nodes []*node) {
	for _, s := range schemas {
		nodes = append(nodes, c.node(s))
	}
	return nodes
}

func (c *compiler) fill(n *node) error {
	s := n.s
	n.all, n.any, n.one = c.list(s.AllOf), c.list(s.AnyOf), c.list(s.OneOf)
	if s.Ref != nil {
		n.all = append(n.all, c.node(s.Ref))
	}
	n.not, n.iff, n.then, n.else_ = c.node(s.Not), c.node(s.If), c.node(s.Then), c.node(s.Else)
	n.prefix, n.items, n.contains, n.unevaluatedIt = c.list(s.PrefixItems), c.node(s.Items), c.node(s.Contains), c.node(s.UnevaluatedItems)
	n.additional, n.names, n.unevaluated = c.node(s.AdditionalProperties), c.node(s.PropertyNames), c.node(s.UnevaluatedProperties)
	if s.Enum != nil {
		n.choices = append(n.choices, newChoice("enum", s.Enum))
	}
	if s.Const != nil {
		n.choices = append(n.choices, newChoice("const", []*schema.Value{s.Const}))
	}
	if err := c.fillObject(n); err != nil {
		return err
	}
	return c.fillString(n)
}

func (c *compiler) fillObject(n *node) (err error) {
	n.properties = make(map[string]*node, len(n.s.Properties))
	for _, p := range n.s.Properties {
		n.properties[p.Name] = c.node(p.Schema)
	}
	for _, p := range n.s.PatternProperties {
		d, err := c.pattern(n.s, "patternProperties", p.Name)
		if err != nil {
			return err
		}
		n.patterns = append(n.patterns, patterned{d, c.node(p.Schema)})
	}
	for _, d := range n.s.DependentSchemas {
		n.dependent = append(n.dependent, property{d.Name, c.node(d.Schema)})
	}
	if len(n.s.Required) > 0 {
		n.needs = append(n.needs, need{keyword: "required", needs: n.s.Required})
	}
	for _, d := range n.s.DependentRequired {
		n.needs = append(n.needs, need{"dependentRequired", &d.Name, d.Needs})
	}
	return nil
}

func (c *compiler) fillString(n *node) (err error) {
	if n.s.Pattern != nil {
		if n.pattern, err = c.pattern(n.s, "pattern", *n.s.Pattern); err != nil {
			return err
		}
	}
	if n.s.Format == "" || c.options.IgnoreFormats {
		return nil
	}
	n.format, err = c.format(n.s, n.s.Format)
	return err
}

// refused is an error of package regular as one of a keyword.
func refused(s *schema.Schema, keyword string, err error) error {
	reason := schema.Invalid
	var limit *regular.LimitError
	var syntax *regular.SyntaxError
	switch {
	case errors.As(err, &limit):
		reason = schema.Limit
	case errors.As(err, &syntax) && syntax.Refused:
		reason = schema.Unsupported
	}
	return &schema.Error{Reason: reason, Keyword: keyword, Where: s.Where, Detail: err.Error()}
}

// A choice is the values of enum or const by kind.
type choice struct {
	keyword    string
	values     []*schema.Value
	texts      []string // of strings, in order
	containers bool     // an array or object is among the values
}

func newChoice(keyword string, values []*schema.Value) *choice {
	c := &choice{keyword: keyword, values: values}
	for _, v := range values {
		switch v.Kind {
		case schema.String:
			c.texts = append(c.texts, v.Text)
		case schema.Array, schema.Object:
			c.containers = true
		}
	}
	slices.Sort(c.texts)
	c.texts = slices.Compact(c.texts)
	return c
}

// has says whether a value is among the choices.
func (c *choice) has(v *schema.Value) bool { return slices.ContainsFunc(c.values, v.Equal) }

// hasKind says whether a choice is of a kind.
func (c *choice) hasKind(k schema.Kind) bool {
	return slices.ContainsFunc(c.values, func(v *schema.Value) bool { return v.Kind == k })
}

func (c *choice) detail() string {
	if len(c.values) == 1 {
		return fmt.Sprintf("is not %.80s", c.values[0])
	}
	text := ""
	for i, v := range c.values {
		if i > 0 {
			text += ", "
		}
		if text += v.String(); len(text) > 80 {
			return fmt.Sprintf("is none of %d values", len(c.values))
		}
	}
	return "is none of " + text
}
