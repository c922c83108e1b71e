package jinja

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// expr is an expression.
type expr interface {
	eval(r *run, s *scope) (Value, error)
}

// eval counts the step and evaluates.
func (r *run) eval(e expr, s *scope) (Value, error) {
	if err := r.step(); err != nil {
		return nil, err
	}
	return e.eval(r, s)
}

type constExpr struct{ v Value }

func (c *constExpr) eval(*run, *scope) (Value, error) { return c.v, nil }

type nameExpr struct{ name string }

func (n *nameExpr) eval(_ *run, s *scope) (Value, error) {
	if v, ok := s.get(n.name); ok {
		return v, nil
	}
	return Undefined{n.name}, nil
}

// placeholder is the text that a block's filter works on. No template can write its name.
type placeholder struct{}

const placeholderName = "|"

func (*placeholder) eval(_ *run, s *scope) (Value, error) {
	v, _ := s.get(placeholderName)
	return v, nil
}

type listExpr struct {
	items []expr
	tuple bool
}

func (l *listExpr) eval(r *run, s *scope) (Value, error) {
	items, err := r.evalAll(l.items, s)
	return &List{Items: items, Tuple: l.tuple}, err
}

func (r *run) evalAll(list []expr, s *scope) ([]Value, error) {
	if err := r.charge(16 * len(list)); err != nil {
		return nil, err
	}
	values := make([]Value, len(list))
	for i, e := range list {
		var err error
		if values[i], err = r.eval(e, s); err != nil {
			return nil, err
		}
	}
	return values, nil
}

type dictExpr struct{ keys, values []expr }

func (d *dictExpr) eval(r *run, s *scope) (Value, error) {
	keys, err := r.evalAll(d.keys, s)
	if err != nil {
		return nil, err
	}
	values, err := r.evalAll(d.values, s)
	if err != nil {
		return nil, err
	}
	out := NewDict()
	for i, key := range keys {
		if err := out.Set(key, values[i]); err != nil {
			return nil, err
		}
	}
	return out, r.charge(64 * len(keys))
}

type condExpr struct{ test, yes, no expr }

func (c *condExpr) eval(r *run, s *scope) (Value, error) {
	v, err := r.eval(c.test, s)
	if err != nil {
		return nil, err
	}
	if truth(v) {
		return r.eval(c.yes, s)
	}
	if c.no == nil {
		return Undefined{"the missing else of an if"}, nil
	}
	return r.eval(c.no, s)
}

type logicExpr struct {
	or          bool
	left, right expr
}

func (l *logicExpr) eval(r *run, s *scope) (Value, error) {
	v, err := r.eval(l.left, s)
	if err != nil || truth(v) == l.or {
		return v, err
	}
	return r.eval(l.right, s)
}

type notExpr struct{ e expr }

func (n *notExpr) eval(r *run, s *scope) (Value, error) {
	v, err := r.eval(n.e, s)
	return !truth(v), err
}

type signExpr struct {
	minus bool
	e     expr
}

func (u *signExpr) eval(r *run, s *scope) (Value, error) {
	v, err := r.eval(u.e, s)
	if err != nil {
		return nil, err
	}
	i, f, isInt, ok := number(v)
	switch {
	case !ok:
		return nil, wrongOperand("a sign", v)
	case !u.minus && isInt:
		return i, nil
	case !u.minus:
		return f, nil
	case isInt:
		return -i, nil
	}
	return -f, nil
}

type compareExpr struct {
	first expr
	ops   []string
	rest  []expr
}

func (c *compareExpr) eval(r *run, s *scope) (Value, error) {
	left, err := r.eval(c.first, s)
	if err != nil {
		return nil, err
	}
	for i, op := range c.ops {
		right, err := r.eval(c.rest[i], s)
		if err != nil {
			return nil, err
		}
		ok, err := r.holds(op, left, right)
		if err != nil || !ok {
			return false, err
		}
		left = right
	}
	return true, nil
}

type attrExpr struct {
	object expr
	name   string
}

func (a *attrExpr) eval(r *run, s *scope) (Value, error) {
	object, err := r.eval(a.object, s)
	if err != nil {
		return nil, err
	}
	return r.attr(object, a.name)
}

// attr is object.name: a method or attribute, else the value of a key.
func (r *run) attr(object Value, name string) (Value, error) {
	if u, ok := object.(Undefined); ok {
		return nil, errorf("%s is undefined", u.Name)
	}
	if m := r.method(object, name); m != nil {
		return m, nil
	}
	switch o := object.(type) {
	case *Dict:
		if v, ok := o.Get(name); ok {
			return v, nil
		}
	case *Namespace:
		if v, ok := o.attrs.Get(name); ok {
			return v, nil
		}
	case *loopState:
		if v, ok := o.attr(r, name); ok {
			return v, nil
		}
	case *List:
		if at := slices.Index([]string{"grouper", "list"}, name); at >= 0 && o.kind == groupKind {
			return o.Items[at], nil
		}
	case *Func:
		if v, ok := o.attrs[name]; ok {
			return v, nil
		}
	}
	return Undefined{describe(object) + "." + name}, nil
}

func describe(v Value) string { return "a " + typeName(v) + "'s" }

type itemExpr struct{ object, key expr }

func (i *itemExpr) eval(r *run, s *scope) (Value, error) {
	object, err := r.eval(i.object, s)
	if err != nil {
		return nil, err
	}
	key, err := r.eval(i.key, s)
	if err != nil {
		return nil, err
	}
	return r.item(object, key)
}

// item is object[key]: the value of a key or at an index, else an attribute, else undefined.
func (r *run) item(whole, key Value) (Value, error) {
	object, key := plain(whole), plain(key)
	if err := r.look(key); err != nil {
		return nil, err
	}
	switch o := object.(type) {
	case Undefined:
		return nil, errorf("%s is undefined", o.Name)
	case *Dict:
		if v, ok := o.Get(key); ok {
			return v, nil
		}
	case *List:
		if at, ok := index(key, len(o.Items)); ok && !o.Lazy && !strings.HasPrefix(o.kind, "dict_") {
			return o.Items[at], nil
		}
	case string:
		if _, _, isInt, ok := number(key); ok && isInt {
			t, _ := textOf(whole)
			return r.character(t, key)
		}
	}
	if name, ok := key.(string); ok {
		return r.attr(whole, name)
	}
	return Undefined{describe(object) + "[" + typeName(key) + "]"}, nil
}

// index returns the place that an index means, from the end if negative.
func index(key Value, n int) (int, bool) {
	i, _, isInt, ok := number(key)
	if !ok || !isInt {
		return 0, false
	}
	if i < 0 {
		i += int64(n)
	}
	return int(i), i >= 0 && i < int64(n)
}

func (r *run) character(t Text, key Value) (Value, error) {
	s := t.s
	if err := r.look(s); err != nil {
		return nil, err
	}
	at, ok := index(key, utf8.RuneCountInString(s))
	if !ok {
		return Undefined{"a str's character"}, nil
	}
	for i := range s {
		if at == 0 {
			_, n := utf8.DecodeRuneInString(s[i:])
			return t.cut(i, i+n).value(), nil
		}
		at--
	}
	return Undefined{"a str's character"}, nil
}

type sliceExpr struct {
	object expr
	parts  [3]expr
}

func (e *sliceExpr) eval(r *run, s *scope) (Value, error) {
	object, err := r.eval(e.object, s)
	if err != nil {
		return nil, err
	}
	var bounds [3]*int64
	for i, part := range e.parts {
		if part == nil {
			continue
		}
		v, err := r.eval(part, s)
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue
		}
		n, _, isInt, ok := number(v)
		if !ok || !isInt {
			return nil, wrongOperand("a slice", v)
		}
		bounds[i] = &n
	}
	switch o := object.(type) {
	case *List:
		if !o.isSequence() && !strings.HasPrefix(o.kind, "range") {
			return nil, wrongOperand("a slice", o)
		}
		items, err := r.slice(o.Items, bounds)
		out := &List{Items: items, Tuple: o.Tuple}
		if strings.HasPrefix(o.kind, "range") {
			out.kind = "range of " + o.kind
		}
		return out, err
	case string:
		return r.sliceText(Text{s: o}, bounds)
	case *Text:
		return r.sliceText(*o, bounds)
	case Undefined:
		return nil, errorf("%s is undefined", o.Name)
	}
	return nil, wrongOperand("a slice", object)
}

// sliceText is Python's slicing of a string.
func (r *run) sliceText(t Text, bounds [3]*int64) (Value, error) {
	if bounds[2] != nil && *bounds[2] != 1 {
		chars, err := r.characters(t)
		if err != nil {
			return nil, err
		}
		if chars, err = r.slice(chars, bounds); err != nil {
			return nil, err
		}
		return r.joinItems(chars, Text{})
	}
	if err := r.look(t.s); err != nil {
		return nil, err
	}
	n := len(t.s)
	if bounds[0] != nil && *bounds[0] != 0 || bounds[1] != nil {
		n = utf8.RuneCountInString(t.s)
	}
	start, stop, _, err := span(int64(n), bounds)
	if err != nil || start >= stop {
		return "", err
	}
	from, to := 0, len(t.s)
	if n != len(t.s) {
		from = byteOf(t.s, start)
		if stop < int64(n) {
			to = from + byteOf(t.s[from:], stop-start)
		}
	} else {
		from, to = int(start), int(stop)
	}
	return t.cut(from, to).value(), r.charge(to - from)
}

// byteOf is where the character n begins.
func byteOf(s string, n int64) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// slice is Python's slicing of a sequence.
func (r *run) slice(items []Value, bounds [3]*int64) ([]Value, error) {
	start, stop, step, err := span(int64(len(items)), bounds)
	if err != nil {
		return nil, err
	}
	n := int64(len(items))
	var out []Value
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		out = append(out, items[i])
		if step > n || step < -n {
			break
		}
	}
	return out, r.charge(16 * len(out))
}

// span are the first place of a slice, the one after the last, and the step.
func span(n int64, bounds [3]*int64) (start, stop, step int64, err error) {
	step = 1
	if bounds[2] != nil {
		step = *bounds[2]
	}
	if step == 0 {
		return 0, 0, 0, errorf("the step of a slice is 0")
	}
	low, high := int64(0), n
	if step < 0 {
		low, high = -1, n-1
	}
	clamp := func(p *int64, missing int64) int64 {
		if p == nil {
			return missing
		}
		i := *p
		if i < 0 {
			i += n
		}
		return min(max(i, low), high)
	}
	start, stop = clamp(bounds[0], low), clamp(bounds[1], high)
	if step < 0 {
		start, stop = clamp(bounds[0], high), clamp(bounds[1], low)
	}
	return start, stop, step, nil
}

// arguments of a call.
type arguments struct {
	args       []expr
	names      []string
	named      []expr
	list, dict expr // *list, **dict
}

func (a *arguments) evalArgs(r *run, s *scope) ([]Value, *Dict, error) {
	args, err := r.evalAll(a.args, s)
	if err != nil {
		return nil, nil, err
	}
	if a.list != nil {
		v, err := r.eval(a.list, s)
		if err != nil {
			return nil, nil, err
		}
		more, err := r.iterate(v)
		if err != nil {
			return nil, nil, err
		}
		args = append(args, more...)
	}
	kwargs := NewDict()
	values, err := r.evalAll(a.named, s)
	if err != nil {
		return nil, nil, err
	}
	for i, name := range a.names {
		if err := kwargs.Set(name, values[i]); err != nil {
			return nil, nil, err
		}
	}
	if a.dict != nil {
		v, err := r.eval(a.dict, s)
		if err != nil {
			return nil, nil, err
		}
		more, ok := v.(*Dict)
		if !ok {
			return nil, nil, wrongOperand("**", v)
		}
		for i := range more.keys {
			if err := kwargs.Set(more.at(i)); err != nil {
				return nil, nil, err
			}
		}
	}
	return args, kwargs, nil
}

type callExpr struct {
	fn expr
	arguments
}

func (c *callExpr) eval(r *run, s *scope) (Value, error) { return c.evalWith(r, s, nil) }

func (c *callExpr) evalWith(r *run, s *scope, caller *Func) (Value, error) {
	v, err := r.eval(c.fn, s)
	if err != nil {
		return nil, err
	}
	args, kwargs, err := c.evalArgs(r, s)
	if err != nil {
		return nil, err
	}
	if caller != nil {
		if err := kwargs.Set("caller", caller); err != nil {
			return nil, err
		}
	}
	switch f := v.(type) {
	case *Func:
		return f.Call(args, kwargs)
	case *loopState:
		if f.again != nil {
			return f.again.Call(args, kwargs)
		}
	case Undefined:
		return nil, errorf("%s is undefined", f.Name)
	}
	return nil, errorf("a %s cannot be called", typeName(v))
}

type filterExpr struct {
	input expr
	name  string
	arguments
}

func (f *filterExpr) eval(r *run, s *scope) (Value, error) {
	v, err := r.eval(f.input, s)
	if err != nil {
		return nil, err
	}
	args, kwargs, err := f.evalArgs(r, s)
	if err != nil {
		return nil, err
	}
	return r.applyFilter(f.name, v, args, kwargs)
}

type testExpr struct {
	input  expr
	name   string
	negate bool
	arguments
}

func (t *testExpr) eval(r *run, s *scope) (Value, error) {
	v, err := r.eval(t.input, s)
	if err != nil {
		return nil, err
	}
	args, _, err := t.evalArgs(r, s)
	if err != nil {
		return nil, err
	}
	ok, err := r.applyTest(t.name, v, args)
	return ok != t.negate, err
}
