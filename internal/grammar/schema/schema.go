package schema

import "math/big"

// Draft is a version of JSON Schema.
type Draft uint8

// The drafts that are read, in their order.
const (
	Draft4 Draft = iota + 1
	Draft6
	Draft7
	Draft2019
	Draft2020
)

// Types is a set of JSON types.
type Types uint8

// The types; TypeNumber holds all numbers, TypeInteger those without a fraction (1.0 is one, except in draft 4).
const (
	TypeNull Types = 1 << iota
	TypeBoolean
	TypeInteger
	TypeNumber
	TypeString
	TypeArray
	TypeObject
	AnyType = TypeNull | TypeBoolean | TypeInteger | TypeNumber | TypeString | TypeArray | TypeObject
)

// Bound is a limit of a number.
type Bound struct {
	Value     *big.Rat
	Exclusive bool
}

// Property is a name, or a pattern of names, and the schema of its values.
type Property struct {
	Name   string
	Schema *Schema
}

// Dependency says which names Name asks for.
type Dependency struct {
	Name  string
	Needs []string
}

// Schema is one schema in the terms of draft 2020-12, whatever draft it was written in. A nil
// pointer, a nil slice and -1 are an absent keyword. Annotations are left out. Schemas are shared
// and may be cyclic, but never through keywords that apply to the same value alone (Ref, AllOf,
// AnyOf, OneOf, Not, If, Then, Else, DependentSchemas).
type Schema struct {
	ID    int    // its place in Document.Schemas
	Where string // JSON pointer as a URI fragment: #/properties/a
	Draft Draft

	Bool *bool // a boolean schema: nothing else is set

	Ref   *Schema // $ref, or $dynamicRef and $recursiveRef that lead to one place alone
	Types Types   // AnyType where type is absent
	Enum  []*Value
	Const *Value

	Minimum, Maximum *Bound
	MultipleOf       *big.Rat

	MinLength, MaxLength int // characters
	Pattern              *string
	Format               string

	Properties                   []Property
	PatternProperties            []Property
	AdditionalProperties         *Schema
	PropertyNames                *Schema
	Required                     []string
	MinProperties, MaxProperties int
	DependentRequired            []Dependency
	DependentSchemas             []Property
	UnevaluatedProperties        *Schema

	PrefixItems              []*Schema
	Items                    *Schema // of the items after PrefixItems
	Contains                 *Schema
	MinContains, MaxContains int // of Contains; MinContains is 1 where absent
	MinItems, MaxItems       int
	UniqueItems              bool
	UnevaluatedItems         *Schema

	AllOf, AnyOf, OneOf []*Schema
	Not, If, Then, Else *Schema // Then and Else only where If is
}

// Document is a parsed schema with all that it refers to.
type Document struct {
	Root    *Schema
	Schemas []*Schema // Schemas[i].ID == i
}

// Add makes a schema of any value.
func (d *Document) Add(where string, draft Draft) *Schema {
	s := &Schema{
		ID: len(d.Schemas), Where: where, Draft: draft, Types: AnyType,
		MinLength: -1, MaxLength: -1, MinProperties: -1, MaxProperties: -1,
		MinItems: -1, MaxItems: -1, MinContains: -1, MaxContains: -1,
	}
	d.Schemas = append(d.Schemas, s)
	return s
}

// count is where the count of a keyword is kept, nil if it is no such keyword.
func (s *Schema) count(keyword string) *int {
	switch keyword {
	case "minLength":
		return &s.MinLength
	case "maxLength":
		return &s.MaxLength
	case "minItems":
		return &s.MinItems
	case "maxItems":
		return &s.MaxItems
	case "minContains":
		return &s.MinContains
	case "maxContains":
		return &s.MaxContains
	case "minProperties":
		return &s.MinProperties
	case "maxProperties":
		return &s.MaxProperties
	}
	return nil
}

// sub is where the one schema of a keyword is kept, nil if it is no such keyword.
func (s *Schema) sub(keyword string) **Schema {
	switch keyword {
	case "not":
		return &s.Not
	case "if":
		return &s.If
	case "then":
		return &s.Then
	case "else":
		return &s.Else
	case "additionalProperties":
		return &s.AdditionalProperties
	case "unevaluatedProperties":
		return &s.UnevaluatedProperties
	case "propertyNames":
		return &s.PropertyNames
	case "contains":
		return &s.Contains
	case "unevaluatedItems":
		return &s.UnevaluatedItems
	}
	return nil
}

// InPlace calls f with every schema that s applies to its own value.
func (s *Schema) InPlace(f func(*Schema)) {
	for _, t := range []*Schema{s.Ref, s.Not, s.If, s.Then, s.Else} {
		if t != nil {
			f(t)
		}
	}
	for _, list := range [][]*Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for _, t := range list {
			f(t)
		}
	}
	for _, p := range s.DependentSchemas {
		f(p.Schema)
	}
}
