package jinja

// call is what a filter, test or method is called with.
type call struct {
	r      *run
	name   string
	input  Value // a string, not a *Text
	raw    Value // the input as it is
	args   []Value
	kwargs *Dict
	exact  bool // the function itself says what of its result came from the request
	met    bool // the function has looked at something from the request
}

// newCall makes a call with an input.
func (r *run) newCall(name string, input Value, args []Value, kwargs *Dict) *call {
	return &call{r: r, name: name, input: plain(input), raw: input, args: args, kwargs: kwargs}
}

// do calls f. A string that f made counts as the request's if anything that went in does, unless f
// knows better.
func (c *call) do(f func(*call) (Value, error)) (Value, error) {
	v, err := f(c)
	if s, ok := v.(string); ok && err == nil && !c.exact && c.fromUser() {
		return User(s), nil
	}
	return v, err
}

func (c *call) fromUser() bool {
	if c.met || isUser(c.raw) {
		return true
	}
	for _, v := range c.args {
		if isUser(v) {
			return true
		}
	}
	if c.kwargs != nil {
		for _, v := range c.kwargs.values {
			if isUser(v) {
				return true
			}
		}
	}
	return false
}

// value is a text as a result that says what of it came from the request.
func (c *call) value(t Text) (Value, error) {
	c.exact = true
	return t.value(), c.r.charge(t.cost())
}

// arg returns an argument by place or by name, or a default; a string, not a *Text.
func (c *call) arg(i int, name string, missing Value) Value { return plain(c.rawArg(i, name, missing)) }

// rawArg is arg as the value was given.
func (c *call) rawArg(i int, name string, missing Value) Value {
	if i < len(c.args) {
		return c.args[i]
	}
	if c.kwargs != nil {
		if v, ok := c.kwargs.Get(name); ok {
			return v
		}
	}
	return missing
}

// need returns an argument that must be there, as it was given.
func (c *call) need(i int, name string) (Value, error) {
	v := c.rawArg(i, name, Undefined{name})
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

// textArg returns an argument that is a string and must be there.
func (c *call) textArg(i int, name string) (Text, error) {
	v, err := c.need(i, name)
	if err != nil {
		return Text{}, err
	}
	t, ok := textOf(v)
	if !ok {
		return Text{}, errorf("%s takes a str as %q, not a %s", c.name, name, typeName(v))
	}
	return t, nil
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

// text is the input as text.
func (c *call) text() (Text, error) {
	t, err := c.r.text(c.raw)
	if err == nil {
		err = c.r.charge(len(t.s))
	}
	c.met = c.met || t.tainted()
	return t, err
}

// stringInput is text of an input that must be a string.
func (c *call) stringInput() (Text, error) {
	if _, ok := String(c.raw); !ok {
		return Text{}, wrongOperand(c.name, c.raw)
	}
	return c.text()
}

// inputText is the string of text.
func (c *call) inputText() (string, error) {
	t, err := c.text()
	return t.s, err
}

// inputItems are the elements of the input, in a list of its own.
func (c *call) inputItems() ([]Value, error) {
	items, err := c.r.iterate(c.raw)
	if err != nil {
		return nil, err
	}
	if err := c.r.charge(16 * len(items)); err != nil {
		return nil, err
	}
	return append([]Value{}, items...), nil
}
