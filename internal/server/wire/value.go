package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// A FieldError says which part of a request is wrong, and how.
type FieldError struct {
	Path string // such as messages[0].content; empty: the whole request
	What string // such as "is a number, not a string"
}

func (e *FieldError) Error() string {
	if e.Path == "" {
		return "the request " + e.What
	}
	return e.Path + " " + e.What
}

// Errorf is a FieldError about the field at path.
func Errorf(path, format string, args ...any) *FieldError {
	return &FieldError{path, fmt.Sprintf(format, args...)}
}

// Within puts the path of an error in a part of something below the path of the whole.
func Within(path string, err error) error {
	var e *FieldError
	if err == nil || !errors.As(err, &e) {
		return err
	}
	switch {
	case e.Path == "" || e.Path[0] == '[':
		path += e.Path
	default:
		path += "." + e.Path
	}
	return &FieldError{path, e.What}
}

// Kind is what a JSON value is.
type Kind uint8

// Kinds of JSON values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "an object"}[k]
}

// A Value is a JSON value within a valid text; it aliases the text.
type Value struct{ raw []byte }

// Parse checks that data is one JSON value.
func Parse(data []byte) (Value, error) {
	var syntax *json.SyntaxError
	if len(bytes.TrimSpace(data)) == 0 {
		return Value{}, &FieldError{What: "is empty; a JSON object is expected"}
	}
	if err := json.Unmarshal(data, &struct{}{}); errors.As(err, &syntax) {
		return Value{}, Errorf("", "is no valid JSON: %s (at byte %d)", syntax, syntax.Offset)
	}
	return Value{bytes.TrimSpace(data)}, nil
}

// Raw is the value's text.
func (v Value) Raw() json.RawMessage { return v.raw }

// Kind is what the value is.
func (v Value) Kind() Kind {
	if len(v.raw) == 0 {
		return Null
	}
	switch v.raw[0] {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	}
	return Number
}

// Expected is the error that the value is not what it should be, such as "a string or a list".
func (v Value) Expected(what string) error { return Errorf("", "is %s, not %s", v.Kind(), what) }

// Text is the text of a string.
func (v Value) Text() (string, error) {
	if v.Kind() != String {
		return "", v.Expected("a string")
	}
	inner := v.raw[1 : len(v.raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner), nil
	}
	var s string
	err := json.Unmarshal(v.raw, &s)
	return s, err
}

// Float is the value of a number.
func (v Value) Float() (float64, error) {
	if v.Kind() != Number {
		return 0, v.Expected("a number")
	}
	f, err := strconv.ParseFloat(string(v.raw), 64)
	if err != nil {
		return 0, Errorf("", "is %.40s, which is too large", v.raw)
	}
	return f, nil
}

// Int is the value of a whole number; 3.0 is one.
func (v Value) Int() (int64, error) {
	f, err := v.Float()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(v.raw), 10, 64)
	const exact = 1 << 53
	switch {
	case err == nil:
		return n, nil
	case f == float64(int64(f)) && f >= -exact && f <= exact:
		return int64(f), nil
	case errors.Is(err, strconv.ErrRange):
		return 0, Errorf("", "is %.40s, which is out of range", v.raw)
	}
	return 0, Errorf("", "is %.40s, not a whole number", v.raw)
}

// Each calls f for the elements of a list, in order. Errors get their place.
func (v Value) Each(f func(i int, e Value) error) error {
	if v.Kind() != Array {
		return v.Expected("a list")
	}
	s := scanner{data: v.raw, at: 1}
	for i := 0; s.more(']'); i++ {
		if err := f(i, s.value()); err != nil {
			return Within(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}

// Fields calls f for the members of an object, in order. Errors get their place.
func (v Value) Fields(f func(key string, e Value) error) error {
	if v.Kind() != Object {
		return v.Expected("an object")
	}
	s := scanner{data: v.raw, at: 1}
	for s.more('}') {
		key, err := s.value().Text()
		if err != nil {
			return err
		}
		s.skip(':')
		if err := f(key, s.value()); err != nil {
			return Within(key, err)
		}
	}
	return nil
}

// Get is the member of an object; ok is false without one, and if v is no object.
func (v Value) Get(key string) (e Value, ok bool) {
	if v.Kind() != Object {
		return Value{}, false
	}
	_ = v.Fields(func(k string, m Value) error { // the last one of several counts
		if k == key {
			e, ok = m, true
		}
		return nil
	})
	return e, ok
}

// A scanner walks over JSON that is known to be valid.
type scanner struct {
	data []byte
	at   int
}

func (s *scanner) space() {
	for s.at < len(s.data) && (s.data[s.at] == ' ' || s.data[s.at] == '\t' || s.data[s.at] == '\n' || s.data[s.at] == '\r') {
		s.at++
	}
}

// skip passes one character, if it is there, and the blanks around it.
func (s *scanner) skip(c byte) {
	if s.space(); s.at < len(s.data) && s.data[s.at] == c {
		s.at++
	}
	s.space()
}

// more goes to the next element of a list or object; false at its end.
func (s *scanner) more(end byte) bool {
	s.skip(',')
	return s.at < len(s.data) && s.data[s.at] != end
}

// value passes a value.
func (s *scanner) value() Value {
	begin, depth := s.at, 0
	for s.at < len(s.data) {
		switch c := s.data[s.at]; c {
		case '"':
			s.text()
			if depth == 0 {
				return Value{s.data[begin:s.at]}
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return Value{s.data[begin:s.at]}
			}
			if depth--; depth == 0 {
				s.at++
				return Value{s.data[begin:s.at]}
			}
		case ',', ' ', '\t', '\n', '\r', ':':
			if depth == 0 {
				return Value{s.data[begin:s.at]}
			}
		}
		s.at++
	}
	return Value{s.data[begin:s.at]}
}

// text passes a string.
func (s *scanner) text() {
	for s.at++; s.at < len(s.data); s.at++ {
		switch s.data[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return
		}
	}
}
