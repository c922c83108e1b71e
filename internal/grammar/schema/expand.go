package schema

// expansion names the alternatives of a schema for one type.
type expansion struct {
	id       int
	negated  bool
	annotate bool
	t        Types
}

// oneTypes are the types that alternatives have; TypeNumber stands for integers as well.
var oneTypes = [...]Types{TypeNull, TypeBoolean, TypeNumber, TypeString, TypeArray, TypeObject}

// expand gives the alternatives of s, or of its negation, for values of type t: a value satisfies s
// exactly if it satisfies one of them. With annotate, every combination of branches that hold is an
// alternative of its own, so that each says which properties and items it evaluates.
func (c *compiler) expand(s *Schema, negated, annotate bool, t Types) ([]*alt, error) {
	key := expansion{s.ID, negated, annotate, t}
	if found, ok := c.expansions[key]; ok {
		return found, nil
	}
	if err := c.step(s, 1); err != nil {
		return nil, err
	}
	var out []*alt
	var err error
	switch {
	case s.Bool != nil:
		if *s.Bool != negated {
			out = []*alt{{t: t}}
		}
	case negated:
		out, err = c.expandNegation(s, t)
	default:
		out, err = c.expandSchema(s, annotate, t)
	}
	if err != nil {
		return nil, err
	}
	c.expansions[key] = out
	return out, nil
}

func (c *compiler) expandSchema(s *Schema, annotate bool, t Types) ([]*alt, error) {
	if !s.hasType(t) {
		return nil, nil
	}
	unevaluated := t == TypeObject && s.UnevaluatedProperties != nil || t == TypeArray && s.UnevaluatedItems != nil
	annotate = annotate || unevaluated
	own, err := c.ownAlt(s, annotate, t)
	if err != nil || own == nil {
		return nil, err
	}
	out := []*alt{own}
	with := func(list []*alt, err error) error {
		if err == nil {
			out, err = c.cross(s, out, list)
		}
		return err
	}
	for _, p := range s.parts() {
		if err := with(c.expand(p.schema, p.negated, annotate && !p.negated, t)); err != nil {
			return nil, err
		}
	}
	if err := with(c.expandIf(s, annotate, t)); err != nil {
		return nil, err
	}
	if err := with(c.expandAny(s, annotate, t)); err != nil {
		return nil, err
	}
	if err := with(c.expandOne(s, annotate, t)); err != nil {
		return nil, err
	}
	if err := c.expandDependents(s, annotate, t, with); err != nil {
		return nil, err
	}
	if unevaluated {
		return c.addUnevaluated(s, t, out)
	}
	return out, nil
}

// hasType says whether values of type t can satisfy the keyword type of s.
func (s *Schema) hasType(t Types) bool {
	if t == TypeNumber {
		t |= TypeInteger
	}
	return s.Types&t != 0
}

// free is what any value of type t satisfies.
func free(t Types) []*alt { return []*alt{{t: t}} }

func (c *compiler) expandIf(s *Schema, annotate bool, t Types) ([]*alt, error) {
	if s.If == nil || s.Then == nil && s.Else == nil && !annotate {
		return free(t), nil
	}
	branch := func(negated bool, then *Schema) ([]*alt, error) {
		cond, err := c.expand(s.If, negated, annotate && !negated, t)
		if err != nil || then == nil {
			return cond, err
		}
		list, err := c.expand(then, false, annotate, t)
		if err != nil {
			return nil, err
		}
		return c.cross(s, cond, list)
	}
	yes, err := branch(false, s.Then)
	if err != nil {
		return nil, err
	}
	no, err := branch(true, s.Else)
	return append(yes[:len(yes):len(yes)], no...), err
}

// maxSubsets bounds the branches of anyOf of which every combination is an alternative.
const maxSubsets = 5

// expandAny takes the branches one by one; where it matters which properties they evaluate, all
// combinations of branches as well.
func (c *compiler) expandAny(s *Schema, annotate bool, t Types) ([]*alt, error) {
	if s.AnyOf == nil {
		return free(t), nil
	}
	var lists [][]*alt
	var out []*alt
	for _, b := range s.AnyOf {
		list, err := c.expand(b, false, annotate, t)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			lists = append(lists, list)
		}
		out = append(out, list...)
	}
	if len(out) > maxAlts {
		return nil, &Error{Limit, "anyOf", s.Where, "has more than " + itoa(maxAlts) + " alternatives"}
	}
	if !annotate {
		return withFree(out), nil
	}
	if len(lists) > maxSubsets {
		return nil, Refuse(s, "anyOf", "below unevaluatedProperties or unevaluatedItems has more than %d branches", maxSubsets)
	}
	for set := range 1 << len(lists) {
		if set&(set-1) == 0 {
			continue // one branch alone is there
		}
		both := free(t)
		for i, list := range lists {
			if set&(1<<i) == 0 {
				continue
			}
			var err error
			if both, err = c.cross(s, both, list); err != nil {
				return nil, err
			}
		}
		out = append(out, both...)
	}
	return out, nil
}

// withFree drops what a free alternative makes needless.
func withFree(list []*alt) []*alt {
	for _, x := range list {
		if x.isFree() {
			return []*alt{x}
		}
	}
	return list
}

// expandOne takes each branch, and the contrary of those others that may hold at the same time.
func (c *compiler) expandOne(s *Schema, annotate bool, t Types) ([]*alt, error) {
	if s.OneOf == nil {
		return free(t), nil
	}
	lists := make([][]*alt, len(s.OneOf))
	for i, b := range s.OneOf {
		var err error
		if lists[i], err = c.expand(b, false, annotate, t); err != nil {
			return nil, err
		}
	}
	var out []*alt
	for i := range lists {
		branch := lists[i]
		for j := range lists {
			if len(branch) == 0 {
				break
			}
			if i == j {
				continue
			}
			apart, err := c.apart(lists[i], lists[j])
			if err != nil {
				return nil, err
			}
			if apart {
				continue
			}
			others, err := c.expand(s.OneOf[j], true, false, t)
			if err != nil {
				return nil, withKeyword(err, s, "oneOf", "branches %d and %d may hold together, and %d cannot be excluded", i, j, j)
			}
			if branch, err = c.cross(s, branch, others); err != nil {
				return nil, err
			}
		}
		out = append(out, branch...)
	}
	return out, nil
}

// withKeyword puts a refusal down to the keyword that asked for what cannot be done.
func withKeyword(err error, s *Schema, keyword, format string, args ...any) error {
	if e, ok := err.(*Error); ok && e.Reason == Unsupported {
		return Refuse(s, keyword, format+": %v", append(args, e)...)
	}
	return err
}

// apart says whether no value satisfies an alternative of both lists.
func (c *compiler) apart(a, b []*alt) (bool, error) {
	for _, x := range a {
		for _, y := range b {
			if no, err := c.contradict(x, y); err != nil {
				return false, err
			} else if no {
				continue
			}
			z := x.and(y)
			if z == nil {
				continue
			}
			forms, err := c.finish(z)
			if err != nil || len(forms) > 0 {
				return false, err
			}
		}
	}
	return true, nil
}

// expandDependents splits over the presence of each property that something depends on.
func (c *compiler) expandDependents(s *Schema, annotate bool, t Types, with func([]*alt, error) error) error {
	if t != TypeObject {
		return nil
	}
	for _, d := range s.DependentSchemas {
		then, err := c.expand(d.Schema, false, annotate, t)
		if err != nil {
			return err
		}
		there, err := c.cross(s, []*alt{c.present(s, d.Name)}, then)
		if err != nil {
			return err
		}
		if err := with(append(there, c.absent(s, d.Name)), nil); err != nil {
			return err
		}
	}
	for _, d := range s.DependentRequired {
		if len(d.Needs) == 0 {
			continue
		}
		there := c.present(s, append([]string{d.Name}, d.Needs...)...)
		if err := with([]*alt{there, c.absent(s, d.Name)}, nil); err != nil {
			return err
		}
	}
	return nil
}

// present is an object with the given properties.
func (c *compiler) present(s *Schema, names ...string) *alt {
	return &alt{t: TypeObject, objects: []*objectPart{{s: s, required: names, max: -1}}}
}

// absent is an object without a property.
func (c *compiler) absent(s *Schema, name string) *alt {
	return &alt{t: TypeObject, objects: []*objectPart{{
		s: s, names: []string{name}, values: map[string]*conj{name: c.never}, max: -1,
	}}}
}
