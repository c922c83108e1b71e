package jinja

// Methods of lists and dictionaries.

var listMethods, tupleMethods, dictMethods map[string]func(*call) (Value, error)

func init() {
	listMethods = map[string]func(*call) (Value, error){
		"append": listAppend, "extend": listExtend, "insert": listInsert, "pop": listPop, "remove": listRemove, "clear": listClear,
		"reverse": listReverse, "sort": listSort, "copy": listCopy, "index": listIndex, "count": listCount,
	}
	tupleMethods = map[string]func(*call) (Value, error){"index": listIndex, "count": listCount}
	dictMethods = map[string]func(*call) (Value, error){
		"items": dictItems, "keys": dictKeys, "values": dictValues, "get": dictGet, "pop": dictPop, "popitem": dictPopItem, "update": dictUpdate,
		"setdefault": dictSetDefault, "copy": dictCopy, "clear": dictClear,
	}
}

func (c *call) list() (*List, error) {
	return c.input.(*List), c.r.charge(16)
}

func listAppend(c *call) (Value, error) {
	l, err := c.list()
	if err != nil {
		return nil, err
	}
	v, err := c.need(0, "object")
	if err != nil {
		return nil, err
	}
	l.Items = append(l.Items, v)
	return nil, c.r.charge(32)
}

func listExtend(c *call) (Value, error) {
	l, err := c.list()
	if err != nil {
		return nil, err
	}
	items, err := c.r.iterate(c.rawArg(0, "iterable", nil))
	if err != nil {
		return nil, err
	}
	if err := c.r.charge(32 * len(items)); err != nil {
		return nil, err
	}
	l.Items = append(l.Items, items...)
	return nil, nil
}

func listInsert(c *call) (Value, error) {
	l, err := c.list()
	if err != nil {
		return nil, err
	}
	at, err := c.int(0, "index", 0)
	if err != nil {
		return nil, err
	}
	n := int64(len(l.Items))
	if at < 0 {
		at += n
	}
	at = min(max(at, 0), n)
	items := append([]Value{}, l.Items[:at]...)
	l.Items = append(append(items, c.rawArg(1, "object", nil)), l.Items[at:]...)
	return nil, c.r.charge(16 * len(l.Items))
}

func listPop(c *call) (Value, error) {
	l, err := c.list()
	if err != nil {
		return nil, err
	}
	at, ok := index(c.arg(0, "index", int64(-1)), len(l.Items))
	if !ok {
		return nil, errorf("pop: the list has no such element")
	}
	v := l.Items[at]
	l.Items = append(l.Items[:at:at], l.Items[at+1:]...)
	return v, c.r.charge(16 * (len(l.Items) - at))
}

func listRemove(c *call) (Value, error) {
	l, err := c.list()
	if err != nil {
		return nil, err
	}
	at, err := c.position(l)
	if err != nil {
		return nil, err
	}
	l.Items = append(l.Items[:at:at], l.Items[at+1:]...)
	return nil, c.r.charge(16 * len(l.Items))
}

// position returns where the first argument is in a list.
func (c *call) position(l *List) (int, error) {
	want := c.arg(0, "value", nil)
	for i, item := range l.Items {
		if same, err := c.r.equal(item, want, 0); err != nil || same {
			return i, err
		}
	}
	return 0, errorf("%s: the list has no such element", c.name)
}

func listIndex(c *call) (Value, error) {
	at, err := c.position(c.input.(*List))
	return int64(at), err
}

func listCount(c *call) (Value, error) {
	n := int64(0)
	for _, item := range c.input.(*List).Items {
		same, err := c.r.equal(item, c.arg(0, "value", nil), 0)
		if err != nil {
			return nil, err
		}
		if same {
			n++
		}
	}
	return n, nil
}

func listClear(c *call) (Value, error) {
	l, err := c.list()
	if err == nil {
		l.Items = nil
	}
	return nil, err
}

func listReverse(c *call) (Value, error) {
	l, err := c.list()
	if err != nil {
		return nil, err
	}
	reversed, err := reverseItems(c)
	if err == nil {
		l.Items = reversed
	}
	return nil, err
}

// listSort sorts as Python does, by the values themselves.
func listSort(c *call) (Value, error) {
	l, err := c.list()
	if err != nil {
		return nil, err
	}
	if key := c.arg(9, "key", nil); key != nil {
		return nil, errorf("sort takes no key here; the filter sort takes an attribute")
	}
	sorted, err := c.r.sorted(l.Items, func(v Value) (Value, error) { return v, nil }, c.flag(9, "reverse", false))
	if err == nil {
		l.Items = sorted
	}
	return nil, err
}

func listCopy(c *call) (Value, error) {
	items, err := c.inputItems()
	return &List{Items: items}, err
}

func dictItems(c *call) (Value, error) {
	d := c.input.(*Dict)
	if err := c.r.charge(80 * d.Len()); err != nil {
		return nil, err
	}
	items := make([]Value, d.Len())
	for i := range items {
		k, v := d.at(i)
		items[i] = &List{Items: []Value{k, v}, Tuple: true}
	}
	return &List{Items: items, kind: "dict_items"}, nil
}

func dictKeys(c *call) (Value, error) {
	items, err := c.inputItems()
	return &List{Items: items, kind: "dict_keys"}, err
}

func dictValues(c *call) (Value, error) {
	d := c.input.(*Dict)
	if err := c.r.charge(16 * d.Len()); err != nil {
		return nil, err
	}
	items := make([]Value, d.Len())
	for i := range items {
		_, items[i] = d.at(i)
	}
	return &List{Items: items, kind: "dict_values"}, nil
}

func dictGet(c *call) (Value, error) {
	key, err := c.need(0, "key")
	if err != nil {
		return nil, err
	}
	if v, ok := c.input.(*Dict).Get(key); ok {
		return v, nil
	}
	return c.rawArg(1, "default", nil), nil
}

func dictPopItem(c *call) (Value, error) {
	d := c.input.(*Dict)
	if d.Len() == 0 {
		return nil, errorf("popitem: the dictionary is empty")
	}
	k, v := d.at(d.Len() - 1)
	d.Delete(k)
	return &List{Items: []Value{k, v}, Tuple: true}, c.r.charge(32 + 16*d.Len())
}

func dictPop(c *call) (Value, error) {
	key, err := c.need(0, "key")
	if err != nil {
		return nil, err
	}
	d := c.input.(*Dict)
	if v, ok := d.Get(key); ok {
		d.Delete(key)
		return v, c.r.charge(16 * d.Len())
	}
	if missing := c.rawArg(1, "default", Undefined{}); !isUndefined(missing) {
		return missing, nil
	}
	return nil, errorf("pop: the dictionary has no such key")
}

func dictUpdate(c *call) (Value, error) {
	d := c.input.(*Dict)
	for _, from := range []Value{c.arg(0, "other", nil), c.kwargs} {
		other, ok := from.(*Dict)
		if !ok || other == nil {
			continue
		}
		for i := range other.keys {
			if err := d.Set(other.at(i)); err != nil {
				return nil, err
			}
		}
		if err := c.r.charge(64 * other.Len()); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func dictSetDefault(c *call) (Value, error) {
	key, err := c.need(0, "key")
	if err != nil {
		return nil, err
	}
	d := c.input.(*Dict)
	if v, ok := d.Get(key); ok {
		return v, nil
	}
	v := c.rawArg(1, "default", nil)
	if err := d.Set(key, v); err != nil {
		return nil, err
	}
	return v, c.r.charge(64)
}

func dictCopy(c *call) (Value, error) {
	out := NewDict()
	d := c.input.(*Dict)
	for i := range d.keys {
		if err := out.Set(d.at(i)); err != nil {
			return nil, err
		}
	}
	return out, c.r.charge(64 * d.Len())
}

func dictClear(c *call) (Value, error) {
	*c.input.(*Dict) = *NewDict()
	return nil, nil
}
