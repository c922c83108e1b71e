package schema

import (
	"math/big"
	"slices"
)

// alt is one way to satisfy a schema with a value of one type: all of its parts must hold. Alts are
// immutable and share their parts.
type alt struct {
	t       Types // one type; TypeNumber stands for all numbers
	values  []*Value
	listed  bool // the value is one of values
	exclude []*Value
	numbers []numberPart
	strings []stringPart
	arrays  []*arrayPart
	objects []*objectPart
}

// numberPart is one constraint of a number.
type numberPart struct {
	s        *Schema
	min, max *Bound
	step     *big.Rat // the number is a multiple of it, or is not if off
	off      bool
}

// stringPart is one constraint of a string: the keyword of a schema, or its contrary.
type stringPart struct {
	s       *Schema
	keyword string
	negated bool
}

// arrayPart is the constraints that one schema sets to an array.
type arrayPart struct {
	s         *Schema
	prefix    []*conj
	rest      *conj // nil: any
	contains  []contain
	min, max  int // max < 0: no bound
	unique    bool
	annotates bool // its items count as evaluated
}

// contain asks for min to max items from index from on that satisfy value.
type contain struct {
	s        *Schema
	value    *conj
	other    *conj // the negation of value
	from     int
	min, max int // max < 0: no bound
}

// objectPart is the constraints that one schema sets to an object.
type objectPart struct {
	s         *Schema
	names     []string
	values    map[string]*conj // of names
	required  []string
	patterns  []patternPart
	rest      *conj   // of names that are neither in names nor of a pattern; nil: any
	keys      *Schema // of all names, as strings; nil: any
	min, max  int     // max < 0: no bound
	some      *somePart
	annotates bool // its properties count as evaluated
}

// patternPart is what the values of names satisfy that a regular expression finds.
type patternPart struct {
	pattern string
	value   *conj
}

// somePart asks for a property with such a name and value.
type somePart struct {
	s        *Schema
	keyword  string
	value    *conj
	pattern  *string       // the name has it
	names    []string      // the name is none of them
	patterns []patternPart // and has none of them
	keys     *Schema       // and does not satisfy it
}

// cross is every pair of two lists of alts.
func (c *compiler) cross(s *Schema, a, b []*alt) ([]*alt, error) {
	if len(b) == 1 && b[0].isFree() {
		return a, nil
	}
	if len(a) == 1 && a[0].isFree() {
		return b, nil
	}
	var out []*alt
	for _, x := range a {
		for _, y := range b {
			if len(a)*len(b) > pruneFrom {
				if no, err := c.contradict(x, y); err != nil {
					return nil, err
				} else if no {
					continue
				}
			}
			if err := c.step(s, 1); err != nil {
				return nil, err
			}
			if z := x.and(y); z != nil {
				out = append(out, z)
			}
		}
		if len(out) > maxAlts {
			return nil, &Error{Limit, "", s.Where, "its parts combine to more than " + itoa(maxAlts) + " alternatives"}
		}
	}
	return out, nil
}

func (x *alt) isFree() bool {
	return !x.listed && x.exclude == nil && x.numbers == nil && x.strings == nil && x.arrays == nil && x.objects == nil
}

// and is both alts, nil if their values contradict.
func (x *alt) and(y *alt) *alt {
	if x.isFree() {
		return y
	}
	if y.isFree() {
		return x
	}
	z := &alt{t: x.t, values: x.values, listed: x.listed || y.listed,
		exclude: join(x.exclude, y.exclude), numbers: join(x.numbers, y.numbers), strings: join(x.strings, y.strings),
		arrays: join(x.arrays, y.arrays), objects: join(x.objects, y.objects)}
	switch {
	case x.listed && y.listed:
		z.values = common(x.values, y.values)
	case y.listed:
		z.values = y.values
	}
	if z.listed && len(z.values) == 0 {
		return nil
	}
	return z
}

func join[T any](a, b []T) []T {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	return append(a[:len(a):len(a)], b...)
}

func common(a, b []*Value) []*Value {
	var out []*Value
	in := setOf(b)
	for _, v := range a {
		if in[v.key()] {
			out = append(out, v)
		}
	}
	return out
}

// setOf has the keys of values.
func setOf(values []*Value) map[string]bool {
	set := make(map[string]bool, len(values))
	for _, v := range values {
		set[v.key()] = true
	}
	return set
}

func isOneOf(v *Value, list []*Value) bool { return slices.ContainsFunc(list, v.Equal) }
