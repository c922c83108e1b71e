package jinja

import (
	"fmt"
	"math"
)

// maxRange bounds the elements of range(), as Jinja2's sandbox does.
const maxRange = 100_000

// globals puts the functions that every template sees into a scope.
func (r *run) globals(s *scope) {
	for name, f := range map[string]func(*call) (Value, error){
		"range": rangeFunc, "namespace": namespaceFunc, "dict": dictFunc, "joiner": joinerFunc, "cycler": cyclerFunc,
		"lipsum": refused("it would give another text every time"),
	} {
		s.set(name, &Func{Name: name, Call: func(args []Value, kwargs *Dict) (Value, error) { return f(r.newCall(name, nil, args, kwargs)) }})
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
	return &List{Items: items, kind: rangeText(start, stop, step)}, c.r.charge(16 * len(items))
}

// rangeText is how Python shows a range.
func rangeText(start, stop, step int64) string {
	if step == 1 {
		return fmt.Sprintf("range(%d, %d)", start, stop)
	}
	return fmt.Sprintf("range(%d, %d, %d)", start, stop, step)
}

// refused makes a function that says why it is none.
func refused(why string) func(*call) (Value, error) {
	return func(c *call) (Value, error) { return nil, errorf("%s is not possible: %s", c.name, why) }
}

// dictFunc is dict(pairs, key=value…).
func dictFunc(c *call) (Value, error) {
	out := NewDict()
	if from := c.arg(0, "", nil); len(c.args) > 0 {
		if d, ok := from.(*Dict); ok {
			copied, err := dictCopy(c.r.newCall("copy", d, nil, nil))
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
	sep, used := c.rawArg(0, "sep", ", "), false
	return &Func{Name: "joiner", Call: func([]Value, *Dict) (Value, error) {
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
	next := &Func{Name: "next", Call: func([]Value, *Dict) (Value, error) {
		v := items[at]
		at = (at + 1) % len(items)
		return v, show()
	}}
	reset := &Func{Name: "reset", Call: func([]Value, *Dict) (Value, error) { at = 0; return nil, show() }}
	if err := ns.attrs.Set("next", next); err != nil {
		return nil, err
	}
	if err := ns.attrs.Set("reset", reset); err != nil {
		return nil, err
	}
	return ns, show()
}
