package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spillway/spillway/internal/chat/jinja"
)

// Object is a JSON object that keeps the order of its keys: templates print what they are given.
type Object struct{ Fields []Field }

// Field is a member of an Object. The value is nil, bool, int64, float64, string, []any or *Object.
type Field struct {
	Key   string
	Value any
}

// Text is a message with plain text.
func Text(role, content string) *Object {
	return &Object{[]Field{{"role", role}, {"content", content}}}
}

// Get returns the value of a key, or nil.
func (o *Object) Get(key string) any {
	for _, f := range o.Fields {
		if f.Key == key {
			return f.Value
		}
	}
	return nil
}

// Set replaces the value of a key, or appends it.
func (o *Object) Set(key string, value any) {
	for i := range o.Fields {
		if o.Fields[i].Key == key {
			o.Fields[i].Value = value
			return
		}
	}
	o.Fields = append(o.Fields, Field{key, value})
}

// UnmarshalJSON reads an object with its keys in order; of a key that is given twice the last value
// counts, in the first one's place.
func (o *Object) UnmarshalJSON(b []byte) error {
	v, err := ParseJSON(b)
	if err != nil {
		return err
	}
	object, ok := v.(*Object)
	if !ok {
		return errors.New("a JSON object is missing")
	}
	*o = *object
	return nil
}

// maxNesting bounds how deep JSON may nest.
const maxNesting = 100

// ParseJSON reads JSON with the keys of objects in order.
func ParseJSON(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	v, err := parseValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON value")
	}
	return v, nil
}

func parseValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("the JSON is nested more than %d levels deep", maxNesting)
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Number:
		return number(t), nil
	case json.Delim:
		if t == '[' {
			return parseList(d, depth)
		}
		return parseObject(d, depth)
	}
	return token, nil
}

// number is an integer where the text is one that fits, as Python's json has it.
func number(n json.Number) any {
	if i, err := n.Int64(); err == nil && !strings.ContainsAny(string(n), ".eE") {
		return i
	}
	f, _ := n.Float64()
	return f
}

func parseList(d *json.Decoder, depth int) (any, error) {
	list := []any{}
	for d.More() {
		v, err := parseValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.Token()
	return list, err
}

func parseObject(d *json.Decoder, depth int) (any, error) {
	o := &Object{}
	index := map[string]int{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string)
		v, err := parseValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		if at, ok := index[key]; ok {
			o.Fields[at].Value = v
			continue
		}
		index[key] = len(o.Fields)
		o.Fields = append(o.Fields, Field{key, v})
	}
	_, err := d.Token()
	return o, err
}

// toJinja makes the engine's values of JSON values from a request. They are copies: a template may change
// them.
func toJinja(v any) (jinja.Value, error) {
	switch v := v.(type) {
	case nil, bool, int64, float64:
		return v, nil
	case string:
		return jinja.User(v), nil
	case int:
		return int64(v), nil
	case []any:
		return listToJinja(v)
	case *Object:
		if v == nil {
			return nil, nil
		}
		return objectToJinja(v)
	}
	return nil, fmt.Errorf("a template cannot be given a %T", v)
}

func listToJinja[T any](list []T) (jinja.Value, error) {
	out := jinja.NewList(make([]jinja.Value, len(list))...)
	for i, item := range list {
		var err error
		if out.Items[i], err = toJinja(item); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func objectToJinja(o *Object) (jinja.Value, error) {
	out := jinja.NewDict()
	for _, f := range o.Fields {
		v, err := toJinja(f.Value)
		if err != nil {
			return nil, err
		}
		if err := out.Set(jinja.User(f.Key), v); err != nil {
			return nil, err
		}
	}
	return out, nil
}
