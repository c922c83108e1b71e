package accept

import (
	"fmt"
	"strconv"

	"github.com/spillway/spillway/internal/grammar/schema"
)

// item lets the schemas of an array choose those of its next item.
func (c *Checker) item(array, f *frame) {
	index := array.count
	array.count++
	for _, e := range array.evals {
		if e.verdict != open {
			continue
		}
		if most := e.n.s.MaxItems; most >= 0 && array.count > most {
			c.fail(e, "maxItems", "has more than "+strconv.Itoa(most)+" items")
			continue
		}
		evaluated := true
		switch {
		case index < len(e.n.prefix):
			c.subscribe(f, e.n.prefix[index], e, roleChild, index)
		case e.n.items != nil:
			c.subscribe(f, e.n.items, e, roleChild, index)
		default:
			evaluated = false
		}
		if e.n.contains != nil {
			c.subscribe(f, e.n.contains, e, roleContains, index)
		}
		c.mark(e, index, evaluated)
		if e.n.unevaluatedIt != nil && !evaluated {
			c.subscribe(f, e.n.unevaluatedIt, e, roleUnevaluated, index)
		}
	}
}

// mark notes whether a keyword has evaluated a member or an item.
func (c *Checker) mark(e *eval, index int, evaluated bool) {
	if !c.program.track {
		return
	}
	for len(e.marks) <= index {
		e.marks = append(e.marks, false)
	}
	e.marks[index] = e.marks[index] || evaluated
}

func (c *Checker) heardContains(e *eval, ok bool, index int) {
	if !ok {
		return
	}
	e.matches++
	if e.n.s.Draft >= schema.Draft2020 {
		c.mark(e, index, true)
	}
	if most := e.n.s.MaxContains; most >= 0 && e.matches > most {
		c.fail(e, "maxContains", fmt.Sprintf("has more than %d items that contains is about", most))
	}
}

// itemEnds keeps an item if it is needed.
func (c *Checker) itemEnds(array, f *frame) {
	if array.capture {
		array.keep().Items = append(array.value.Items, f.value)
		array.hash = hashItem(array.hash, f.hash)
	}
	if !array.captureItems {
		return
	}
	for _, e := range array.evals {
		if e.verdict == open && e.n.s.UniqueItems {
			if twin, found := e.seen.add(f.value, f.hash, array.count-1); found {
				c.fail(e, "uniqueItems", fmt.Sprintf("has the same value at %d and %d", twin, array.count-1))
			}
		}
	}
}

// name lets the schemas of an object choose those of the name that begins.
func (c *Checker) name(object, f *frame) {
	for _, e := range object.evals {
		if e.verdict == open && e.n.names != nil {
			c.subscribe(f, e.n.names, e, roleName, len(object.names))
		}
	}
}

// nameEnds checks what a name alone tells.
func (c *Checker) nameEnds(object, f *frame) {
	name := f.text.String()
	object.inName = false
	if _, twice := object.known[name]; twice {
		c.syntax("the name %.60q occurs twice in an object", name)
		return
	}
	object.known[name] = len(object.names)
	object.names = append(object.names, name)
	for _, e := range object.evals {
		if e.verdict != open {
			continue
		}
		if most := e.n.s.MaxProperties; most >= 0 && len(object.names) > most {
			c.fail(e, "maxProperties", "has more than "+strconv.Itoa(most)+" properties")
			continue
		}
		c.eachOf(e.n, name, func(sub *node, keyword string) {
			if sub.s.Bool != nil && !*sub.s.Bool {
				c.fail(e, keyword, fmt.Sprintf("must have no property %.60q", name))
			}
		})
	}
}

// eachOf calls f with the schemas of properties, patternProperties and additionalProperties for a name.
func (c *Checker) eachOf(n *node, name string, f func(sub *node, keyword string)) {
	found := false
	if p := n.properties[name]; p != nil {
		found = true
		f(p, "properties")
	}
	for _, p := range n.patterns {
		if c.match(p.match, name) {
			found = true
			f(p.node, "patternProperties")
		}
	}
	if !found && n.additional != nil {
		f(n.additional, "additionalProperties")
	}
}

// member lets the schemas of an object choose those of a member's value.
func (c *Checker) member(object, f *frame) {
	index := len(object.names) - 1
	name := object.names[index]
	for _, e := range object.evals {
		if e.verdict != open {
			continue
		}
		evaluated := false
		c.eachOf(e.n, name, func(sub *node, _ string) {
			evaluated = true
			c.subscribe(f, sub, e, roleChild, index)
		})
		c.mark(e, index, evaluated)
		if e.n.unevaluated != nil && !evaluated {
			c.subscribe(f, e.n.unevaluated, e, roleUnevaluated, index)
		}
	}
}

// endContainer checks what the end of an array or object decides.
func (c *Checker) endContainer(e *eval) {
	for _, choice := range e.n.choices {
		if !choice.has(e.f.keep()) {
			c.fail(e, choice.keyword, choice.detail())
			return
		}
	}
	if e.f.kind == kindArray {
		c.endArray(e)
	} else {
		c.endObject(e)
	}
	if e.verdict == open && (e.n.unevaluated != nil && e.f.kind == kindObject || e.n.unevaluatedIt != nil && e.f.kind == kindArray) {
		c.endUnevaluated(e)
	}
}

func (c *Checker) endArray(e *eval) {
	s := e.n.s
	if e.f.count < s.MinItems {
		c.fail(e, "minItems", fmt.Sprintf("has %d items, fewer than %d", e.f.count, s.MinItems))
	}
	if e.n.contains != nil && e.matches < s.MinContains {
		c.fail(e, "contains", fmt.Sprintf("has %d items that contains is about, fewer than %d", e.matches, s.MinContains))
	}
}

func (c *Checker) endObject(e *eval) {
	has := func(name string) bool { _, ok := e.f.known[name]; return ok }
	for _, n := range e.n.needs {
		if n.name != nil && !has(*n.name) {
			continue
		}
		for _, name := range n.needs {
			if !has(name) {
				c.fail(e, n.keyword, fmt.Sprintf("has no property %.60q", name))
				return
			}
		}
	}
	if len(e.f.names) < e.n.s.MinProperties {
		c.fail(e, "minProperties", fmt.Sprintf("has %d properties, fewer than %d", len(e.f.names), e.n.s.MinProperties))
	}
	for i, d := range e.n.dependent {
		if has(d.name) && e.deps[i].verdict == invalid {
			c.decide(e, invalid, e.deps[i].cause)
		}
	}
}

// endUnevaluated refuses what nothing has evaluated and unevaluated… does not allow.
func (c *Checker) endUnevaluated(e *eval) {
	evaluated := make([]bool, max(e.f.count, len(e.f.names)))
	e.collect(evaluated)
	for _, index := range e.unproved {
		if evaluated[index] {
			continue
		}
		if e.f.kind == kindArray {
			c.fail(e, "unevaluatedItems", fmt.Sprintf("must have no such item at %d", index))
		} else {
			c.fail(e, "unevaluatedProperties", fmt.Sprintf("must have no such property %.60q", e.f.names[index]))
		}
		return
	}
	for i := range evaluated { // for schemas around this one
		c.mark(e, i, true)
	}
}

// collect adds what a schema, which holds as far as is known, has evaluated with those that it asks for.
func (e *eval) collect(into []bool) {
	for i, m := range e.marks {
		into[i] = into[i] || m
	}
	for _, k := range e.kids {
		if k.eval.verdict == valid && e.counts(k) {
			k.eval.collect(into)
		}
	}
}

// counts says whether what a kid has evaluated counts as evaluated by e.
func (e *eval) counts(k kid) bool {
	switch k.role {
	case roleNot:
		return false
	case roleThen:
		return e.iff.verdict == valid
	case roleElse:
		return e.iff.verdict == invalid
	case roleDependent:
		_, ok := e.f.known[k.name]
		return ok
	}
	return true
}
