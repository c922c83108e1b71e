package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// jsonWriter writes JSON as Python's json.dumps does.
type jsonWriter struct {
	r          *run
	b          strings.Builder
	item, key  string // separators
	indent     string
	multiline  bool
	ascii      bool // escape what is not ASCII
	sortKeys   bool
	lastCharge int
}

// toJSON is the filter tojson of transformers: keys in order, nothing escaped that need not be.
func toJSON(c *call) (Value, error) {
	w := &jsonWriter{r: c.r, item: ", ", key: ": ", ascii: c.flag(0, "ensure_ascii", false), sortKeys: c.flag(3, "sort_keys", false)}
	switch indent := c.arg(1, "indent", nil).(type) {
	case nil, Undefined:
	case string:
		if len(indent) > maxWidth {
			return nil, errorf("tojson takes up to %d spaces as %q", maxWidth, "indent")
		}
		w.multiline, w.indent = true, indent
	default:
		n, _, isInt, ok := number(indent)
		if !ok || !isInt || n > maxDepth {
			return nil, errorf("tojson takes an int up to %d as %q", maxDepth, "indent")
		}
		w.multiline, w.indent = true, strings.Repeat(" ", int(max(n, 0)))
	}
	if w.multiline {
		w.item = ","
	}
	if separators, ok := c.arg(2, "separators", nil).(*List); ok {
		if len(separators.Items) != 2 {
			return nil, errorf("tojson takes two separators")
		}
		item, ok1 := String(separators.Items[0])
		key, ok2 := String(separators.Items[1])
		if !ok1 || !ok2 {
			return nil, errorf("tojson takes strs as separators")
		}
		w.item, w.key = item, key
	}
	outer := c.r.met
	c.r.met = false
	err := w.value(c.raw, 0)
	c.met, c.r.met = c.met || c.r.met, outer
	return w.b.String(), err
}

func (w *jsonWriter) value(v Value, depth int) error {
	if depth > maxDepth {
		return errorf("tojson: a value is nested more than %d levels deep", maxDepth)
	}
	w.r.met = w.r.met || isUser(v)
	switch v := plain(v).(type) {
	case nil:
		w.b.WriteString("null")
	case bool:
		w.b.WriteString(strconv.FormatBool(v))
	case int64:
		w.b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		w.float(v)
	case string:
		w.text(v)
	case *List:
		if !v.isSequence() {
			return errorf("tojson cannot write a %s; list makes a list of it", typeName(v))
		}
		return w.list(v, depth)
	case *Dict:
		return w.dict(v, depth)
	case Undefined:
		return errorf("tojson: %s is undefined", v.Name)
	default:
		return errorf("tojson cannot write a %s", typeName(v))
	}
	return w.charge()
}

func (w *jsonWriter) charge() error {
	n := w.b.Len() - w.lastCharge
	w.lastCharge = w.b.Len()
	if err := w.r.step(); err != nil {
		return err
	}
	return w.r.charge(n)
}

func (w *jsonWriter) float(f float64) {
	switch {
	case math.IsNaN(f):
		w.b.WriteString("NaN")
	case math.IsInf(f, 1):
		w.b.WriteString("Infinity")
	case math.IsInf(f, -1):
		w.b.WriteString("-Infinity")
	default:
		w.b.WriteString(floatText(f))
	}
}

// line begins a new line where there is an indent.
func (w *jsonWriter) line(depth int) {
	if w.multiline {
		w.b.WriteByte('\n')
		w.b.WriteString(strings.Repeat(w.indent, depth))
	}
}

func (w *jsonWriter) list(l *List, depth int) error {
	if len(l.Items) == 0 {
		w.b.WriteString("[]")
		return w.charge()
	}
	w.b.WriteByte('[')
	for i, item := range l.Items {
		if i > 0 {
			w.b.WriteString(w.item)
		}
		w.line(depth + 1)
		if err := w.value(item, depth+1); err != nil {
			return err
		}
	}
	w.line(depth)
	w.b.WriteByte(']')
	return w.charge()
}

func (w *jsonWriter) dict(d *Dict, depth int) error {
	if d.Len() == 0 {
		w.b.WriteString("{}")
		return w.charge()
	}
	keys := d.keys
	if w.sortKeys {
		var err error
		if keys, err = w.r.sorted(keys, func(v Value) (Value, error) { return v, nil }, false); err != nil {
			return err
		}
	}
	w.b.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			w.b.WriteString(w.item)
		}
		w.line(depth + 1)
		if err := w.jsonKey(key); err != nil {
			return err
		}
		w.b.WriteString(w.key)
		v, _ := d.Get(key)
		if err := w.value(v, depth+1); err != nil {
			return err
		}
	}
	w.line(depth)
	w.b.WriteByte('}')
	return w.charge()
}

// jsonKey writes a key, which JSON wants as a string.
func (w *jsonWriter) jsonKey(key Value) error {
	w.r.met = w.r.met || isUser(key)
	if s, ok := plain(key).(string); ok {
		w.text(s)
		return nil
	}
	inner := &jsonWriter{r: w.r}
	if err := inner.value(key, 0); err != nil {
		return err
	}
	w.text(inner.b.String())
	return nil
}

func (w *jsonWriter) text(s string) {
	w.b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			w.b.WriteByte('\\')
			w.b.WriteRune(c)
		case c == '\n':
			w.b.WriteString(`\n`)
		case c == '\r':
			w.b.WriteString(`\r`)
		case c == '\t':
			w.b.WriteString(`\t`)
		case c == '\b':
			w.b.WriteString(`\b`)
		case c == '\f':
			w.b.WriteString(`\f`)
		case c < ' ' || w.ascii && c >= 0x7f && c < 0x10000:
			w.b.WriteString(`\u` + hex(c, 4))
		case w.ascii && c >= utf8.RuneSelf:
			c -= 0x10000
			w.b.WriteString(`\u` + hex(0xd800+c>>10, 4) + `\u` + hex(0xdc00+c&0x3ff, 4))
		default:
			w.b.WriteRune(c)
		}
	}
	w.b.WriteByte('"')
}
