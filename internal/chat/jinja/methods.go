package jinja

// methods are those of lists; of tuples the ones that change nothing; others have none.
func (l *List) methods() map[string]func(*call) (Value, error) {
	switch {
	case !l.isSequence():
		return nil
	case l.Tuple:
		return tupleMethods
	}
	return listMethods
}

// method returns a method of a value, or nil.
func (r *run) method(object Value, name string) *Func {
	var f func(*call) (Value, error)
	switch l := object.(type) {
	case string, *Text:
		f = stringMethods[name]
	case *List:
		f = l.methods()[name]
	case *Dict:
		f = dictMethods[name]
	}
	if f == nil {
		return nil
	}
	return &Func{Name: name, Call: func(args []Value, kwargs *Dict) (Value, error) {
		if s, ok := String(object); ok {
			if err := r.charge(len(s)); err != nil {
				return nil, err
			}
		}
		return r.newCall(name, object, args, kwargs).do(f)
	}}
}
