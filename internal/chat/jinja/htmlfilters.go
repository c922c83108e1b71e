package jinja

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Filters that chat templates hardly ever use.

// stripTags takes HTML tags away and joins white space.
func stripTags(c *call) (Value, error) {
	s, err := c.inputText()
	if err != nil {
		return nil, err
	}
	for {
		start := strings.Index(s, "<!--")
		if start < 0 {
			break
		}
		end := strings.Index(s[start:], "-->")
		if end < 0 {
			break
		}
		s = s[:start] + s[start+end+3:]
		if err := c.r.charge(len(s)); err != nil {
			return nil, err
		}
	}
	var b strings.Builder
	for s != "" {
		start := strings.IndexByte(s, '<')
		end := -1
		if start >= 0 {
			end = strings.IndexByte(s[start:], '>')
		}
		if end < 0 {
			break
		}
		b.WriteString(s[:start])
		s = s[start+end+1:]
	}
	b.WriteString(s)
	s = strings.Join(strings.FieldsFunc(b.String(), isSpace), " ")
	return unescapeHTML.Replace(s), nil
}

var unescapeHTML = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#39;", "'", "&#34;", `"`, "&quot;", `"`, "&amp;", "&")

// urlEncode writes a text for an address, or pairs for a query.
func urlEncode(c *call) (Value, error) {
	pairs := c.input
	if d, ok := c.input.(*Dict); ok {
		var err error
		if pairs, err = dictItems(c.r.newCall("items", d, nil, nil)); err != nil {
			return nil, err
		}
	}
	l, ok := pairs.(*List)
	if !ok {
		t, err := c.text()
		if err != nil {
			return nil, err
		}
		return c.value(t.each(func(s string) string { return quoteURL(s, "/") }))
	}
	var parts []string
	for _, pair := range l.Items {
		items, err := c.r.iterate(pair)
		if err != nil || len(items) != 2 {
			return nil, errorf("urlencode takes pairs")
		}
		var texts [2]string
		for i, item := range items {
			t, err := c.r.text(item)
			if err != nil {
				return nil, err
			}
			c.met = c.met || t.tainted()
			texts[i] = strings.ReplaceAll(quoteURL(t.s, ""), "%20", "+")
		}
		parts = append(parts, texts[0]+"="+texts[1])
	}
	s := strings.Join(parts, "&")
	return s, c.r.charge(2 * len(s))
}

// quoteURL is Python's urllib.parse.quote.
func quoteURL(s, safe string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_.-~"+safe, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + strings.ToUpper(hex(rune(c), 2)))
		}
	}
	return b.String()
}

func xmlAttributes(c *call) (Value, error) {
	d, ok := c.input.(*Dict)
	if !ok {
		return nil, wrongOperand("xmlattr", c.input)
	}
	var w textWriter
	for i := range d.keys {
		key, v := d.at(i)
		if v == nil || isUndefined(v) {
			continue
		}
		name, err := c.r.text(key)
		if err != nil {
			return nil, err
		}
		if strings.ContainsAny(name.s, " \t\n\r\f/>=") {
			return nil, errorf("%q is no name of an attribute", name.s)
		}
		value, err := c.r.text(v)
		if err != nil {
			return nil, err
		}
		if w.b.Len() > 0 || c.flag(0, "autospace", true) {
			w.add(Text{s: " "})
		}
		w.add(name.each(escapeHTML))
		w.add(Text{s: `="`})
		if !value.safe {
			value = value.each(escapeHTML)
		}
		w.add(value)
		w.add(Text{s: `"`})
	}
	return c.value(w.text())
}

func fileSize(c *call) (Value, error) {
	v, err := floatFilter(c.r.newCall(c.name, c.raw, []Value{nil}, nil))
	bytes, ok := v.(float64)
	if err != nil || !ok {
		return nil, wrongOperand("filesizeformat", c.raw)
	}
	base, units := 1000.0, []string{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"}
	if c.flag(0, "binary", false) {
		base, units = 1024, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}
	}
	switch {
	case bytes == 1:
		return "1 Byte", nil
	case bytes < base:
		return fmt.Sprintf("%d Bytes", int64(bytes)), nil
	}
	unit := base
	for i, name := range units {
		if unit *= base; bytes < unit || i == len(units)-1 {
			return fmt.Sprintf("%.1f %s", base*bytes/unit, name), nil
		}
	}
	return nil, errorf("filesizeformat takes a number")
}

// prettyPrint is repr with keys in order, for values that fit into a line; Python breaks longer ones.
func prettyPrint(c *call) (Value, error) {
	v, err := ordered(c.r, c.raw, 0)
	if err != nil {
		return nil, err
	}
	t, err := c.r.repr(v)
	if err == nil && utf8.RuneCountInString(t.s) > 80 {
		return nil, errorf("pprint writes values of up to 80 characters; tojson(indent=2) writes longer ones")
	}
	if err != nil {
		return nil, err
	}
	return c.value(t)
}

// ordered is a copy with the keys of dictionaries in order.
func ordered(r *run, v Value, depth int) (Value, error) {
	if depth > maxDepth {
		return nil, errorf("a value is nested more than %d levels deep", maxDepth)
	}
	if err := r.step(); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case *List:
		out := *v
		out.Items = slices.Clone(v.Items)
		for i, item := range out.Items {
			var err error
			if out.Items[i], err = ordered(r, item, depth+1); err != nil {
				return nil, err
			}
		}
		return &out, nil
	case *Dict:
		keys, err := r.sorted(v.keys, func(key Value) (Value, error) { return key, nil }, false)
		if err != nil {
			return nil, err
		}
		out := NewDict()
		for _, key := range keys {
			value, _ := v.Get(key)
			if value, err = ordered(r, value, depth+1); err != nil {
				return nil, err
			}
			if err := out.Set(key, value); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// wordWrap breaks lines at white space and hyphens.
func wordWrap(c *call) (Value, error) {
	t, err := c.stringInput()
	if err != nil {
		return nil, err
	}
	width, err := c.int(0, "width", 79)
	if err != nil || width < 1 || width > math.MaxInt32 {
		return nil, errorf("wordwrap takes a width above 0")
	}
	end, err := c.str(2, "wrapstring", "\n")
	if err != nil {
		return nil, err
	}
	if err := c.r.charge((len(end) + 32) * len(t.s)); err != nil {
		return nil, err
	}
	w := wrapper{width: int(width), long: c.flag(1, "break_long_words", true), hyphens: c.flag(3, "break_on_hyphens", true)}
	var all []string
	for _, p := range lines(t.s, false) {
		all = append(all, strings.Join(w.wrap(t.s[p.Start:p.End]), end))
	}
	return c.value(t.with(strings.Join(all, end)))
}

// wrapper is Python's textwrap, as Jinja2 calls it.
type wrapper struct {
	width         int
	long, hyphens bool
}

func (w wrapper) wrap(line string) []string {
	var out []string
	chunks := w.chunks(line)
	for len(chunks) > 0 {
		if strings.TrimFunc(chunks[0], isSpace) == "" && len(out) > 0 {
			chunks = chunks[1:]
			continue
		}
		var b strings.Builder
		n, broken := 0, false // at a long word, even if nothing of it had room: then Python keeps the space before it
		for len(chunks) > 0 && n+runesUpTo(chunks[0], w.width) <= w.width {
			n += runesUpTo(chunks[0], w.width)
			b.WriteString(chunks[0])
			chunks = chunks[1:]
		}
		if len(chunks) > 0 && runesUpTo(chunks[0], w.width) > w.width {
			at := byteOf(chunks[0], int64(w.width-n))
			broken = w.long
			switch {
			case w.long && at > 0:
				b.WriteString(chunks[0][:at])
				chunks[0] = chunks[0][at:]
			case n == 0:
				b.WriteString(chunks[0])
				chunks = chunks[1:]
			}
		}
		s := b.String()
		if !broken {
			s = strings.TrimRightFunc(s, isSpace)
		}
		if s != "" || len(out) == 0 {
			out = append(out, s)
		}
	}
	return out
}

// runesUpTo counts the characters of a text, but no further than one more than most: a long word is cut often.
func runesUpTo(s string, most int) int {
	n := 0
	for range s {
		if n++; n > most {
			break
		}
	}
	return n
}

// word returns the length of the word that a line begins with, or of its part up to a hyphen.
func (w wrapper) word(line string) int {
	for i, r := range line {
		switch {
		case isSpace(r):
			return i
		case w.hyphens && r == '-' && i > 0:
			if next, _ := utf8.DecodeRuneInString(line[i+1:]); i+1 < len(line) && !isSpace(next) {
				return i + 1
			}
		}
	}
	return len(line)
}

// chunks are words, white space, and the parts of words up to a hyphen.
func (w wrapper) chunks(line string) []string {
	var out []string
	for line != "" {
		n := strings.IndexFunc(line, func(r rune) bool { return !isSpace(r) })
		if n == 0 {
			n = w.word(line)
		}
		if n < 0 {
			n = len(line)
		}
		out = append(out, line[:n])
		line = line[n:]
	}
	return out
}
