package schema

import (
	"math/big"
	"strconv"
)

// Limits of parsed schemas.
const (
	maxSchemas = 50_000
	maxChain   = 200     // schemas that apply to one value through references and combinations
	maxCount   = 1 << 30 // larger counts mean this one
)

// Parse reads a JSON Schema; $schema chooses the draft, 2020-12 if it is absent. References lead
// into the schema itself or into others, which are JSON Schema texts by absolute URI without
// fragment (nil: none); nothing is fetched. Parts that no reference reaches from the root are not
// looked at. Errors are *Error.
func Parse(text []byte, others map[string][]byte) (*Document, error) {
	v, err := ParseValue(text)
	if err != nil {
		if e, ok := err.(*Error); ok {
			return nil, e
		}
		return nil, &Error{Reason: Invalid, Detail: "the schema is not valid JSON: " + err.Error()}
	}
	p := &parser{reg: newRegistry(), others: others, schemas: map[*Value]*Schema{}, doc: &Document{}}
	root, err := p.reg.addDocument(rootURI, v, Draft2020, "#")
	if err != nil {
		return nil, err
	}
	if p.doc.Root, err = p.at(root); err != nil {
		return nil, err
	}
	for len(p.todo) > 0 { // a list instead of recursion: chains of references are as long as the text
		next := p.todo[0]
		p.todo = p.todo[1:]
		if err := p.read(next.place, next.schema); err != nil {
			return nil, err
		}
	}
	if err := p.checkDynamic(); err != nil {
		return nil, err
	}
	return p.doc, checkChains(p.doc)
}

type parser struct {
	reg     *registry
	others  map[string][]byte
	schemas map[*Value]*Schema
	doc     *Document
	todo    []task
	dynamic []dynamic
}

// dynamic is a reference that leads to an anchor of the dynamic scope.
type dynamic struct {
	schema          *Schema
	keyword, anchor string
}

type task struct {
	place  *place
	schema *Schema
}

// at is the schema of a place; it is read later.
func (p *parser) at(pl *place) (*Schema, error) {
	if s := p.schemas[pl.value]; s != nil {
		return s, nil
	}
	if len(p.doc.Schemas) >= maxSchemas {
		return nil, &Error{Reason: Limit, Where: pl.where, Detail: "more than " + strconv.Itoa(maxSchemas) + " schemas"}
	}
	s := p.doc.Add(pl.where, pl.draft)
	p.schemas[pl.value] = s
	p.todo = append(p.todo, task{pl, s})
	return s, nil
}

// sub is the schema that a keyword of pl holds.
func (p *parser) sub(pl *place, v *Value, path string) (*Schema, error) {
	if known := p.reg.known[v]; known != nil {
		return p.at(known)
	}
	return p.at(&place{v, pl.base, pl.draft, pl.where + "/" + path})
}

func (p *parser) read(pl *place, s *Schema) error {
	v := pl.value
	switch v.Kind {
	case Boolean:
		s.Bool = &v.Bool
		return nil
	case Object:
	default:
		return &Error{Invalid, "", pl.where, "a schema is an object or a boolean"}
	}
	if ref := v.Get("$ref"); ref != nil && pl.draft < Draft2019 {
		return p.ref(pl, s, "$ref", ref) // what stands beside it does not count in these drafts
	}
	for _, m := range v.Members {
		if err := p.keyword(pl, s, m); err != nil {
			return err
		}
	}
	p.finish(v, s)
	return nil
}

// keyword reads one member of a schema; unknown ones are annotations.
func (p *parser) keyword(pl *place, s *Schema, m Member) error {
	if !pl.draft.has(m.Name) {
		return nil
	}
	for _, read := range []func(*place, *Schema, Member) (bool, error){
		p.references, p.scalars, p.counts, p.subschema, p.objects, p.arrays, p.combinations,
	} {
		if done, err := read(pl, s, m); done || err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) references(pl *place, s *Schema, m Member) (bool, error) {
	switch m.Name {
	case "$ref":
		return true, p.ref(pl, s, m.Name, m.Value)
	case "$dynamicRef", "$recursiveRef":
		return true, p.dynamicRef(pl, s, m)
	}
	return false, nil
}

func (p *parser) ref(pl *place, s *Schema, keyword string, v *Value) error {
	if v.Kind != String {
		return invalid(s, keyword, "is not a string")
	}
	target, err := p.lookup(pl, keyword, v.Text)
	if err != nil {
		return err
	}
	return p.setRef(s, target)
}

func (p *parser) setRef(s *Schema, target *place) error {
	t, err := p.at(target)
	if err != nil {
		return err
	}
	if s.Ref == nil {
		s.Ref = t
	} else {
		s.AllOf = append(s.AllOf, t)
	}
	return nil
}

// dynamicRef is a plain reference unless it meets a dynamic anchor.
func (p *parser) dynamicRef(pl *place, s *Schema, m Member) error {
	if m.Value.Kind != String {
		return invalid(s, m.Name, "is not a string")
	}
	target, err := p.lookup(pl, m.Name, m.Value.Text)
	if err != nil {
		return err
	}
	if m.Name == "$recursiveRef" {
		if a := target.value.Get("$recursiveAnchor"); a != nil && a.Bool {
			p.dynamic = append(p.dynamic, dynamic{s, m.Name, ""})
		}
	} else if a := target.value.Get("$dynamicAnchor"); a != nil {
		if _, fragment, _ := resolve(pl.base, m.Value.Text); a.Text == fragment {
			p.dynamic = append(p.dynamic, dynamic{s, m.Name, fragment})
		}
	}
	return p.setRef(s, target)
}

// checkDynamic refuses dynamic references whose anchor stands at several places of all documents.
func (p *parser) checkDynamic() error {
	for _, d := range p.dynamic {
		if len(p.reg.dynamic[d.anchor]) > 1 {
			return Refuse(d.schema, d.keyword, "may lead to several places: more than one schema has its dynamic anchor")
		}
	}
	return nil
}

// scalars reads the keywords of all types, of numbers and of strings.
func (p *parser) scalars(_ *place, s *Schema, m Member) (done bool, err error) {
	v := m.Value
	switch m.Name {
	case "type":
		return true, readTypes(s, v)
	case "enum":
		if v.Kind != Array {
			return true, invalid(s, "enum", "is not an array")
		}
		s.Enum = append([]*Value{}, v.Items...) // not nil
	case "const":
		s.Const = v
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return true, readBound(s, m)
	case "multipleOf":
		if v.Kind != Number || v.Number.Sign() <= 0 {
			return true, invalid(s, "multipleOf", "is not a number above 0")
		}
		s.MultipleOf = v.Number
	case "pattern":
		if v.Kind != String {
			return true, invalid(s, "pattern", "is not a string")
		}
		s.Pattern = &v.Text
	case "format":
		if v.Kind != String {
			return true, invalid(s, "format", "is not a string")
		}
		s.Format = v.Text
	default:
		return false, nil
	}
	return true, nil
}

func readTypes(s *Schema, v *Value) error {
	names := v.Items
	if v.Kind == String {
		names = []*Value{v}
	} else if v.Kind != Array || len(names) == 0 {
		return invalid(s, "type", "is neither a string nor an array of strings")
	}
	s.Types = 0
	for _, name := range names {
		t, ok := typeOf(name)
		if !ok {
			return invalid(s, "type", "%s is not a type; null, boolean, integer, number, string, array and object are", name)
		}
		s.Types |= t
	}
	return nil
}

func typeOf(name *Value) (Types, bool) {
	if name.Kind != String {
		return 0, false
	}
	switch name.Text {
	case "null":
		return TypeNull, true
	case "boolean":
		return TypeBoolean, true
	case "integer":
		return TypeInteger, true
	case "number":
		return TypeNumber | TypeInteger, true
	case "string":
		return TypeString, true
	case "array":
		return TypeArray, true
	case "object":
		return TypeObject, true
	}
	return 0, false
}

// readBound keeps the stricter of an inclusive and an exclusive bound; draft 4's booleans come in finish.
func readBound(s *Schema, m Member) error {
	exclusive := m.Name[0] == 'e'
	if exclusive && m.Value.Kind == Boolean {
		return nil
	}
	if m.Value.Kind != Number {
		return invalid(s, m.Name, "is not a number")
	}
	bound, sign := &s.Minimum, 1
	if m.Name == "maximum" || m.Name == "exclusiveMaximum" {
		bound, sign = &s.Maximum, -1
	}
	if *bound != nil {
		if c := m.Value.Number.Cmp((*bound).Value) * sign; c < 0 || c == 0 && !exclusive {
			return nil
		}
	}
	*bound = &Bound{m.Value.Number, exclusive}
	return nil
}

func (p *parser) counts(_ *place, s *Schema, m Member) (bool, error) {
	to := s.count(m.Name)
	if to == nil {
		return false, nil
	}
	v := m.Value
	if v.Kind != Number || !v.Number.IsInt() || v.Number.Sign() < 0 {
		return true, invalid(s, m.Name, "is not an integer of 0 or more")
	}
	*to = maxCount
	if v.Number.Num().Cmp(big.NewInt(maxCount)) < 0 {
		*to = int(v.Number.Num().Int64())
	}
	return true, nil
}

// subschema reads a keyword that holds one schema.
func (p *parser) subschema(pl *place, s *Schema, m Member) (done bool, err error) {
	to := s.sub(m.Name)
	switch {
	case to == nil:
		return false, nil
	case (m.Name == "then" || m.Name == "else") && pl.value.Get("if") == nil:
		return true, nil
	}
	*to, err = p.sub(pl, m.Value, m.Name)
	return true, err
}

func (p *parser) combinations(pl *place, s *Schema, m Member) (done bool, err error) {
	switch m.Name {
	case "allOf":
		list, err := p.list(pl, s, m)
		s.AllOf = append(s.AllOf, list...) // references may be there
		return true, err
	case "anyOf":
		s.AnyOf, err = p.list(pl, s, m)
	case "oneOf":
		s.OneOf, err = p.list(pl, s, m)
	default:
		return false, nil
	}
	return true, err
}

func (p *parser) list(pl *place, s *Schema, m Member) ([]*Schema, error) {
	if m.Value.Kind != Array || len(m.Value.Items) == 0 && m.Name != "prefixItems" && m.Name != "items" {
		return nil, invalid(s, m.Name, "is not an array of schemas")
	}
	out := make([]*Schema, len(m.Value.Items))
	for i, item := range m.Value.Items {
		var err error
		if out[i], err = p.sub(pl, item, m.Name+"/"+strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// finish reads what depends on two keywords.
func (p *parser) finish(v *Value, s *Schema) {
	if e := v.Get("exclusiveMinimum"); e != nil && e.Kind == Boolean && s.Minimum != nil {
		s.Minimum.Exclusive = e.Bool
	}
	if e := v.Get("exclusiveMaximum"); e != nil && e.Kind == Boolean && s.Maximum != nil {
		s.Maximum.Exclusive = e.Bool
	}
	if s.Contains != nil && s.MinContains < 0 {
		s.MinContains = 1
	}
}
