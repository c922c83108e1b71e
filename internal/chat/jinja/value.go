package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Value is what an expression gives: nil (None), bool, int64, float64, string, *Text, *List, *Dict, *Func,
// *Namespace, *loopState or Undefined.
type Value = any

// Undefined is the value of a name that is not there. Printing it gives nothing; looking into it is an
// error.
type Undefined struct{ Name string }

// List is a Python list, a tuple, or what a filter such as map gives: a generator, which has no length, is
// always true and cannot be printed as JSON.
type List struct {
	Items []Value
	Tuple bool
	Lazy  bool   // what has been gone through is gone
	kind  string // how Python shows it, if it is neither a list nor a tuple: range(0, 3), dict_items, group
}

// isSequence tells lists and tuples from what can only be gone through.
func (l *List) isSequence() bool { return !l.Lazy && (l.kind == "" || l.kind == groupKind) }

// groupKind are the pairs that groupby gives.
const groupKind = "group"

// NewList makes a list.
func NewList(items ...Value) *List { return &List{Items: items} }

// Dict is a dictionary that keeps the order of its keys, which are strings, numbers, bools or None.
type Dict struct {
	keys   []Value
	values map[Value]Value
}

// NewDict makes an empty dictionary.
func NewDict() *Dict { return &Dict{values: map[Value]Value{}} }

// hashKey makes equal numbers one key, as in Python.
func hashKey(key Value) (Value, error) {
	switch k := plain(key).(type) {
	case nil, string, int64:
		return k, nil
	case bool:
		if k {
			return int64(1), nil
		}
		return int64(0), nil
	case float64:
		if k == math.Trunc(k) && math.Abs(k) < 1<<53 {
			return int64(k), nil
		}
		return k, nil
	}
	return nil, errorf("a %s cannot be the key of a dictionary", typeName(key))
}

// Get returns the value of a key.
func (d *Dict) Get(key Value) (Value, bool) {
	k, err := hashKey(key)
	if err != nil {
		return nil, false
	}
	v, ok := d.values[k]
	return v, ok
}

// Set puts a value under a key, at the end if the key is new.
func (d *Dict) Set(key, value Value) error {
	k, err := hashKey(key)
	if err != nil {
		return err
	}
	if _, ok := d.values[k]; !ok {
		d.keys = append(d.keys, key)
	}
	d.values[k] = value
	return nil
}

// Delete takes a key out.
func (d *Dict) Delete(key Value) {
	k, err := hashKey(key)
	if err != nil {
		return
	}
	if _, ok := d.values[k]; !ok {
		return
	}
	delete(d.values, k)
	for i, other := range d.keys {
		if o, _ := hashKey(other); o == k {
			d.keys = append(d.keys[:i:i], d.keys[i+1:]...)
			return
		}
	}
}

// Len returns the number of keys.
func (d *Dict) Len() int { return len(d.keys) }

// Keys returns the keys in order.
func (d *Dict) Keys() []Value { return d.keys }

func (d *Dict) at(i int) (key, value Value) {
	k, _ := hashKey(d.keys[i])
	return d.keys[i], d.values[k]
}

// Namespace is what namespace() makes: an object with attributes that can be set.
type Namespace struct{ attrs *Dict }

// Func is something that can be called.
type Func struct {
	Name  string
	Call  func(args []Value, kwargs *Dict) (Value, error)
	attrs map[string]Value
}

// typeName is Python's name of a value's type, for errors.
func typeName(v Value) string {
	switch v := plain(v).(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case *List:
		switch {
		case v.Tuple:
			return "tuple"
		case v.Lazy:
			return "generator"
		}
		return "list"
	case *Dict:
		return "dict"
	case Undefined:
		return "undefined value"
	case *Namespace:
		return "namespace"
	case *loopState:
		return "loop"
	}
	return "function"
}

// truth is Python's bool().
func truth(v Value) bool {
	switch v := plain(v).(type) {
	case nil, Undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *List:
		return len(v.Items) > 0 || v.Lazy
	case *Dict:
		return v.Len() > 0
	}
	return true
}

// text is Python's str().
func (r *run) text(v Value) (Text, error) {
	switch v := v.(type) {
	case string:
		return Text{s: v}, nil
	case *Text:
		return *v, nil
	case Undefined:
		return Text{}, nil
	case *List, *Dict:
		r.python = true
	}
	return r.repr(v)
}

// Print is Python's str() of a value, cut off where it is very long; for errors.
func Print(v Value) string {
	t, err := (&run{limits: Limits{Steps: 1 << 16, Bytes: 1 << 20}}).text(v)
	if err != nil {
		return describe(v) + " value"
	}
	return t.s
}

// repr is Python's repr(). All of it counts as the request's if anything in it does.
func (r *run) repr(v Value) (Text, error) {
	var b strings.Builder
	outer := r.met
	r.met = false
	err := r.writeRepr(&b, v, 0)
	met := r.met
	r.met = outer || met
	return Text{s: b.String(), whole: met}, err
}

// maxDepth bounds how deep values nest when they are printed or compared: a list may contain itself.
const maxDepth = 100

func (r *run) writeRepr(b *strings.Builder, v Value, depth int) error {
	if depth > maxDepth {
		return errorf("a value is nested more than %d levels deep", maxDepth)
	}
	start := b.Len()
	r.met = r.met || isUser(v)
	if t, ok := v.(*Text); ok && t.safe {
		b.WriteString("Markup(")
		writeReprString(b, t.s)
		b.WriteString(")")
		return r.charge(b.Len() - start)
	}
	switch v := plain(v).(type) {
	case nil:
		b.WriteString("None")
	case bool:
		if v {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		b.WriteString(floatText(v))
	case string:
		writeReprString(b, v)
	case Undefined:
		b.WriteString("Undefined")
	case *List:
		if err := r.reprList(b, v, depth); err != nil {
			return err
		}
	case *Dict:
		if err := r.reprDict(b, v, depth); err != nil {
			return err
		}
	default:
		b.WriteString("<" + typeName(v) + ">")
	case *Namespace:
		b.WriteString("<Namespace ")
		if err := r.reprDict(b, v.attrs, depth); err != nil {
			return err
		}
		b.WriteString(">")
	}
	return r.charge(b.Len() - start)
}

func (r *run) reprList(b *strings.Builder, v *List, depth int) error {
	open, end := "[", "]"
	switch {
	case v.Lazy:
		b.WriteString("<generator>")
		return nil
	case strings.HasPrefix(v.kind, "range"):
		b.WriteString(v.kind)
		return nil
	case v.kind != "" && v.kind != groupKind:
		open, end = v.kind+"([", "])"
	}
	if v.Tuple {
		open, end = "(", ")"
		if len(v.Items) == 1 {
			end = ",)"
		}
	}
	b.WriteString(open)
	for i, item := range v.Items {
		if i > 0 {
			b.WriteString(", ")
		}
		if err := r.writeRepr(b, item, depth+1); err != nil {
			return err
		}
	}
	b.WriteString(end)
	return nil
}

func (r *run) reprDict(b *strings.Builder, v *Dict, depth int) error {
	b.WriteByte('{')
	for i := range v.keys {
		if i > 0 {
			b.WriteString(", ")
		}
		key, value := v.at(i)
		if err := r.writeRepr(b, key, depth+1); err != nil {
			return err
		}
		b.WriteString(": ")
		if err := r.writeRepr(b, value, depth+1); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// writeReprString writes a string as Python's repr() does.
func writeReprString(b *strings.Builder, s string) {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b.WriteByte(quote)
	for _, c := range s {
		switch {
		case c == rune(quote) || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c == 0x7f:
			b.WriteString(`\x` + hex(c, 2))
		case unicode.IsPrint(c):
			b.WriteRune(c)
		case c < 0x100:
			b.WriteString(`\x` + hex(c, 2))
		case c < 0x10000:
			b.WriteString(`\u` + hex(c, 4))
		default:
			b.WriteString(`\U` + hex(c, 8))
		}
	}
	b.WriteByte(quote)
}

func hex(c rune, digits int) string {
	s := strconv.FormatInt(int64(c), 16)
	return strings.Repeat("0", max(digits-len(s), 0)) + s
}

// floatText is Python's repr() of a float.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64) // Go and Python both write at least two digits of exponent
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// number returns an int64 or float64 for anything that is a number, bools too.
func number(v Value) (i int64, f float64, isInt, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, 1, true, true
		}
		return 0, 0, true, true
	case int64:
		return v, float64(v), true, true
	case float64:
		return 0, v, false, true
	}
	return 0, 0, false, false
}

// equal is Python's ==.
func (r *run) equal(a, b Value, depth int) (bool, error) {
	a, b = plain(a), plain(b)
	if depth > maxDepth {
		return false, errorf("a value is nested more than %d levels deep", maxDepth)
	}
	if err := r.step(); err != nil {
		return false, err
	}
	ai, af, aInt, aok := number(a)
	bi, bf, bInt, bok := number(b)
	if aok && bok {
		if aInt && bInt {
			return ai == bi, nil
		}
		return af == bf, nil
	}
	switch a := a.(type) {
	case nil:
		return b == nil, nil
	case string:
		s, ok := b.(string)
		return ok && s == a, r.look(a)
	case Undefined:
		_, ok := b.(Undefined)
		return ok, nil
	case *List:
		other, ok := b.(*List)
		return r.equalLists(a, other, ok, depth)
	case *Dict:
		other, ok := b.(*Dict)
		return r.equalDicts(a, other, ok, depth)
	case *Func:
		return b == Value(a), nil
	}
	return false, nil
}

func (r *run) equalLists(a, b *List, ok bool, depth int) (bool, error) {
	if !ok || len(a.Items) != len(b.Items) || a.Tuple != b.Tuple || (a.Lazy || b.Lazy) && a != b {
		return false, nil
	}
	for i := range a.Items {
		if same, err := r.equal(a.Items[i], b.Items[i], depth+1); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func (r *run) equalDicts(a, b *Dict, ok bool, depth int) (bool, error) {
	if !ok || a.Len() != b.Len() {
		return false, nil
	}
	for i := range a.keys {
		key, value := a.at(i)
		other, ok := b.Get(key)
		if !ok {
			return false, nil
		}
		if same, err := r.equal(value, other, depth+1); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// compare is -1, 0 or 1 for numbers, strings and lists of them; other pairs have no order.
func (r *run) compare(a, b Value, depth int) (int, error) {
	a, b = plain(a), plain(b)
	_, af, _, aok := number(a)
	_, bf, _, bok := number(b)
	if aok && bok {
		switch {
		case af < bf:
			return -1, nil
		case af > bf:
			return 1, nil
		}
		return 0, nil
	}
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok {
			return strings.Compare(x, y), r.look(x)
		}
	}
	x, xok := a.(*List)
	y, yok := b.(*List)
	if xok && yok && x.Tuple == y.Tuple && x.isSequence() && y.isSequence() && depth < maxDepth {
		for i := range min(len(x.Items), len(y.Items)) {
			if c, err := r.compare(x.Items[i], y.Items[i], depth+1); err != nil || c != 0 {
				return c, err
			}
		}
		return len(x.Items) - len(y.Items), nil
	}
	return 0, errorf("%s and %s cannot be ordered", typeName(a), typeName(b))
}

// length is Python's len().
func (r *run) length(v Value) (int, error) {
	switch v := plain(v).(type) {
	case string:
		return utf8.RuneCountInString(v), r.look(v)
	case *List:
		if !v.Lazy {
			return len(v.Items), nil
		}
	case *Dict:
		return v.Len(), nil
	case Undefined:
		return 0, nil
	case *loopState:
		return len(v.items), nil
	}
	return 0, errorf("a %s has no length", typeName(v))
}

// iterate returns the elements of a value.
func (r *run) iterate(whole Value) ([]Value, error) {
	switch v := plain(whole).(type) {
	case *List:
		items := v.Items
		if v.Lazy {
			v.Items = nil
		}
		return items, nil
	case *Dict:
		return v.keys, nil
	case string:
		t, _ := textOf(whole)
		return r.characters(t)
	case Undefined:
		return nil, nil
	}
	return nil, errorf("a %s cannot be iterated over", typeName(whole))
}

// characters are the characters of a text.
func (r *run) characters(t Text) ([]Value, error) {
	each := 16
	t.safe = false
	if t.tainted() {
		each = 80
	}
	if err := r.charge(each * len(t.s)); err != nil {
		return nil, err
	}
	items := make([]Value, 0, len(t.s))
	for i := 0; i < len(t.s); {
		_, n := utf8.DecodeRuneInString(t.s[i:])
		if t.whole {
			items = append(items, User(t.s[i:i+n]))
		} else {
			items = append(items, t.cut(i, i+n).value())
		}
		i += n
	}
	return items, nil
}
