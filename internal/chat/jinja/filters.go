package jinja

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// filterTable are the filters by name.
var filterTable map[string]func(*call) (Value, error)

func init() {
	filterTable = map[string]func(*call) (Value, error){
		"abs": abs, "attr": attrFilter, "batch": batch, "capitalize": textMethod(onText(capitalize)), "count": lengthFilter,
		"d": defaultFilter, "default": defaultFilter, "dictsort": dictSort, "e": safeFilter(escapeHTML), "escape": safeFilter(escapeHTML),
		"first": firstFilter, "float": floatFilter, "forceescape": safeFilter(escapeHTML), "format": formatFilter,
		"groupby": groupBy, "indent": indent, "int": intFilter, "items": itemsFilter, "join": joinFilter,
		"last": lastFilter, "length": lengthFilter, "list": listFilter, "lower": textMethod(perCharacter(toLower)), "map": mapFilter,
		"max": extreme(1), "min": extreme(-1), "reject": selectFilter(false, false), "rejectattr": selectFilter(false, true),
		"replace": replaceFilter, "reverse": reverseFilter, "round": round, "safe": safeFilter(func(s string) string { return s }),
		"select": selectFilter(true, false), "selectattr": selectFilter(true, true), "slice": sliceFilter, "sort": sortFilter,
		"string": textMethod(perCharacter(func(s string) string { return s })), "sum": sum, "title": textMethod(onText(titleWords)), "tojson": toJSON,
		"trim": trim, "truncate": truncate, "unique": unique, "upper": textMethod(perCharacter(toUpper)), "wordcount": wordCount,
		"striptags": stripTags, "urlencode": urlEncode, "xmlattr": xmlAttributes, "filesizeformat": fileSize, "wordwrap": wordWrap, "pprint": prettyPrint,
		"random": refused("it would give another text every time"), "urlize": refused("a prompt is no HTML"),
		"center": center,
	}
}

func (r *run) applyFilter(name string, v Value, args []Value, kwargs *Dict) (Value, error) {
	f := filterTable[name]
	if f == nil {
		return nil, errorf("No filter named '%s' found.", name) // Jinja2's words: people search for them
	}
	return r.newCall(name, v, args, kwargs).do(f)
}

// safeFilter makes a filter that gives a text that is safe for HTML.
func safeFilter(f func(string) string) func(*call) (Value, error) {
	return func(c *call) (Value, error) {
		t, err := c.text()
		if err != nil {
			return nil, err
		}
		t = t.each(f)
		t.safe = true
		return c.value(t)
	}
}

// textMethod makes a filter of a method of strings: it is called on the input's text.
func textMethod(f func(*call) (Value, error)) func(*call) (Value, error) {
	return func(c *call) (Value, error) {
		t, err := c.text()
		if err != nil {
			return nil, err
		}
		c.input, c.raw = t.s, t.value()
		return f(c)
	}
}

func center(c *call) (Value, error) {
	width := c.arg(0, "width", int64(80))
	return textMethod(justify(1))(&call{r: c.r, name: c.name, raw: c.raw, args: []Value{width}})
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

func escapeHTML(s string) string { return escaper.Replace(s) }

// titleWords begins each word with a capital; words end at white space, hyphens and opening brackets.
func titleWords(s string) string {
	between := func(r rune) bool { return isSpace(r) || strings.ContainsRune("-({[<", r) }
	var b strings.Builder
	for s != "" {
		n := strings.IndexFunc(s, between)
		if n < 0 {
			n = len(s)
		}
		_, first := utf8.DecodeRuneInString(s[:n])
		b.WriteString(toUpper(s[:first]) + toLower(s[first:n]))
		s = s[n:]
		if n = strings.IndexFunc(s, func(r rune) bool { return !between(r) }); n < 0 {
			n = len(s)
		}
		b.WriteString(s[:n])
		s = s[n:]
	}
	return b.String()
}

func attrFilter(c *call) (Value, error) {
	name, err := c.str(0, "name", "")
	if err != nil {
		return nil, err
	}
	switch c.input.(type) {
	case *Dict:
		if m := c.r.method(c.input, name); m != nil {
			return m, nil
		}
		return Undefined{name}, nil
	}
	return c.r.attr(c.raw, name)
}

func batch(c *call) (Value, error) {
	items, err := c.inputItems()
	if err != nil {
		return nil, err
	}
	n, err := c.int(0, "linecount", 0)
	if err != nil || n < 1 {
		return nil, errorf("batch takes an int above 0")
	}
	out := &List{}
	for part := range slices.Chunk(items, int(min(n, 1<<30))) {
		row := append([]Value{}, part...)
		if fill := c.rawArg(1, "fill_with", nil); fill != nil {
			if err := c.r.charge(int(min(16*n, math.MaxInt32))); err != nil {
				return nil, err
			}
			for int64(len(row)) < n {
				row = append(row, fill)
			}
		}
		out.Items = append(out.Items, &List{Items: row})
	}
	out.Lazy = true
	return out, c.r.charge(64 * len(out.Items))
}

func sliceFilter(c *call) (Value, error) {
	items, err := c.inputItems()
	if err != nil {
		return nil, err
	}
	n, err := c.int(0, "slices", 0)
	if err != nil || n < 1 || n > 1<<20 {
		return nil, errorf("slice takes an int above 0")
	}
	if err := c.r.charge(int(64 * n)); err != nil {
		return nil, err
	}
	out := &List{Lazy: true}
	per, more := len(items)/int(n), len(items)%int(n)
	for at, i := 0, 0; i < int(n); i++ {
		end := at + per
		if i < more {
			end++
		}
		row := &List{Items: items[at:end:end]}
		if fill := c.rawArg(1, "fill_with", nil); fill != nil && more > 0 && i >= more {
			row.Items = append(row.Items, fill)
		}
		out.Items = append(out.Items, row)
		at = end
	}
	return out, nil
}

func lengthFilter(c *call) (Value, error) {
	n, err := c.r.length(c.input)
	return int64(n), err
}

func defaultFilter(c *call) (Value, error) {
	_, missing := c.input.(Undefined)
	if missing || c.flag(1, "boolean", false) && !truth(c.input) {
		return c.rawArg(0, "default_value", ""), nil
	}
	c.exact = true
	return c.raw, nil
}

func dictSort(c *call) (Value, error) {
	d, ok := c.input.(*Dict)
	if !ok {
		return nil, wrongOperand("dictsort", c.input)
	}
	pairs, err := dictItems(c.r.newCall("items", d, nil, nil))
	if err != nil {
		return nil, err
	}
	by, err := c.str(1, "by", "key")
	if err != nil {
		return nil, err
	}
	at := 0
	if by == "value" {
		at = 1
	}
	fold := !c.flag(0, "case_sensitive", false)
	items, err := c.r.sorted(pairs.(*List).Items, func(v Value) (Value, error) {
		return folded(v.(*List).Items[at], fold), nil
	}, c.flag(2, "reverse", false))
	return &List{Items: items}, err
}

func folded(v Value, fold bool) Value {
	if s, ok := String(v); ok && fold {
		return toLower(s)
	}
	return v
}

func firstFilter(c *call) (Value, error) {
	if s, ok := c.input.(string); ok && s != "" {
		_, n := utf8.DecodeRuneInString(s)
		t, _ := textOf(c.raw)
		return c.value(t.cut(0, n))
	}
	items, err := c.r.iterate(c.raw)
	if err != nil || len(items) == 0 {
		return Undefined{"the first of nothing"}, err
	}
	return items[0], nil
}

func lastFilter(c *call) (Value, error) {
	items, err := c.r.iterate(c.raw)
	if err != nil || len(items) == 0 {
		return Undefined{"the last of nothing"}, err
	}
	return items[len(items)-1], nil
}

func itemsFilter(c *call) (Value, error) {
	switch d := c.input.(type) {
	case *Dict:
		v, err := dictItems(c.r.newCall("items", d, nil, nil))
		if err != nil {
			return nil, err
		}
		v.(*List).Lazy = true
		return v, nil
	case Undefined:
		return &List{Lazy: true}, nil
	}
	return nil, wrongOperand("items", c.input)
}

func joinFilter(c *call) (Value, error) {
	items, err := c.r.iterate(c.raw)
	if err != nil {
		return nil, err
	}
	if attribute := c.arg(1, "attribute", nil); attribute != nil {
		if items, err = c.mapItems(items, func(v Value) (Value, error) { return c.r.path(v, attribute) }); err != nil {
			return nil, err
		}
	}
	sep, err := c.r.text(c.rawArg(0, "d", ""))
	if err != nil {
		return nil, err
	}
	c.exact = true
	return c.r.joinItems(items, sep)
}

func listFilter(c *call) (Value, error) {
	items, err := c.inputItems()
	return &List{Items: items}, err
}

// path follows "a.b.0" from a value.
func (r *run) path(v, attribute Value) (Value, error) {
	name, ok := String(attribute)
	if !ok {
		return r.item(v, attribute)
	}
	for part := range strings.SplitSeq(name, ".") {
		var key Value = part
		if i, err := strconv.ParseInt(part, 10, 64); err == nil {
			key = i
		}
		var err error
		if v, err = r.item(v, key); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (c *call) mapItems(items []Value, f func(Value) (Value, error)) ([]Value, error) {
	if err := c.r.charge(16 * len(items)); err != nil {
		return nil, err
	}
	out := make([]Value, len(items))
	for i, item := range items {
		if err := c.r.step(); err != nil {
			return nil, err
		}
		var err error
		if out[i], err = f(item); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func mapFilter(c *call) (Value, error) {
	items, err := c.maybeItems()
	if err != nil {
		return nil, err
	}
	f := func(v Value) (Value, error) {
		name, err := c.str(0, "filter", "")
		if err != nil {
			return nil, err
		}
		return c.r.applyFilter(name, v, c.args[1:], c.kwargs)
	}
	if attribute, ok := c.kwargs.Get("attribute"); ok {
		f = func(v Value) (Value, error) {
			got, err := c.r.path(v, attribute)
			if _, missing := got.(Undefined); missing && err == nil {
				if other, ok := c.kwargs.Get("default"); ok {
					return other, nil
				}
			}
			return got, err
		}
	} else if len(c.args) == 0 {
		return nil, errorf("map takes the name of a filter, or an attribute")
	}
	out, err := c.mapItems(items, f)
	return &List{Items: out, Lazy: true}, err
}

func replaceFilter(c *call) (Value, error) {
	t, err := c.text()
	if err != nil {
		return nil, err
	}
	var parts [2]Text
	for i, name := range []string{"old", "new"} {
		v, err := c.need(i, name)
		if err != nil {
			return nil, err
		}
		if parts[i], err = c.r.text(v); err != nil {
			return nil, err
		}
	}
	n := int64(-1)
	if c.arg(2, "count", nil) != nil {
		if n, err = c.int(2, "count", -1); err != nil {
			return nil, err
		}
	}
	if t, err = c.r.replaceIn(t, parts[0], parts[1], n); err != nil {
		return nil, err
	}
	return c.value(t)
}

func reverseItems(c *call) ([]Value, error) {
	items, err := c.inputItems()
	slices.Reverse(items)
	return items, err
}

func reverseFilter(c *call) (Value, error) {
	items, err := reverseItems(c)
	if err != nil {
		return nil, err
	}
	if _, ok := c.input.(string); ok {
		c.exact = true
		return c.r.joinItems(items, Text{})
	}
	return &List{Items: items, Lazy: true}, nil
}

func trim(c *call) (Value, error) {
	t, err := c.text()
	if err != nil {
		return nil, err
	}
	if t, err = stripText(t, c.arg(0, "chars", nil), true, true); err != nil {
		return nil, err
	}
	return c.value(t)
}

func truncate(c *call) (Value, error) {
	n, err := c.int(0, "length", 255)
	if err != nil {
		return nil, err
	}
	end, err := c.str(2, "end", "...")
	if err != nil {
		return nil, err
	}
	leeway, err := c.int(3, "leeway", 5)
	if err != nil {
		return nil, err
	}
	if _, ok := c.input.(string); !ok {
		if have, err := c.r.length(c.raw); err != nil || int64(have) > n+leeway {
			return nil, wrongOperand("truncate", c.raw)
		}
		return c.raw, nil
	}
	t, err := c.text()
	if err != nil {
		return nil, err
	}
	s := t.s
	runes := []rune(s)
	if n < int64(utf8.RuneCountInString(end)) || leeway < 0 {
		return nil, errorf("truncate takes a length of at least that of its end, and no negative leeway")
	}
	if int64(len(runes)) <= n+leeway {
		return c.value(t)
	}
	if err := c.r.charge(4 * len(runes)); err != nil {
		return nil, err
	}
	keep := max(n-int64(utf8.RuneCountInString(end)), 0)
	cut := string(runes[:min(keep, int64(len(runes)))])
	if !c.flag(1, "killwords", false) {
		if at := strings.LastIndexByte(cut, ' '); at >= 0 {
			cut = cut[:at]
		}
	}
	return c.value(concat(t.cut(0, len(cut)), Text{s: end}))
}

func wordCount(c *call) (Value, error) {
	s, err := c.inputText()
	return int64(len(strings.FieldsFunc(s, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r)
	}))), err
}

// indent puts spaces before the lines of a text: not the first one and not empty ones unless asked.
func indent(c *call) (Value, error) {
	t, err := c.stringInput()
	if err != nil {
		return nil, err
	}
	var by Text
	if text, ok := textOf(c.rawArg(0, "width", int64(4))); ok {
		by = text
	} else {
		n, err := c.int(0, "width", 4)
		if err != nil || n < 0 || n > 1000 {
			return nil, errorf("indent takes a width from 0 to 1000")
		}
		by.s = strings.Repeat(" ", int(n))
	}
	first, blank := c.flag(1, "first", false), c.flag(2, "blank", false)
	parts := lines(t.s+"\n", true) // the line that Jinja2 adds makes the text's own last line count
	if err := c.r.charge(t.cost() + (by.cost()+spanBytes+spanBytes*len(t.user))*len(parts)); err != nil {
		return nil, err
	}
	var w textWriter
	for i, p := range parts {
		p.End = min(p.End, len(t.s))
		line := t.cut(p.Start, p.End)
		text := strings.TrimRightFunc(line.s, isBreak)
		if i == 0 && first || i > 0 && (text != "" || blank) {
			w.add(by)
		}
		end := "\n"
		if i == len(parts)-1 {
			end = ""
		}
		w.add(line.cut(0, len(text)))
		w.add(Text{s: end, whole: line.whole && end != ""})
	}
	return c.value(w.text())
}
