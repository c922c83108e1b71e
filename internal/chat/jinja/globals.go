package jinja

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxRange bounds the elements of range(), as Jinja2's sandbox does.
const maxRange = 100_000

// globals puts the functions that every template sees into a scope.
func (r *run) globals(s *scope) {
	for name, f := range map[string]func(*call) (Value, error){
		"range": rangeFunc, "namespace": namespaceFunc, "dict": dictFunc, "joiner": joinerFunc, "cycler": cyclerFunc,
	} {
		s.set(name, &Func{name, func(args []Value, kwargs *Dict) (Value, error) { return f(&call{r, name, nil, args, kwargs}) }})
	}
}

func rangeFunc(c *call) (Value, error) {
	if len(c.args) == 0 || len(c.args) > 3 {
		return nil, errorf("range takes one to three ints")
	}
	bounds := [3]int64{0, 0, 1}
	for i := range c.args {
		n, err := c.int(i, "bound", 0)
		if err != nil {
			return nil, err
		}
		bounds[i] = n
	}
	if len(c.args) == 1 {
		bounds[0], bounds[1] = 0, bounds[0]
	}
	start, stop, step := bounds[0], bounds[1], bounds[2]
	if step == 0 {
		return nil, errorf("range needs a step that is not 0")
	}
	var items []Value
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if len(items) == maxRange {
			return nil, errorf("range has more than %d elements", maxRange)
		}
		items = append(items, i)
		if step > 0 && i > math.MaxInt64-step || step < 0 && i < math.MinInt64-step {
			break
		}
	}
	return &List{Items: items}, c.r.charge(16 * len(items))
}

// dictFunc is dict(pairs, key=value…).
func dictFunc(c *call) (Value, error) {
	out := NewDict()
	if from := c.arg(0, "", nil); len(c.args) > 0 {
		if d, ok := from.(*Dict); ok {
			copied, err := dictCopy(&call{r: c.r, input: d})
			if err != nil {
				return nil, err
			}
			out = copied.(*Dict)
		} else if err := c.addPairs(out, from); err != nil {
			return nil, err
		}
	}
	for i := range c.kwargs.keys {
		if err := out.Set(c.kwargs.at(i)); err != nil {
			return nil, err
		}
	}
	return out, c.r.charge(64 * out.Len())
}

func (c *call) addPairs(out *Dict, from Value) error {
	pairs, err := c.r.iterate(from)
	if err != nil {
		return err
	}
	for _, pair := range pairs {
		items, err := c.r.iterate(pair)
		if err != nil || len(items) != 2 {
			return errorf("dict takes pairs")
		}
		if err := out.Set(items[0], items[1]); err != nil {
			return err
		}
	}
	return nil
}

func namespaceFunc(c *call) (Value, error) {
	d, err := dictFunc(c)
	if err != nil {
		return nil, err
	}
	return &Namespace{d.(*Dict)}, nil
}

func joinerFunc(c *call) (Value, error) {
	sep, used := c.arg(0, "sep", ", "), false
	return &Func{"joiner", func([]Value, *Dict) (Value, error) {
		if !used {
			used = true
			return "", nil
		}
		return sep, nil
	}}, nil
}

func cyclerFunc(c *call) (Value, error) {
	items, at := c.args, 0
	if len(items) == 0 {
		return nil, errorf("cycler needs values")
	}
	ns := &Namespace{NewDict()}
	show := func() error { return ns.attrs.Set("current", items[at]) }
	next := &Func{"next", func([]Value, *Dict) (Value, error) {
		v := items[at]
		at = (at + 1) % len(items)
		return v, show()
	}}
	reset := &Func{"reset", func([]Value, *Dict) (Value, error) { at = 0; return nil, show() }}
	if err := ns.attrs.Set("next", next); err != nil {
		return nil, err
	}
	if err := ns.attrs.Set("reset", reset); err != nil {
		return nil, err
	}
	return ns, show()
}

// percent is Python's "…" % value, with %s, %r, %d, %i, %f, %x and %%.
func (r *run) percent(format string, arg Value) (Value, error) {
	args := []Value{arg}
	if l, ok := arg.(*List); ok && l.Tuple {
		args = l.Items
	}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		start := i
		for i++; i < len(format) && strings.IndexByte("-+ 0#.123456789", format[i]) >= 0; i++ {
		}
		if i == len(format) || i-start > 8 {
			return nil, errorf("the format %q is not complete", format)
		}
		if format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		if len(args) == 0 {
			return nil, errorf("too few values for the format %q", format)
		}
		text, err := r.directive(format[start:i], format[i], args[0])
		if err != nil {
			return nil, err
		}
		b.WriteString(text)
		args = args[1:]
		if err := r.charge(len(text)); err != nil {
			return nil, err
		}
	}
	return b.String(), r.charge(b.Len())
}

// directive formats one value; flags begin with the percent sign.
func (r *run) directive(flags string, verb byte, v Value) (string, error) {
	if width := strings.TrimLeft(flags, "%-+ 0#"); len(width) > 4 {
		return "", errorf("the format %q is too wide", flags)
	}
	i, f, isInt, ok := number(v)
	switch verb {
	case 's', 'r':
		text, err := r.text(v)
		if verb == 'r' {
			text, err = r.repr(v)
		}
		return fmt.Sprintf(flags+"s", text), err
	case 'd', 'i', 'x', 'X', 'o':
		if verb == 'i' {
			verb = 'd'
		}
		if ok && !isInt && math.Abs(f) < 1<<63 {
			i = int64(f)
		}
		if ok {
			return fmt.Sprintf(flags+string(verb), i), nil
		}
	case 'f', 'e', 'g', 'F', 'E', 'G':
		if ok {
			return fmt.Sprintf(flags+string(verb), f), nil
		}
	}
	return "", errorf("the format %s%c does not go with a %s", flags, verb, typeName(v))
}

// formatText is str.format with {}, {0} and {name}, and the filter format with its percent signs.
func formatText(c *call) (Value, error) {
	s, err := c.inputText()
	if err != nil {
		return nil, err
	}
	if strings.Contains(s, "%") && !strings.Contains(s, "{") {
		return c.r.percent(s, &List{Items: c.args, Tuple: true})
	}
	var b strings.Builder
	auto := 0
	for i := 0; i < len(s); i++ {
		if (s[i] == '{' || s[i] == '}') && i+1 < len(s) && s[i+1] == s[i] {
			b.WriteByte(s[i])
			i++
			continue
		}
		if s[i] != '{' {
			b.WriteByte(s[i])
			continue
		}
		end := strings.IndexByte(s[i:], '}')
		if end < 0 {
			return nil, errorf("format: a { has no }")
		}
		field := s[i+1 : i+end]
		i += end
		if field == "" {
			field = strconv.Itoa(auto)
			auto++
		}
		text, err := c.field(field)
		if err != nil {
			return nil, err
		}
		b.WriteString(text)
		if err := c.r.charge(len(text)); err != nil {
			return nil, err
		}
	}
	return b.String(), c.r.charge(b.Len())
}

func (c *call) field(name string) (string, error) {
	if i, err := strconv.Atoi(name); err == nil {
		if i < 0 || i >= len(c.args) {
			return "", errorf("format has no value %d", i)
		}
		return c.r.text(c.args[i])
	}
	v, ok := c.kwargs.Get(name)
	if !ok {
		return "", errorf("format has no value %q", name)
	}
	return c.r.text(v)
}
