package jinja

// param is a parameter of a macro, with the value that it has if none is given.
type param struct {
	name  string
	value expr
}

// uses are the special variables that a macro's body mentions. Jinja2 takes only what is mentioned.
type uses struct{ varargs, kwargs, caller bool }

type macroStmt struct {
	name   string
	params []param
	body   []stmt
	uses   uses
}

func (m *macroStmt) exec(r *run, s *scope, _ *output) error {
	s.set(m.name, m.bind(r, s))
	return nil
}

// call counts how deep calls nest.
func (r *run) call(f func() error) error {
	if r.calls++; r.calls > maxCalls {
		return errorf("macros call each other more than %d deep", maxCalls)
	}
	defer func() { r.calls-- }()
	return f()
}

// bind makes a function of a macro, which sees the variables of the place where it stands.
func (m *macroStmt) bind(r *run, s *scope) *Func {
	names := &List{Tuple: true}
	for _, p := range m.params {
		names.Items = append(names.Items, p.name)
	}
	attrs := map[string]Value{
		"name": m.name, "arguments": names, "catch_varargs": m.uses.varargs, "catch_kwargs": m.uses.kwargs, "caller": m.uses.caller,
	}
	return &Func{Name: m.name, attrs: attrs, Call: func(args []Value, kwargs *Dict) (Value, error) {
		var text Value
		err := r.call(func() error {
			inner := &scope{up: s, vars: map[string]Value{}}
			if err := m.fill(r, inner, args, kwargs); err != nil {
				return err
			}
			var err error
			text, err = capture(m.body, r, inner)
			return err
		})
		return text, err
	}}
}

// fill gives the parameters their values.
func (m *macroStmt) fill(r *run, s *scope, args []Value, kwargs *Dict) error {
	rest := NewDict()
	if kwargs != nil {
		for i := range kwargs.keys {
			k, v := kwargs.at(i)
			if err := rest.Set(k, v); err != nil {
				return err
			}
		}
	}
	ownCaller := false
	for i, p := range m.params {
		ownCaller = ownCaller || p.name == "caller"
		given, named := rest.Get(p.name)
		switch {
		case i < len(args):
			s.set(p.name, args[i])
			continue // a second value is left over, and refused below
		case named:
			s.set(p.name, given)
		case p.value != nil:
			v, err := r.eval(p.value, s)
			if err != nil {
				return err
			}
			s.set(p.name, v)
		default:
			s.set(p.name, Undefined{p.name})
		}
		rest.Delete(p.name)
	}
	if m.uses.caller && !ownCaller {
		caller, ok := rest.Get("caller")
		if !ok {
			caller = Undefined{"caller"}
		}
		s.set("caller", caller)
		rest.Delete("caller")
	}
	return m.leftOver(s, args, rest)
}

// leftOver puts the arguments for which there is no parameter where the body looks for them.
func (m *macroStmt) leftOver(s *scope, args []Value, rest *Dict) error {
	if m.uses.kwargs {
		s.set("kwargs", rest)
	} else if rest.Len() > 0 {
		name, _ := String(rest.keys[0])
		return errorf("macro %q takes no keyword argument %q", m.name, name)
	}
	more := &List{Tuple: true}
	if len(args) > len(m.params) {
		more.Items = args[len(m.params):]
	}
	if m.uses.varargs {
		s.set("varargs", more)
	} else if len(more.Items) > 0 {
		return errorf("macro %q takes not more than %d arguments", m.name, len(m.params))
	}
	return nil
}
