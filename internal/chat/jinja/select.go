package jinja

import "slices"

// selectFilter is select, reject and their kin for attributes.
func selectFilter(keep, attribute bool) func(*call) (Value, error) {
	return func(c *call) (Value, error) {
		items, err := c.maybeItems()
		if err != nil {
			return nil, err
		}
		args := c.args
		var path Value
		if attribute {
			if path, err = c.need(0, "attribute"); err != nil {
				return nil, err
			}
			args = args[1:]
		}
		out := &List{Lazy: true}
		for _, item := range items {
			if err := c.r.step(); err != nil {
				return nil, err
			}
			v := item
			if attribute {
				if v, err = c.r.path(item, path); err != nil {
					return nil, err
				}
			}
			ok, err := c.passes(v, args)
			if err != nil {
				return nil, err
			}
			if ok == keep {
				out.Items = append(out.Items, item)
			}
		}
		return out, c.r.charge(16 * len(out.Items))
	}
}

// maybeItems are the elements of the input; a value that counts as false has none, whatever it is.
func (c *call) maybeItems() ([]Value, error) {
	if !truth(c.input) {
		return nil, nil
	}
	return c.r.iterate(c.raw)
}

// passes applies the test that the arguments name, or looks at the truth of the value.
func (c *call) passes(v Value, args []Value) (bool, error) {
	if len(args) == 0 {
		return truth(v), nil
	}
	name, ok := plain(args[0]).(string)
	if !ok {
		return false, errorf("%s takes the name of a test, not a %s", c.name, typeName(args[0]))
	}
	return c.r.applyTest(name, v, args[1:])
}

// sorted returns a sorted copy.
func (r *run) sorted(items []Value, key func(Value) (Value, error), reverse bool) ([]Value, error) {
	if err := r.charge(64 * len(items)); err != nil {
		return nil, err
	}
	type pair struct{ key, item Value }
	pairs := make([]pair, len(items))
	for i, item := range items {
		k, err := key(item)
		if err != nil {
			return nil, err
		}
		pairs[i] = pair{k, item}
	}
	var failed error
	slices.SortStableFunc(pairs, func(a, b pair) int {
		if failed != nil {
			return 0
		}
		if failed = r.step(); failed != nil {
			return 0
		}
		order, err := r.compare(a.key, b.key, 0)
		failed = err
		if reverse {
			return -order
		}
		return order
	})
	out := make([]Value, len(pairs))
	for i, p := range pairs {
		out[i] = p.item
	}
	return out, failed
}

// keyOf makes a key of an attribute (nil: the value itself), without case if fold.
func (r *run) keyOf(attribute Value, fold bool) func(Value) (Value, error) {
	return func(v Value) (Value, error) {
		if attribute != nil {
			var err error
			if v, err = r.path(v, attribute); err != nil {
				return nil, err
			}
		}
		return folded(v, fold), nil
	}
}

func sortFilter(c *call) (Value, error) {
	items, err := c.inputItems()
	if err != nil {
		return nil, err
	}
	out, err := c.r.sorted(items, c.r.keyOf(c.arg(2, "attribute", nil), !c.flag(1, "case_sensitive", false)), c.flag(0, "reverse", false))
	return &List{Items: out}, err
}

func unique(c *call) (Value, error) {
	items, err := c.r.iterate(c.raw)
	if err != nil {
		return nil, err
	}
	key := c.r.keyOf(c.arg(1, "attribute", nil), !c.flag(0, "case_sensitive", false))
	out := &List{Lazy: true}
	seen := NewDict()
	for _, item := range items {
		k, err := key(item)
		if err != nil {
			return nil, err
		}
		if _, ok := seen.Get(k); ok {
			continue
		}
		if err := seen.Set(k, true); err != nil {
			return nil, err
		}
		out.Items = append(out.Items, item)
	}
	return out, c.r.charge(96 * len(out.Items))
}

func groupBy(c *call) (Value, error) {
	items, err := c.inputItems()
	if err != nil {
		return nil, err
	}
	attribute, err := c.need(0, "attribute")
	if err != nil {
		return nil, err
	}
	key := c.r.keyOf(attribute, !c.flag(2, "case_sensitive", false))
	if items, err = c.r.sorted(items, key, false); err != nil {
		return nil, err
	}
	out := &List{}
	var last Value
	for _, item := range items {
		k, err := key(item)
		if err != nil {
			return nil, err
		}
		same, err := c.r.equal(k, last, 0)
		if err != nil {
			return nil, err
		}
		if n := len(out.Items); n > 0 && same {
			group := out.Items[n-1].(*List).Items[1].(*List)
			group.Items = append(group.Items, item)
			continue
		}
		last = k
		shown, err := c.r.path(item, attribute)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, &List{Items: []Value{shown, NewList(item)}, Tuple: true, kind: groupKind})
	}
	return out, c.r.charge(96 * len(items))
}
