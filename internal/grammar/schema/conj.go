package schema

import (
	"encoding/binary"
	"slices"
)

// lit is a schema that a value must satisfy, or must not: twice the schema's ID, plus one if negated.
type lit int32

func (l lit) negated() bool { return l&1 != 0 }

// conj is what a value must satisfy: all of lits. Conjs are interned; the names of their sets of
// schemas are what recursion comes back to, so there are finitely many of them.
type conj struct {
	id   int
	lits []lit // sorted; none: any value

	busy  bool // forms are being computed
	known bool
	forms []*form
}

// intern is the conj of literals; of a schema and its negation, never.
func (c *compiler) intern(lits []lit) (*conj, error) {
	slices.Sort(lits)
	lits = slices.Compact(lits)
	for i := 1; i < len(lits); i++ {
		if lits[i]>>1 == lits[i-1]>>1 {
			return c.never, nil
		}
	}
	key := make([]byte, 0, 4*len(lits))
	for _, l := range lits {
		key = binary.LittleEndian.AppendUint32(key, uint32(l))
	}
	if found := c.conjs[string(key)]; found != nil {
		return found, nil
	}
	if c.lits += len(lits); len(c.conjs) >= maxConjs || c.lits > maxLits {
		return nil, &Error{Limit, "", c.doc.Schemas[lits[0]>>1].Where, "the schema combines its parts in more than " + itoa(maxConjs) + " ways, or in too large ones"}
	}
	out := &conj{id: len(c.conjs), lits: lits}
	c.conjs[string(key)] = out
	return out, nil
}

// of is the conj of one schema.
func (c *compiler) of(s *Schema, negated bool) (*conj, error) {
	lits, possible := appendLits(nil, s, negated)
	if !possible {
		return c.never, nil
	}
	return c.intern(lits)
}

// appendLits looks through schemas that are nothing but references, conjunctions and negations, so
// that what means the same gets the same name.
func appendLits(lits []lit, s *Schema, negated bool) (out []lit, possible bool) {
	if s.Bool != nil {
		return lits, *s.Bool != negated
	}
	if s.hasAssertions() || len(s.AnyOf)+len(s.OneOf) > 0 || s.If != nil || len(s.DependentSchemas) > 0 ||
		negated && len(s.parts()) > 1 {
		l := lit(s.ID << 1)
		if negated {
			l++
		}
		return append(lits, l), true
	}
	parts := s.parts()
	if len(parts) == 0 {
		return lits, !negated
	}
	for _, p := range parts {
		if lits, possible = appendLits(lits, p.schema, p.negated != negated); !possible {
			return nil, false
		}
	}
	return lits, true
}

type part struct {
	schema  *Schema
	negated bool
}

// parts are the schemas that must all hold besides the assertions of s.
func (s *Schema) parts() []part {
	var out []part
	if s.Ref != nil {
		out = append(out, part{s.Ref, false})
	}
	for _, t := range s.AllOf {
		out = append(out, part{t, false})
	}
	if s.Not != nil {
		out = append(out, part{s.Not, true})
	}
	return out
}

// hasAssertions says whether s has keywords other than those that apply schemas to the same value.
func (s *Schema) hasAssertions() bool {
	return s.Types != AnyType || s.Enum != nil || s.Const != nil || s.Minimum != nil || s.Maximum != nil ||
		s.MultipleOf != nil || s.MinLength >= 0 || s.MaxLength >= 0 || s.Pattern != nil || s.Format != "" ||
		s.hasArray() || s.hasObject()
}

func (s *Schema) hasArray() bool {
	return s.PrefixItems != nil || s.Items != nil || s.Contains != nil || s.MinItems >= 0 || s.MaxItems >= 0 ||
		s.UniqueItems || s.UnevaluatedItems != nil
}

func (s *Schema) hasObject() bool {
	return s.Properties != nil || s.PatternProperties != nil || s.AdditionalProperties != nil ||
		s.PropertyNames != nil || len(s.Required) > 0 || s.MinProperties >= 0 || s.MaxProperties >= 0 ||
		len(s.DependentRequired) > 0 || s.UnevaluatedProperties != nil
}

// and is the conjunction of two conjs.
func (c *compiler) and(a, b *conj) (*conj, error) {
	switch {
	case a == b || b == c.free || a == c.never:
		return a, nil
	case a == c.free || b == c.never:
		return b, nil
	}
	key := [2]int{min(a.id, b.id), max(a.id, b.id)}
	if found := c.ands[key]; found != nil {
		return found, nil
	}
	out, err := c.intern(slices.Concat(a.lits, b.lits))
	if err == nil {
		c.ands[key] = out
	}
	return out, err
}
