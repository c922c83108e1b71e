package jinja

import (
	"errors"
	"fmt"
)

// stmt is a statement.
type stmt interface {
	exec(r *run, s *scope, out *output) error
}

// output is where statements write.
type output struct {
	run *run
	w   textWriter
}

func (o *output) write(t Text) error {
	if err := o.run.charge(t.cost()); err != nil {
		return err
	}
	o.w.add(t)
	return nil
}

// errBreak and errContinue leave the body of a loop.
var errBreak, errContinue = errors.New("break outside a loop"), errors.New("continue outside a loop")

func execAll(body []stmt, r *run, s *scope, out *output) error {
	for _, each := range body {
		if err := r.step(); err != nil {
			return err
		}
		if err := each.exec(r, s, out); err != nil {
			return err
		}
	}
	return nil
}

// capture runs statements and returns what they write.
func capture(body []stmt, r *run, s *scope) (Value, error) {
	out := &output{run: r}
	err := execAll(body, r, s, out)
	return out.w.text().value(), err
}

// lineError is an error with the line of the statement in which it happened.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }
func (e *lineError) Unwrap() error { return e.err }

func atLine(err error, line int) error {
	var have *lineError
	if err == nil || errors.Is(err, errBreak) || errors.Is(err, errContinue) || errors.As(err, &have) {
		return err
	}
	return &lineError{line, err}
}

// lined adds the line to a statement's errors.
type lined struct {
	stmt
	line int
}

func (l *lined) exec(r *run, s *scope, out *output) error {
	return atLine(l.stmt.exec(r, s, out), l.line)
}

type textStmt string

func (t textStmt) exec(_ *run, _ *scope, out *output) error { return out.write(Text{s: string(t)}) }

type outputStmt struct {
	expr expr
	line int
}

func (o *outputStmt) exec(r *run, s *scope, out *output) error {
	v, err := r.eval(o.expr, s)
	if err != nil {
		return atLine(err, o.line)
	}
	text, err := r.text(v)
	if err != nil {
		return atLine(err, o.line)
	}
	return out.write(text)
}

type jump string

func (j jump) exec(*run, *scope, *output) error {
	if j == "break" {
		return errBreak
	}
	return errContinue
}

type ifStmt struct {
	tests     []expr
	bodies    [][]stmt
	otherwise []stmt
}

func (i *ifStmt) exec(r *run, s *scope, out *output) error {
	for n, test := range i.tests {
		v, err := r.eval(test, s)
		if err != nil {
			return err
		}
		if truth(v) {
			return execAll(i.bodies[n], r, s, out)
		}
	}
	return execAll(i.otherwise, r, s, out)
}

// target is what is assigned to: a name, an attribute of a namespace, or several targets.
type target struct {
	name, attr string
	parts      []target
}

func (t target) assign(r *run, s *scope, v Value) error {
	if t.parts != nil {
		items, err := r.iterate(v)
		if err != nil {
			return err
		}
		if len(items) != len(t.parts) {
			return errorf("%d values for %d names", len(items), len(t.parts))
		}
		for i, part := range t.parts {
			if err := part.assign(r, s, items[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if t.attr == "" {
		s.set(t.name, v)
		return nil
	}
	object, _ := s.get(t.name)
	ns, ok := object.(*Namespace)
	if !ok {
		return errorf("cannot set %s.%s: %s is no namespace", t.name, t.attr, t.name)
	}
	return ns.attrs.Set(t.attr, v)
}

type setStmt struct {
	target target
	value  expr
}

func (a *setStmt) exec(r *run, s *scope, _ *output) error {
	v, err := r.eval(a.value, s)
	if err != nil {
		return err
	}
	return a.target.assign(r, s, v)
}

type setBlock struct {
	target target
	filter expr
	body   []stmt
}

func (a *setBlock) exec(r *run, s *scope, _ *output) error {
	text, err := capture(a.body, r, &scope{up: s})
	if err != nil {
		return err
	}
	v, err := r.eval(a.filter, &scope{up: s, vars: map[string]Value{placeholderName: text}})
	if err != nil {
		return err
	}
	return a.target.assign(r, s, v)
}

type filterStmt struct {
	filter expr
	body   []stmt
}

func (f *filterStmt) exec(r *run, s *scope, out *output) error {
	text, err := capture(f.body, r, &scope{up: s})
	if err != nil {
		return err
	}
	v, err := r.eval(f.filter, &scope{up: s, vars: map[string]Value{placeholderName: text}})
	if err != nil {
		return err
	}
	filtered, err := r.text(v)
	if err != nil {
		return err
	}
	return out.write(filtered)
}

type withStmt struct {
	targets []target
	values  []expr
	body    []stmt
}

func (w *withStmt) exec(r *run, s *scope, out *output) error {
	inner := &scope{up: s}
	for i, value := range w.values {
		v, err := r.eval(value, s)
		if err != nil {
			return err
		}
		if err := w.targets[i].assign(r, inner, v); err != nil {
			return err
		}
	}
	return execAll(w.body, r, inner, out)
}

type forStmt struct {
	target          target
	iter, filter    expr
	recursive       bool
	body, otherwise []stmt
}

// loopState is the variable "loop" of a pass.
type loopState struct {
	items   []Value
	index   int // from 0
	depth   int
	changed []Value
	again   *Func // of a recursive loop
}

func (f *forStmt) exec(r *run, s *scope, out *output) error {
	v, err := r.eval(f.iter, s)
	if err != nil {
		return err
	}
	return f.over(r, s, out, v, 0)
}

func (f *forStmt) over(r *run, s *scope, out *output, v Value, depth int) error {
	items, err := r.iterate(v)
	if err != nil {
		return err
	}
	if f.filter != nil {
		if items, err = f.filtered(r, s, items); err != nil {
			return err
		}
	}
	if len(items) == 0 {
		return execAll(f.otherwise, r, &scope{up: s}, out)
	}
	loop := &loopState{items: items, depth: depth}
	if f.recursive {
		loop.again = &Func{Name: "loop", Call: func(args []Value, _ *Dict) (Value, error) {
			if len(args) != 1 {
				return nil, errorf("loop() takes what to go through")
			}
			inner := &output{run: r}
			err := r.call(func() error { return f.over(r, s, inner, args[0], depth+1) })
			return inner.w.text().value(), err
		}}
	}
	for i := 0; i < len(items); i++ {
		loop.index = i
		inner := &scope{up: s, vars: map[string]Value{"loop": loop}}
		if err := f.target.assign(r, inner, items[i]); err != nil {
			return err
		}
		err := execAll(f.body, r, inner, out)
		if errors.Is(err, errBreak) {
			break
		}
		if err != nil && !errors.Is(err, errContinue) {
			return err
		}
	}
	return nil
}

func (f *forStmt) filtered(r *run, s *scope, items []Value) ([]Value, error) {
	var kept []Value
	for _, item := range items {
		inner := &scope{up: s}
		if err := f.target.assign(r, inner, item); err != nil {
			return nil, err
		}
		v, err := r.eval(f.filter, inner)
		if err != nil {
			return nil, err
		}
		if truth(v) {
			kept = append(kept, item)
		}
	}
	return kept, r.charge(16 * len(kept))
}

// attr is an attribute of loop.
func (l *loopState) attr(r *run, name string) (Value, bool) {
	n, i := len(l.items), l.index
	neighbour := func(at int) Value {
		if at < 0 || at >= n {
			return Undefined{"loop." + name}
		}
		return l.items[at]
	}
	switch name {
	case "index":
		return int64(i + 1), true
	case "index0":
		return int64(i), true
	case "revindex":
		return int64(n - i), true
	case "revindex0":
		return int64(n - i - 1), true
	case "first":
		return i == 0, true
	case "last":
		return i == n-1, true
	case "length":
		return int64(n), true
	case "depth":
		return int64(l.depth + 1), true
	case "depth0":
		return int64(l.depth), true
	case "previtem":
		return neighbour(i - 1), true
	case "nextitem":
		return neighbour(i + 1), true
	case "cycle":
		return &Func{Name: "cycle", Call: func(args []Value, _ *Dict) (Value, error) {
			if len(args) == 0 {
				return nil, errorf("loop.cycle needs values")
			}
			return args[i%len(args)], nil
		}}, true
	case "changed":
		return &Func{Name: "changed", Call: func(args []Value, _ *Dict) (Value, error) {
			same, err := r.equal(NewList(l.changed...), NewList(args...), 0)
			same = same && l.changed != nil
			l.changed = append([]Value{}, args...)
			return !same, err
		}}, true
	}
	return nil, false
}

// callStmt calls a macro that gets the body of the block as caller().
type callStmt struct {
	call   *callExpr
	caller macroStmt
}

func (c *callStmt) exec(r *run, s *scope, out *output) error {
	v, err := c.call.evalWith(r, s, c.caller.bind(r, s))
	if err != nil {
		return err
	}
	text, err := r.text(v)
	if err != nil {
		return err
	}
	return out.write(text)
}
