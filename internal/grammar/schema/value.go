package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind is the kind of a JSON value.
type Kind uint8

// The kinds of JSON values.
const (
	Null Kind = iota
	Boolean
	Number
	String
	Array
	Object
)

// Member is one member of a JSON object.
type Member struct {
	Name  string
	Value *Value
}

// Value is a JSON value whose object members keep their order. A name that occurs twice has its
// last value, at its first place.
type Value struct {
	Kind    Kind
	Bool    bool
	Text    string   // a number as it is spelled, or the content of a string
	Number  *big.Rat // the exact value of a number
	Items   []*Value
	Members []Member
	index   map[string]int // of Members, where they are many
}

// Limits of the JSON text of a schema.
const (
	maxText     = 4 << 20
	maxDepth    = 256
	maxNodes    = 400_000
	maxExponent = 1100 // holds every float64
	maxDigits   = 1200
	indexFrom   = 8
)

// Get is the member of an object, nil if there is none.
func (v *Value) Get(name string) *Value {
	if v.index != nil {
		if i, ok := v.index[name]; ok {
			return v.Members[i].Value
		}
		return nil
	}
	for i := range v.Members {
		if v.Members[i].Name == name {
			return v.Members[i].Value
		}
	}
	return nil
}

func (v *Value) set(name string, member *Value) {
	if v.index == nil && len(v.Members) >= indexFrom {
		v.index = make(map[string]int, 2*indexFrom)
		for i := range v.Members {
			v.index[v.Members[i].Name] = i
		}
	}
	if v.index != nil {
		if i, ok := v.index[name]; ok {
			v.Members[i].Value = member
			return
		}
		v.index[name] = len(v.Members)
	} else {
		for i := range v.Members {
			if v.Members[i].Name == name {
				v.Members[i].Value = member
				return
			}
		}
	}
	v.Members = append(v.Members, Member{name, member})
}

// ParseValue reads one JSON text. Its size, depth, number of values and the size of its numbers are bounded.
func ParseValue(text []byte) (*Value, error) {
	if len(text) > maxText {
		return nil, limitError("the JSON text has %d bytes; at most %d are read", len(text), maxText)
	}
	if !utf8.Valid(text) {
		return nil, errors.New("the JSON text is not UTF-8")
	}
	r := reader{dec: json.NewDecoder(strings.NewReader(string(text)))}
	r.dec.UseNumber()
	tok, err := r.token()
	if err != nil {
		return nil, err
	}
	v, err := r.value(tok, 0)
	if err != nil {
		return nil, err
	}
	if _, err := r.dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("there is more after the JSON value, at byte %d", r.dec.InputOffset())
	}
	return v, nil
}

type reader struct {
	dec   *json.Decoder
	nodes int
}

func (r *reader) token() (json.Token, error) {
	tok, err := r.dec.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("not JSON at byte %d: %w", r.dec.InputOffset(), err)
	}
	return tok, nil
}

func (r *reader) value(tok json.Token, depth int) (*Value, error) {
	if depth > maxDepth {
		return nil, limitError("the JSON text is nested deeper than %d", maxDepth)
	}
	if r.nodes++; r.nodes > maxNodes {
		return nil, limitError("the JSON text has more than %d values", maxNodes)
	}
	switch t := tok.(type) {
	case nil:
		return &Value{Kind: Null}, nil
	case bool:
		return &Value{Kind: Boolean, Bool: t}, nil
	case string:
		return &Value{Kind: String, Text: t}, nil
	case json.Number:
		return newNumber(string(t))
	case json.Delim:
		if t == '[' {
			return r.array(depth)
		}
		return r.object(depth)
	}
	return nil, fmt.Errorf("not JSON at byte %d", r.dec.InputOffset())
}

func (r *reader) array(depth int) (*Value, error) {
	out := &Value{Kind: Array}
	for {
		tok, err := r.token()
		if err != nil {
			return nil, err
		}
		if tok == json.Delim(']') {
			return out, nil
		}
		item, err := r.value(tok, depth+1)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, item)
	}
}

func (r *reader) object(depth int) (*Value, error) {
	out := &Value{Kind: Object}
	for {
		tok, err := r.token()
		if err != nil {
			return nil, err
		}
		if tok == json.Delim('}') {
			return out, nil
		}
		name, _ := tok.(string)
		if tok, err = r.token(); err != nil {
			return nil, err
		}
		member, err := r.value(tok, depth+1)
		if err != nil {
			return nil, err
		}
		out.set(name, member)
	}
}

// newNumber bounds digits and exponent before anything is computed from them.
func newNumber(text string) (*Value, error) {
	if len(text) > maxDigits {
		return nil, limitError("a number has %d characters; at most %d are read", len(text), maxDigits)
	}
	mantissa, exponent, _ := strings.Cut(strings.ReplaceAll(text, "E", "e"), "e")
	if e := strings.TrimLeft(strings.TrimLeft(exponent, "+-"), "0"); len(e) > 4 || len(e) == 4 && e > fmt.Sprint(maxExponent) {
		if strings.Trim(mantissa, "-0.") != "" {
			return nil, limitError("the exponent of the number %.40s is beyond %d", text, maxExponent)
		}
		text = "0"
	}
	rat, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, fmt.Errorf("%.40q is not a number", text)
	}
	return &Value{Kind: Number, Text: text, Number: rat}, nil
}

// Equal is JSON Schema's equality: numbers by value, objects without order.
func (v *Value) Equal(w *Value) bool {
	if v.Kind != w.Kind || len(v.Items) != len(w.Items) || len(v.Members) != len(w.Members) {
		return false
	}
	switch v.Kind {
	case Boolean:
		return v.Bool == w.Bool
	case Number:
		return v.Number.Cmp(w.Number) == 0
	case String:
		return v.Text == w.Text
	case Array:
		for i := range v.Items {
			if !v.Items[i].Equal(w.Items[i]) {
				return false
			}
		}
	case Object:
		for i := range v.Members {
			other := w.Get(v.Members[i].Name)
			if other == nil || !v.Members[i].Value.Equal(other) {
				return false
			}
		}
	}
	return true
}

// key is the same text for equal values, and for them alone.
func (v *Value) key() string {
	switch v.Kind {
	case Number:
		return v.Number.RatString()
	case String:
		return Quote(v.Text)
	case Array:
		parts := make([]string, len(v.Items))
		for i, item := range v.Items {
			parts[i] = item.key()
		}
		return "[" + strings.Join(parts, ",") + "]"
	case Object:
		parts := make([]string, len(v.Members))
		for i, m := range v.Members {
			parts[i] = Quote(m.Name) + ":" + m.Value.key()
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}"
	}
	return v.String()
}

// Quote is a string as JSON spells it, with no escape that is not needed.
func Quote(s string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\b':
			b.WriteString(`\b`)
		case c == '\f':
			b.WriteString(`\f`)
		case c < 0x20:
			b.WriteString(`\u00`)
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// String is the compact JSON text.
func (v *Value) String() string {
	var b strings.Builder
	v.write(&b)
	return b.String()
}

func (v *Value) write(b *strings.Builder) {
	switch v.Kind {
	case Null:
		b.WriteString("null")
	case Boolean:
		fmt.Fprint(b, v.Bool)
	case Number:
		b.WriteString(v.Text)
	case String:
		b.WriteString(Quote(v.Text))
	case Array:
		b.WriteByte('[')
		for i, item := range v.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.write(b)
		}
		b.WriteByte(']')
	case Object:
		b.WriteByte('{')
		for i, m := range v.Members {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(Quote(m.Name))
			b.WriteByte(':')
			m.Value.write(b)
		}
		b.WriteByte('}')
	}
}
