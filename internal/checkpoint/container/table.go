package container

import (
	"fmt"
	"iter"

	"github.com/spillway/spillway/internal/vfs"
)

// Entry is one metadata key with its value.
type Entry struct {
	Key string
	Value
}

// Table is a file's metadata: scalars and strings in memory, lists where they lie. Reading it is
// safe for concurrent use.
type Table struct {
	src     vfs.File
	entries []Entry
	order   []int32 // by key
}

// NewTable makes a table of entries that were read from src. It returns the
// key that occurs twice, if one does.
func NewTable(src vfs.File, entries []Entry) (t *Table, duplicate string, ok bool) {
	key := func(i int) string { return entries[i].Key }
	t = &Table{src: src, entries: entries, order: ByName(len(entries), key)}
	if i := Duplicate(t.order, key); i >= 0 {
		return nil, entries[i].Key, false
	}
	return t, "", true
}

// Entries returns all entries in the order of the file. They must not be changed.
func (t *Table) Entries() []Entry { return t.entries }

// Keys yields key and kind in the order of the file.
func (t *Table) Keys() iter.Seq2[string, Kind] {
	return func(yield func(string, Kind) bool) {
		for i := range t.entries {
			if !yield(t.entries[i].Key, t.entries[i].Kind) {
				return
			}
		}
	}
}

// Lookup returns the value of a key, or nil.
func (t *Table) Lookup(key string) *Value {
	i := Search(t.order, func(i int) string { return t.entries[i].Key }, key)
	if i < 0 {
		return nil
	}
	return &t.entries[i].Value
}

// String returns a string, as its bytes are; false if there is none or it is longer than MaxText.
func (t *Table) String(key string) (string, bool) {
	v := t.Lookup(key)
	if v == nil || !v.IsText() {
		return "", false
	}
	return string(v.text), true
}

// Int returns an integer of any width that fits into an int64.
func (t *Table) Int(key string) (int64, bool) {
	if v := t.Lookup(key); v != nil {
		return v.Int()
	}
	return 0, false
}

// Float returns a float, or an integer as a float.
func (t *Table) Float(key string) (float64, bool) {
	if v := t.Lookup(key); v != nil {
		return v.Float()
	}
	return 0, false
}

// Bool returns a boolean.
func (t *Table) Bool(key string) (value, ok bool) {
	if v := t.Lookup(key); v != nil {
		return v.Bool()
	}
	return false, false
}

// Count returns the number of elements of a list.
func (t *Table) Count(key string) (int, bool) {
	v := t.Lookup(key)
	if v == nil || v.Kind != List {
		return 0, false
	}
	return int(v.Array.Count), true
}

// Strings yields the elements of a list of strings; each is valid until the next. A key that is
// absent yields nothing; another type, or a read that fails, yields an error and ends.
func (t *Table) Strings(key string) iter.Seq2[[]byte, error] {
	return elements(t, key, String, func(v *Value) ([]byte, bool) { return v.text, v.Kind == String })
}

// Ints yields the elements of a list of integers, as Strings does.
func (t *Table) Ints(key string) iter.Seq2[int64, error] {
	return elements(t, key, Int64, (*Value).Int)
}

// Floats yields the elements of a list of numbers, as Strings does.
func (t *Table) Floats(key string) iter.Seq2[float64, error] {
	return elements(t, key, Float64, (*Value).Float)
}

// Bools yields the elements of a list of booleans, as Strings does.
func (t *Table) Bools(key string) iter.Seq2[bool, error] {
	return elements(t, key, Bool, (*Value).Bool)
}

func elements[T any](t *Table, key string, want Kind, get func(*Value) (T, bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		v := t.Lookup(key)
		if v == nil {
			return
		}
		if v.Kind != List {
			yield(none, t.errorf(key, "is %v, not a list", v.Kind))
			return
		}
		for e, err := range t.Elements(v.Array) {
			if err != nil {
				yield(none, fmt.Errorf("%s: key %s: %w", t.src.Name(), Name(key), err))
				return
			}
			x, ok := get(&e)
			if !ok {
				yield(none, t.errorf(key, "has an element of %v that is no %v", e.Kind, want))
				return
			}
			if !yield(x, nil) {
				return
			}
		}
	}
}

func (t *Table) errorf(key, format string, args ...any) error {
	return &Error{Path: t.src.Name(), Where: "key " + Name(key), What: fmt.Sprintf(format, args...)}
}

// Elements yields the elements of a list, nested lists as their place, through a small buffer.
func (t *Table) Elements(a Array) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		if a.Count == 0 {
			return
		}
		r := NewReader(t.src, a.Offset, a.Offset+a.Bytes)
		var scratch []byte
		for range a.Count {
			v, err := readValue(r, a.Elem, MaxText, scratch[:0], 0)
			if err == nil && v.Kind == String && !v.IsText() {
				err = errLongText
			}
			if v.text != nil {
				scratch = v.text
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}
