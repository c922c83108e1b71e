package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// A Reader reads itself from a JSON value that is not null.
type Reader interface{ ReadJSON(v Value) error }

// Decode reads a JSON object into a struct, by the names of its json tags. Names that the struct lacks are
// ignored, and so are members that are null: fields keep what they have. A value of the wrong type is a
// *FieldError. json.RawMessage and Value alias data.
//
// Fields may be strings, numbers, booleans, structs, slices, maps with strings as keys, pointers to these
// (nil where the member is not there), json.RawMessage, Value, and what implements Reader.
func Decode(data []byte, into any) error {
	v, err := Parse(data)
	if err != nil {
		return err
	}
	return v.Into(into)
}

// Into is Decode of a value; into is a pointer.
func (v Value) Into(into any) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		panic("wire: not a pointer")
	}
	return decode(v, target.Elem())
}

var rawType = reflect.TypeFor[json.RawMessage]()

func decode(v Value, target reflect.Value) error {
	if target.CanAddr() {
		switch p := target.Addr().Interface().(type) {
		case Reader:
			return p.ReadJSON(v)
		case *Value:
			*p = v
			return nil
		}
	}
	if target.Type() == rawType {
		target.SetBytes(v.raw)
		return nil
	}
	switch target.Kind() {
	case reflect.Pointer:
		return decodePointer(v, target)
	case reflect.Struct:
		return decodeStruct(v, target)
	case reflect.Slice:
		return decodeSlice(v, target)
	case reflect.Map:
		return decodeMap(v, target)
	}
	return decodeScalar(v, target)
}

func decodePointer(v Value, target reflect.Value) error {
	if v.Kind() == Null {
		return nil
	}
	p := reflect.New(target.Type().Elem())
	err := decode(v, p.Elem())
	if err == nil {
		target.Set(p)
	}
	return err
}

func decodeSlice(v Value, target reflect.Value) error {
	out := reflect.MakeSlice(target.Type(), 0, 0)
	element := reflect.New(target.Type().Elem()).Elem()
	err := v.Each(func(_ int, e Value) error {
		element.SetZero()
		if err := decode(e, element); err != nil {
			return err
		}
		out = reflect.Append(out, element)
		return nil
	})
	target.Set(out)
	return err
}

func decodeMap(v Value, target reflect.Value) error {
	out := reflect.MakeMap(target.Type())
	err := v.Fields(func(key string, e Value) error {
		element := reflect.New(target.Type().Elem()).Elem()
		if err := decode(e, element); err != nil {
			return err
		}
		out.SetMapIndex(reflect.ValueOf(key).Convert(target.Type().Key()), element)
		return nil
	})
	target.Set(out)
	return err
}

func decodeStruct(v Value, target reflect.Value) error {
	names := fieldsOf(target.Type())
	return v.Fields(func(key string, e Value) error {
		index, ok := names[key]
		if !ok || e.Kind() == Null {
			return nil
		}
		return decode(e, target.FieldByIndex(index))
	})
}

func decodeScalar(v Value, target reflect.Value) error {
	switch target.Kind() {
	case reflect.String:
		s, err := v.Text()
		target.SetString(s)
		return err
	case reflect.Bool:
		if v.Kind() != Bool {
			return v.Expected("a boolean")
		}
		target.SetBool(v.raw[0] == 't')
		return nil
	case reflect.Float32, reflect.Float64:
		f, err := v.Float()
		if err == nil && target.OverflowFloat(f) {
			err = Errorf("", "is %.40s, which is out of range", v.raw)
		}
		target.SetFloat(f)
		return err
	case reflect.Int, reflect.Int32, reflect.Int64:
		n, err := v.Int()
		if err == nil && target.OverflowInt(n) {
			err = Errorf("", "is %.40s, which is out of range", v.raw)
		}
		target.SetInt(n)
		return err
	}
	panic(fmt.Sprintf("wire: a field of type %s", target.Type()))
}

// known are the fields of the structs that were decoded, by their names in JSON.
var known sync.Map // reflect.Type to map[string][]int

func fieldsOf(t reflect.Type) map[string][]int {
	if names, ok := known.Load(t); ok {
		return names.(map[string][]int)
	}
	names := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" && f.IsExported() {
			names[name] = f.Index
		}
	}
	known.Store(t, names)
	return names
}
