package accept

import (
	"fmt"

	"github.com/spillway/spillway/internal/grammar/schema"
)

type verdict uint8

const (
	open verdict = iota
	valid
	invalid
)

// An eval is a schema applied to a value that is being read.
type eval struct {
	n       *node
	f       *frame
	verdict verdict
	cause   *cause
	waiting []listener

	needsEnd bool // of the value
	all      int  // schemas of allOf and $ref that hold so far
	any, one tally
	not      verdict
	iff      *eval // with the next two: of the same value; nil: absent
	then     *eval
	else_    *eval

	text     *textRun // of a string
	matches  int      // of contains
	seen     uniques
	marks    []bool  // members or items that keywords have evaluated
	unproved []int   // members or items that unevaluated… refuses if nothing else evaluates them
	kids     []kid   // of the same value, for what they have evaluated
	deps     []*eval // of dependentSchemas
}

// A kid is a schema that another one applies to the same value.
type kid struct {
	eval *eval
	role role
	name string // of dependentSchemas
}

// A tally counts verdicts of anyOf or oneOf.
type tally struct{ valid, invalid int }

func (t tally) done(n int) bool { return t.valid+t.invalid == n }

// A listener is told a verdict.
type listener struct {
	to    *eval
	role  role
	index int // of the member or item
}

type role uint8

const (
	roleAll role = iota
	roleAny
	roleOne
	roleNot
	roleIf
	roleThen
	roleElse
	roleDependent
	roleChild // of properties, items …: must hold
	roleContains
	roleUnevaluated
	roleName
	roleRoot
)

// fail decides that a schema does not hold.
func (c *Checker) fail(e *eval, keyword, detail string) {
	if e.verdict == open {
		c.decide(e, invalid, &cause{c.pointer(e.f), keyword, e.n, detail})
	}
}

// decide sets a verdict and tells those who wait for it.
func (c *Checker) decide(e *eval, v verdict, why *cause) {
	if e.verdict != open {
		return
	}
	e.verdict, e.cause = v, why
	for _, l := range e.waiting {
		c.hear(l, e)
	}
}

// hear takes the verdict of another schema.
func (c *Checker) hear(l listener, from *eval) {
	if l.role == roleRoot {
		if from.verdict == invalid {
			c.refused = from.cause
		}
		return
	}
	e := l.to
	if e.verdict != open {
		return
	}
	ok := from.verdict == valid
	switch l.role {
	case roleAll, roleChild, roleName:
		if !ok {
			c.decide(e, invalid, from.cause)
		}
		if l.role == roleAll && ok {
			e.all++
		}
	case roleAny:
		if e.any.add(ok); e.any.invalid == len(e.n.any) {
			c.failAny(e, from)
		}
	case roleOne:
		c.heardOne(e, ok)
	case roleNot:
		if e.not = from.verdict; ok {
			c.fail(e, "not", "is valid against the schema that it must not be valid against")
		}
	case roleContains:
		c.heardContains(e, ok, l.index)
	case roleUnevaluated:
		if !ok {
			e.unproved = append(e.unproved, l.index)
		}
	}
	c.settle(e)
}

func (c *Checker) heardOne(e *eval, ok bool) {
	e.one.add(ok)
	if e.one.valid > 1 {
		c.fail(e, "oneOf", "is valid against more than one of the schemas")
	}
	if e.one.invalid == len(e.n.one) {
		c.fail(e, "oneOf", "is valid against none of the schemas")
	}
}

func (t *tally) add(ok bool) {
	if ok {
		t.valid++
	} else {
		t.invalid++
	}
}

// failAny names the only alternative, or the last one to fail.
func (c *Checker) failAny(e *eval, last *eval) {
	if why := last.cause; len(e.n.any) == 1 {
		c.decide(e, invalid, why)
	} else {
		c.fail(e, "anyOf", fmt.Sprintf("is valid against none of the schemas; the last to fail: %s %s (keyword %q at %s)",
			named(why.pointer), why.detail, why.keyword, why.node.s.Where))
	}
}

// settle decides a schema if nothing that is still to come can change its verdict.
func (c *Checker) settle(e *eval) {
	if e.verdict != open {
		return
	}
	if why := e.conditionFails(); why != nil {
		c.decide(e, invalid, why.cause)
		return
	}
	n := e.n
	early := !c.program.track // what alternatives evaluate matters later
	if e.needsEnd || e.all < len(n.all) || n.not != nil && e.not == open ||
		len(n.one) > 0 && !e.one.done(len(n.one)) ||
		len(n.any) > 0 && !e.any.done(len(n.any)) && !(early && e.any.valid > 0) ||
		!e.conditionHolds() {
		return
	}
	c.decide(e, valid, nil)
}

// conditionFails is what of if, then and else does not hold, nil if that is not decided.
func (e *eval) conditionFails() *eval {
	is := func(k *eval) bool { return k != nil && k.verdict == invalid }
	switch {
	case e.iff == nil:
	case e.iff.verdict == valid && is(e.then):
		return e.then
	case e.iff.verdict == invalid && is(e.else_):
		return e.else_
	case is(e.then) && is(e.else_):
		return e.then
	}
	return nil
}

func (e *eval) conditionHolds() bool {
	holds := func(k *eval) bool { return k == nil || k.verdict == valid }
	switch {
	case e.iff == nil:
		return true
	case e.iff.verdict == valid:
		return holds(e.then)
	case e.iff.verdict == invalid:
		return holds(e.else_)
	}
	return holds(e.then) && holds(e.else_)
}

// apply gives the eval of a schema in a frame, with those of the same value that it asks for.
func (c *Checker) apply(f *frame, n *node) *eval {
	if e := f.byNode[n]; e != nil {
		return e
	}
	e := &eval{n: n, f: f, needsEnd: true} // until begin
	f.byNode[n] = e
	for _, k := range n.all {
		c.kid(e, k, roleAll, "")
	}
	for _, k := range n.any {
		c.kid(e, k, roleAny, "")
	}
	for _, k := range n.one {
		c.kid(e, k, roleOne, "")
	}
	c.kid(e, n.not, roleNot, "")
	e.iff = c.kid(e, n.iff, roleIf, "")
	e.then, e.else_ = c.kid(e, n.then, roleThen, ""), c.kid(e, n.else_, roleElse, "")
	if f.kind == kindObject {
		for _, d := range n.dependent {
			e.deps = append(e.deps, c.kid(e, d.node, roleDependent, d.name))
		}
	}
	f.evals = append(f.evals, e)
	return e
}

// kid applies a schema to the same value.
func (c *Checker) kid(e *eval, n *node, r role, name string) *eval {
	if n == nil {
		return nil
	}
	sub := c.apply(e.f, n)
	sub.waiting = append(sub.waiting, listener{to: e, role: r})
	e.kids = append(e.kids, kid{sub, r, name})
	return sub
}

// begin checks what the first byte of a value tells: its kind.
func (c *Checker) begin(e *eval) {
	s, k := e.n.s, e.f.kind
	if s.Bool != nil {
		if !*s.Bool {
			c.fail(e, "false", "is not allowed here")
			return
		}
		e.needsEnd = false
		c.settle(e)
		return
	}
	if s.Types&k.types() == 0 {
		c.fail(e, "type", "is "+k.name()+", not "+typeNames(s.Types))
		return
	}
	for _, choice := range e.n.choices {
		if !choice.hasKind(k.value()) {
			c.fail(e, choice.keyword, choice.detail())
			return
		}
		e.f.capture = e.f.capture || choice.containers && (k == kindArray || k == kindObject)
	}
	e.needsEnd = e.endMatters()
	if k == kindArray && s.UniqueItems {
		e.f.captureItems = true
	}
	if k == kindString {
		c.beginText(e)
	}
	c.settle(e)
}

// endMatters says whether the end of the value, or what is inside it, must be awaited.
func (e *eval) endMatters() bool {
	s := e.n.s
	if len(e.n.choices) > 0 {
		return true
	}
	switch e.f.kind {
	case kindNumber:
		return s.Types&schema.TypeNumber == 0 || s.Minimum != nil || s.Maximum != nil || s.MultipleOf != nil
	case kindString:
		return s.MinLength > 0 || s.MaxLength >= 0 || e.n.pattern != nil || e.n.format != nil
	case kindArray:
		return e.n.prefix != nil || e.n.items != nil || e.n.contains != nil || e.n.unevaluatedIt != nil ||
			s.MinItems > 0 || s.MaxItems >= 0 || s.UniqueItems
	case kindObject:
		return len(e.n.properties) > 0 || e.n.patterns != nil || e.n.additional != nil || e.n.names != nil || e.n.needs != nil ||
			e.n.unevaluated != nil || s.MinProperties > 0 || s.MaxProperties >= 0 || e.n.dependent != nil
	}
	return false
}

// end checks what the whole value tells, of schemas before those that ask for them.
func (c *Checker) end(e *eval) {
	if e.verdict != open {
		return
	}
	if e.needsEnd {
		if e.f.kind == kindArray || e.f.kind == kindObject {
			c.endContainer(e)
		} else {
			c.endScalar(e)
		}
		e.needsEnd = false
	}
	c.settle(e)
}
