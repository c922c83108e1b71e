// Package jinja runs chat templates: the part of Jinja2 that they use, with Python's meaning of values, and
// with limits on steps, memory and nesting, since a template comes from a file that nobody has vouched for.
//
// The settings are those of Hugging Face's transformers: trim_blocks, lstrip_blocks, loop controls,
// generation blocks, no escaping of HTML. Lists and dictionaries can be changed, as servers allow.
package jinja

import (
	"fmt"
	"maps"
)

// Limits bound one rendering.
type Limits struct {
	Steps int   // expressions and statements that are run
	Bytes int64 // of all strings and lists that are made, also those that are dropped again
}

// DefaultLimits are enough for long conversations and stop a hostile template within a second or so.
var DefaultLimits = Limits{Steps: 10 << 20, Bytes: 256 << 20}

const (
	maxNesting = 100 // of brackets, blocks and operators in a template
	maxCalls   = 100 // of macros that call each other
)

// Error is what is wrong with a template, or what went wrong in it.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

func errorf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Template is a parsed template. It is safe for concurrent use.
type Template struct{ body []stmt }

// Parse reads a template.
func Parse(source string) (*Template, error) {
	tokens, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	body, err := p.block()
	if err != nil {
		return nil, err
	}
	if p.peek().kind != tokEOF {
		return nil, p.fail("unexpected %q", p.tokens[min(p.at+1, len(p.tokens)-1)].text)
	}
	return &Template{body}, nil
}

// Render runs the template with the given variables, which it may change.
func (t *Template) Render(vars map[string]Value, limits Limits) (string, error) {
	result, err := t.Run(vars, limits)
	return result.Text, err
}

// Result is what a template gave.
type Result struct {
	Text string
	// User are the parts of the text that came from values that User made, in order. What is made of
	// several strings at once (JSON, for example) counts as the request's if any of them does.
	User []Span
	// Python says that a list or a dictionary was printed as Python writes it: hardly what anybody meant.
	Python bool
}

// Run is Render; it also says what is known about the text.
func (t *Template) Run(vars map[string]Value, limits Limits) (Result, error) {
	r := &run{limits: limits}
	globals := &scope{vars: map[string]Value{}}
	r.globals(globals)
	maps.Copy(globals.vars, vars)
	out := &output{run: r}
	if err := execAll(t.body, r, &scope{vars: map[string]Value{}, up: globals}, out); err != nil {
		return Result{}, err
	}
	return Result{out.w.b.String(), out.w.user, r.python}, nil
}

// run is one rendering.
type run struct {
	limits Limits
	steps  int
	bytes  int64
	calls  int
	python bool // a list or a dictionary was printed
	met    bool // a string of the request, while something is printed or turned into JSON
}

// step counts one expression or statement.
func (r *run) step() error {
	if r.steps++; r.steps > r.limits.Steps {
		return errorf("the template takes more than %d steps", r.limits.Steps)
	}
	return nil
}

// charge counts n bytes that are about to be made, or were made a moment ago.
func (r *run) charge(n int) error {
	if n < 0 || int64(n) > r.limits.Bytes-r.bytes {
		return errorf("the template makes more than %d bytes", r.limits.Bytes)
	}
	r.bytes += int64(n)
	return nil
}

// look counts reading a string: it makes nothing, but a long one takes time.
func (r *run) look(v Value) error {
	if s, ok := plain(v).(string); ok {
		return r.charge(len(s) / 32)
	}
	return nil
}

// scope holds variables; names that it lacks are looked up outside.
type scope struct {
	vars map[string]Value
	up   *scope
}

func (s *scope) get(name string) (Value, bool) {
	for ; s != nil; s = s.up {
		if v, ok := s.vars[name]; ok {
			return v, true
		}
	}
	return nil, false
}

func (s *scope) set(name string, v Value) {
	if s.vars == nil {
		s.vars = map[string]Value{}
	}
	s.vars[name] = v
}
