package jinja

// call is what a filter, test or method is called with.
type call struct {
	r      *run
	name   string
	input  Value
	args   []Value
	kwargs *Dict
}

// arg returns an argument by place or by name, or a default.
func (c *call) arg(i int, name string, missing Value) Value {
	if i < len(c.args) {
		return plain(c.args[i])
	}
	if c.kwargs != nil {
		if v, ok := c.kwargs.Get(name); ok {
			return plain(v)
		}
	}
	return missing
}

// need returns an argument that must be there.
func (c *call) need(i int, name string) (Value, error) {
	v := c.arg(i, name, Undefined{name})
	if _, ok := v.(Undefined); ok {
		return nil, errorf("%s needs an argument %q", c.name, name)
	}
	return v, c.r.look(v)
}

// str returns an argument that is a string.
func (c *call) str(i int, name, missing string) (string, error) {
	v := c.arg(i, name, missing)
	s, ok := v.(string)
	if !ok {
		return "", errorf("%s takes a str as %q, not a %s", c.name, name, typeName(v))
	}
	return s, nil
}

// int returns an argument that is a whole number.
func (c *call) int(i int, name string, missing int64) (int64, error) {
	v := c.arg(i, name, missing)
	n, _, isInt, ok := number(v)
	if !ok || !isInt {
		return 0, errorf("%s takes an int as %q, not a %s", c.name, name, typeName(v))
	}
	return n, nil
}

// flag returns an argument's truth.
func (c *call) flag(i int, name string, missing bool) bool { return truth(c.arg(i, name, missing)) }

// inputText is the input as text.
func (c *call) inputText() (string, error) {
	s, err := c.r.text(c.input)
	if err == nil {
		err = c.r.charge(len(s))
	}
	return s, err
}

// inputItems are the elements of the input, in a list of its own.
func (c *call) inputItems() ([]Value, error) {
	items, err := c.r.iterate(c.input)
	if err != nil {
		return nil, err
	}
	if err := c.r.charge(16 * len(items)); err != nil {
		return nil, err
	}
	return append([]Value{}, items...), nil
}
