package container

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Kind is the type of a metadata value, numbered as in the GGUF specification.
type Kind uint32

// Kinds of values.
const (
	Uint8 Kind = iota
	Int8
	Uint16
	Int16
	Uint32
	Int32
	Float32
	Bool
	String
	List
	Uint64
	Int64
	Float64
)

var kinds = [...]struct {
	name string
	size int // bytes in the file; of strings and lists the least
}{
	Uint8: {"uint8", 1}, Int8: {"int8", 1}, Uint16: {"uint16", 2}, Int16: {"int16", 2},
	Uint32: {"uint32", 4}, Int32: {"int32", 4}, Float32: {"float32", 4}, Bool: {"bool", 1},
	String: {"string", 8}, List: {"array", 12}, Uint64: {"uint64", 8}, Int64: {"int64", 8}, Float64: {"float64", 8},
}

// Valid reports whether k is a kind of the specification.
func (k Kind) Valid() bool { return int(k) < len(kinds) }

func (k Kind) String() string {
	if k.Valid() {
		return kinds[k].name
	}
	return fmt.Sprintf("value type %d", uint32(k))
}

// Array is where a list lies: it is read when somebody asks for its elements.
type Array struct {
	Elem   Kind
	Count  int64
	Offset int64 // of the first element in the file
	Bytes  int64 // of all elements
}

// Value is one metadata value.
type Value struct {
	Kind  Kind
	Array Array // of a List; of a String, where it lies
	bits  uint64
	text  []byte
}

const (
	// MaxText is the longest string that is kept or yielded.
	MaxText = 1 << 20
	// maxDepth is how deep lists may nest.
	maxDepth = 16
)

// Errors of values; the readers wrap them in an Error that names the key.
var (
	errDepth    = fmt.Errorf("lists nest deeper than %d levels", maxDepth)
	errLongText = fmt.Errorf("a string is longer than %d bytes", MaxText)
)

// IsText reports whether the value is a string that is at hand: one of more than MaxText bytes is not.
func (v *Value) IsText() bool { return v.Kind == String && int64(len(v.text)) == v.Array.Count }

// Text returns a string's bytes, which need not be UTF-8. Of an element they are valid until the
// next one.
func (v *Value) Text() []byte { return v.text }

// Uint returns an integer that is not negative.
func (v *Value) Uint() (uint64, bool) {
	switch v.Kind {
	case Uint8, Uint16, Uint32, Uint64:
		return v.bits, true
	case Int8, Int16, Int32, Int64:
		return v.bits, int64(v.bits) >= 0
	}
	return 0, false
}

// Int returns an integer that fits.
func (v *Value) Int() (int64, bool) {
	switch v.Kind {
	case Uint8, Uint16, Uint32, Uint64:
		return int64(v.bits), v.bits <= math.MaxInt64
	case Int8, Int16, Int32, Int64:
		return int64(v.bits), true
	}
	return 0, false
}

// Float returns a float, or an integer as a float.
func (v *Value) Float() (float64, bool) {
	switch v.Kind {
	case Float32:
		return float64(math.Float32frombits(uint32(v.bits))), true
	case Float64:
		return math.Float64frombits(v.bits), true
	}
	if i, ok := v.Int(); ok {
		return float64(i), true
	}
	u, ok := v.Uint()
	return float64(u), ok
}

// Bool returns a boolean.
func (v *Value) Bool() (value, ok bool) { return v.bits != 0, v.Kind == Bool }

// String formats the value for people; lists and long strings by their size.
func (v *Value) String() string {
	switch v.Kind {
	case String:
		if !v.IsText() {
			return fmt.Sprintf("string of %d bytes", v.Array.Count)
		}
		return string(v.text)
	case List:
		return fmt.Sprintf("%d × %v", v.Array.Count, v.Array.Elem)
	case Bool:
		return strconv.FormatBool(v.bits != 0)
	case Float32:
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(v.bits))), 'g', -1, 32)
	case Float64:
		return strconv.FormatFloat(math.Float64frombits(v.bits), 'g', -1, 64)
	}
	if i, ok := v.Int(); ok {
		return strconv.FormatInt(i, 10)
	}
	return strconv.FormatUint(v.bits, 10)
}

// TextValue is a string value with text of the caller's.
func TextValue(text string) Value {
	return Value{Kind: String, text: []byte(text), Array: Array{Count: int64(len(text))}}
}

// ReadValue reads a value of kind k. A string of more than MaxText bytes, and every list, is checked
// and passed; only where it lies is remembered.
func ReadValue(r *Reader, k Kind) (Value, error) { return readValue(r, k, MaxText, nil, 0) }

func readValue(r *Reader, k Kind, keep int64, scratch []byte, depth int) (Value, error) {
	switch {
	case !k.Valid():
		return Value{}, fmt.Errorf("%v is not a type of the format", k)
	case k == String:
		return readText(r, keep, scratch)
	case k == List:
		a, err := passList(r, depth)
		return Value{Kind: List, Array: a}, err
	}
	b, err := r.Next(kinds[k].size)
	if err != nil {
		return Value{}, err
	}
	v := Value{Kind: k}
	for i, x := range b {
		v.bits |= uint64(x) << (8 * i)
	}
	switch k { // sign
	case Int8:
		v.bits = uint64(int8(v.bits))
	case Int16:
		v.bits = uint64(int16(v.bits))
	case Int32:
		v.bits = uint64(int32(v.bits))
	case Bool:
		if v.bits > 1 {
			return v, fmt.Errorf("a bool is %d, not 0 or 1", v.bits)
		}
	}
	return v, nil
}

func readText(r *Reader, keep int64, scratch []byte) (Value, error) {
	n, err := r.Uint64()
	if err != nil {
		return Value{}, err
	}
	if n > uint64(r.Left()) {
		return Value{}, fmt.Errorf("a string of %d bytes does not fit into the %d bytes that are left", n, r.Left())
	}
	v := Value{Kind: String, Array: Array{Count: int64(n), Offset: r.Offset(), Bytes: int64(n)}}
	if int64(n) > keep {
		return v, r.Skip(int64(n))
	}
	v.text, err = r.Append(scratch, int(n))
	return v, err
}

// passList checks a list and passes it.
func passList(r *Reader, depth int) (Array, error) {
	if depth >= maxDepth {
		return Array{}, errDepth
	}
	elem, err := r.Uint32()
	if err != nil {
		return Array{}, err
	}
	count, err := r.Uint64()
	if err != nil {
		return Array{}, err
	}
	a := Array{Elem: Kind(elem), Offset: r.Offset()}
	if !a.Elem.Valid() {
		return a, fmt.Errorf("elements of %v are not of a type of the format", a.Elem)
	}
	if count > uint64(r.Left())/uint64(kinds[elem].size) {
		return a, fmt.Errorf("a list of %d × %v does not fit into the %d bytes that are left", count, a.Elem, r.Left())
	}
	a.Count = int64(count)
	if err := passElements(r, a.Elem, a.Count, depth); err != nil {
		return a, err
	}
	a.Bytes = r.Offset() - a.Offset
	return a, nil
}

func passElements(r *Reader, elem Kind, count int64, depth int) error {
	switch elem {
	case String, List, Bool:
		for range count {
			if _, err := readValue(r, elem, -1, nil, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return r.Skip(count * int64(kinds[elem].size))
}

// Truncated reports whether err says that the file ended too early.
func Truncated(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }
