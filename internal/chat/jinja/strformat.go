package jinja

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// formatFilter is the filter format: "…" % values.
func formatFilter(c *call) (Value, error) {
	t, err := c.text()
	if err != nil {
		return nil, err
	}
	c.exact = true
	if len(c.args) > 0 && c.kwargs.Len() > 0 {
		return nil, errorf("format takes values by place or by name, not both")
	}
	if c.kwargs.Len() > 0 {
		return c.r.percent(t, c.kwargs)
	}
	return c.r.percent(t, &List{Items: c.args, Tuple: true})
}

func formatMethod(c *call) (Value, error) { return c.format(c.kwargs) }

func formatMap(c *call) (Value, error) {
	d, ok := c.arg(0, "mapping", nil).(*Dict)
	if !ok {
		return nil, errorf("format_map takes a dictionary")
	}
	c.args = nil
	return c.format(d)
}

// format is str.format with the values of the call and names from a dictionary.
func (c *call) format(names *Dict) (Value, error) {
	t := c.in()
	f := &formatting{c: c, names: names}
	if err := f.run(t, 0); err != nil {
		return nil, err
	}
	out := f.w.text()
	out.safe = t.safe
	return c.value(out)
}

type formatting struct {
	c     *call
	names *Dict
	auto  int // values taken by {}
	w     textWriter
}

func (f *formatting) run(t Text, depth int) error {
	if depth > 2 {
		return errorf("format: fields nest too deeply")
	}
	s := t.s
	for at := 0; at < len(s); {
		n := strings.IndexAny(s[at:], "{}")
		if n < 0 {
			n = len(s) - at
		}
		f.w.add(t.cut(at, at+n))
		if at += n; at == len(s) {
			return nil
		}
		if at+1 < len(s) && s[at+1] == s[at] {
			f.w.add(t.cut(at, at+1))
			at += 2
			continue
		}
		if s[at] == '}' {
			return errorf("format: a } has no {")
		}
		end := fieldEnd(s[at:])
		if end < 0 {
			return errorf("format: a { has no }")
		}
		out, err := f.field(t.cut(at+1, at+end), depth)
		if err != nil {
			return err
		}
		if err := f.c.r.charge(out.cost()); err != nil {
			return err
		}
		f.w.add(out)
		at += end + 1
	}
	return nil
}

// fieldEnd is where the } is that ends a field.
func fieldEnd(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// field is what stands between { and }: the value's name, a conversion and how it is written.
func (f *formatting) field(t Text, depth int) (Text, error) {
	name, rest := t.s, Text{}
	if at := strings.IndexByte(name, ':'); at >= 0 {
		name, rest = name[:at], t.cut(at+1, len(t.s))
	}
	name, conversion, _ := strings.Cut(name, "!")
	v, err := f.lookup(name)
	if err != nil {
		return Text{}, err
	}
	if strings.Contains(rest.s, "{") {
		inner := &formatting{c: f.c, names: f.names, auto: f.auto}
		if err := inner.run(rest, depth+1); err != nil {
			return Text{}, err
		}
		f.auto, rest = inner.auto, inner.w.text()
	}
	switch conversion {
	case "":
	case "s", "r", "a":
		text, err := f.c.r.text(v)
		if conversion != "s" {
			text, err = f.c.r.repr(v)
		}
		if err != nil {
			return Text{}, err
		}
		v = text.value()
	default:
		return Text{}, errorf("format: there is no conversion %q", conversion)
	}
	return f.c.r.formatted(v, rest.s)
}

// lookup follows "name.attribute[key]" from a value of the call.
func (f *formatting) lookup(path string) (Value, error) {
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	v, err := f.first(path[:end])
	for rest := path[end:]; err == nil && rest != ""; {
		key := ""
		switch {
		case rest[0] == '.':
			if end = strings.IndexAny(rest[1:], ".["); end < 0 {
				end = len(rest) - 1
			}
			key, rest = rest[1:1+end], rest[1+end:]
			if v, err = f.c.r.attr(v, key); isUndefined(v) {
				err = errorf("format: there is no attribute %q", key)
			}
		default:
			if end = strings.IndexByte(rest, ']'); end < 0 {
				return nil, errorf("format: a [ has no ]")
			}
			key, rest = rest[1:end], rest[end+1:]
			var k Value = key
			if i, wrong := strconv.ParseInt(key, 10, 64); wrong == nil {
				k = i
			}
			if v, err = f.c.r.item(v, k); isUndefined(v) {
				err = errorf("format: there is no key %q", key)
			}
		}
	}
	return v, err
}

func (f *formatting) first(name string) (Value, error) {
	if name == "" {
		name = strconv.Itoa(f.auto)
		f.auto++
	}
	if i, err := strconv.Atoi(name); err == nil {
		if i < 0 || i >= len(f.c.args) {
			return nil, errorf("format has no value %d", i)
		}
		return f.c.args[i], nil
	}
	if f.names != nil {
		if v, ok := f.names.Get(name); ok {
			return v, nil
		}
	}
	return nil, errorf("format has no value %q", name)
}

// formatted is Python's format(value, spec).
func (r *run) formatted(v Value, text string) (Text, error) {
	if text == "" {
		return r.text(v)
	}
	f, err := parseSpec(text)
	if err != nil {
		return Text{}, err
	}
	i, x, isInt, ok := number(v)
	switch t, isText := textOf(v); {
	case isText && (f.verb == 0 || f.verb == 's') && f.align != '=':
		f.byDefault('<')
		return pad(f, clip(t, f.precision)), nil
	case !ok || isText:
	case isInt && strings.IndexByte("\x00dxXobn", f.verb) >= 0 && f.precision < 0:
		f.byDefault('>')
		return f.integer(i), nil
	case isInt && f.verb == 'c':
		f.byDefault('<')
		return pad(f, Text{s: string(rune(i))}), nil
	case strings.IndexByte("fFeEgG%", f.verb) >= 0:
		f.byDefault('>')
		return f.float(x), nil
	case !isInt && f.verb == 0:
		f.byDefault('>')
		if f.precision >= 0 {
			f.verb = 'g'
			return f.float(x), nil
		}
		digits := strings.TrimPrefix(floatText(x), "-")
		return f.signed(x < 0, "", digits), nil
	}
	return Text{}, errorf("the format %q does not go with a %s", text, typeName(v))
}

// byDefault sets the side on which a value stands where the format does not say.
func (f *spec) byDefault(align byte) {
	if f.align == 0 {
		f.align = align
	}
}

// parseSpec reads [[fill]align][sign][#][0][width][,][.precision][type].
func parseSpec(s string) (spec, error) {
	whole, f := s, spec{fill: ' ', precision: -1}
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case len(s) > n && strings.IndexByte("<>=^", s[n]) >= 0:
		f.fill, f.align, s = r, s[n], s[n+1:]
	case strings.IndexByte("<>=^", s[0]) >= 0:
		f.align, s = s[0], s[1:]
	}
	take := func(set string) byte {
		if s == "" || strings.IndexByte(set, s[0]) < 0 {
			return 0
		}
		c := s[0]
		s = s[1:]
		return c
	}
	if f.sign = take("+- "); f.sign == '-' {
		f.sign = 0
	}
	f.alternate = take("#") != 0
	if take("0") != 0 && f.align == 0 {
		f.fill, f.align = '0', '='
	}
	number := func() (n int) {
		for c := take("0123456789"); c != 0; c = take("0123456789") {
			n = min(n*10+int(c-'0'), maxWidth+1)
		}
		return n
	}
	f.width = number()
	f.group = take(",_")
	if take(".") != 0 {
		f.precision = number()
	}
	f.verb = take("bcdeEfFgGnosxX%")
	if s != "" || f.width > maxWidth || f.precision > maxWidth {
		return f, errorf("the format %q cannot be read, or is wider than %d", whole, maxWidth)
	}
	return f, nil
}
