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
		"abs": abs, "attr": attrFilter, "batch": batch, "capitalize": textFilter(capitalize), "count": lengthFilter,
		"d": defaultFilter, "default": defaultFilter, "dictsort": dictSort, "e": markupFilter(escapeHTML), "escape": markupFilter(escapeHTML),
		"first": firstFilter, "float": floatFilter, "forceescape": markupFilter(escapeHTML), "format": formatText,
		"groupby": groupBy, "indent": indent, "int": intFilter, "items": itemsFilter, "join": joinFilter,
		"last": lastFilter, "length": lengthFilter, "list": listFilter, "lower": textFilter(strings.ToLower), "map": mapFilter,
		"max": extreme(1), "min": extreme(-1), "reject": selectFilter(false, false), "rejectattr": selectFilter(false, true),
		"replace": replaceFilter, "reverse": reverseFilter, "round": round, "safe": markupFilter(func(s string) string { return s }),
		"select": selectFilter(true, false), "selectattr": selectFilter(true, true), "slice": sliceFilter, "sort": sortFilter,
		"string": textFilter(func(s string) string { return s }), "sum": sum, "title": textFilter(titleWords), "tojson": toJSON,
		"trim": trim, "truncate": truncate, "unique": unique, "upper": textFilter(toUpper), "wordcount": wordCount,
		"center": func(c *call) (Value, error) { return c.textMethod(justify(1)) },
	}
}

func (r *run) applyFilter(name string, v Value, args []Value, kwargs *Dict) (Value, error) {
	f := filterTable[name]
	if f == nil {
		return nil, errorf("No filter named '%s' found.", name) // Jinja2's words: people search for them
	}
	return f(&call{r, name, v, args, kwargs})
}

// textFilter makes a filter of a function of strings.
func textFilter(f func(string) string) func(*call) (Value, error) {
	return func(c *call) (Value, error) {
		s, err := c.inputText()
		if err != nil {
			return nil, err
		}
		s = f(s)
		return s, c.r.charge(len(s))
	}
}

// markupFilter makes a filter that gives markup.
func markupFilter(f func(string) string) func(*call) (Value, error) {
	return func(c *call) (Value, error) {
		s, err := c.inputText()
		if err != nil {
			return nil, err
		}
		s = f(s)
		return markup(s), c.r.charge(len(s))
	}
}

// textMethod calls a method of strings on the input's text.
func (c *call) textMethod(f func(*call) (Value, error)) (Value, error) {
	s, err := c.inputText()
	if err != nil {
		return nil, err
	}
	inner := *c
	inner.input = s
	return f(&inner)
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

func escapeHTML(s string) string { return escaper.Replace(s) }

// titleWords begins each word with a capital; words end at white space, hyphens and opening brackets.
func titleWords(s string) string {
	start := true
	return strings.Map(func(r rune) rune {
		was := start
		start = isSpace(r) || strings.ContainsRune("-({[<", r)
		if was {
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}, s)
}

func abs(c *call) (Value, error) {
	i, f, isInt, ok := number(c.input)
	if !ok {
		return nil, wrongOperand("abs", c.input)
	}
	if isInt {
		return max(i, -i), nil
	}
	return math.Abs(f), nil
}

func attrFilter(c *call) (Value, error) {
	name, err := c.str(0, "name", "")
	if err != nil {
		return nil, err
	}
	if ns, ok := c.input.(*Namespace); ok {
		return c.r.attr(ns, name)
	}
	return Undefined{name}, nil
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
		if fill := c.arg(1, "fill_with", nil); fill != nil {
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
		out.Items = append(out.Items, &List{Items: items[at:end:end]})
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
		return c.arg(0, "default_value", ""), nil
	}
	return c.input, nil
}

func dictSort(c *call) (Value, error) {
	d, ok := c.input.(*Dict)
	if !ok {
		return nil, wrongOperand("dictsort", c.input)
	}
	pairs, err := dictItems(&call{r: c.r, input: d})
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
	if s, ok := v.(string); ok && fold {
		return strings.ToLower(s)
	}
	return v
}

func firstFilter(c *call) (Value, error) {
	if s, ok := c.input.(string); ok && s != "" {
		_, n := utf8.DecodeRuneInString(s)
		return s[:n], nil
	}
	items, err := c.r.iterate(c.input)
	if err != nil || len(items) == 0 {
		return Undefined{"the first of nothing"}, err
	}
	return items[0], nil
}

func lastFilter(c *call) (Value, error) {
	items, err := c.r.iterate(c.input)
	if err != nil || len(items) == 0 {
		return Undefined{"the last of nothing"}, err
	}
	return items[len(items)-1], nil
}

func floatFilter(c *call) (Value, error) {
	if _, f, _, ok := number(c.input); ok {
		return f, nil
	}
	if s, ok := c.input.(string); ok {
		if f, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
			return f, nil
		}
	}
	return c.arg(0, "default", 0.0), nil
}

func intFilter(c *call) (Value, error) {
	i, f, isInt, ok := number(c.input)
	if ok && isInt {
		return i, nil
	}
	if s, text := c.input.(string); text {
		base, err := c.int(1, "base", 10)
		if err != nil || base < 0 || base > 36 {
			return nil, errorf("int takes a base up to 36")
		}
		if i, err := strconv.ParseInt(strings.TrimSpace(s), int(base), 64); err == nil {
			return i, nil
		}
		f, err = strconv.ParseFloat(strings.TrimSpace(s), 64)
		ok = err == nil
	}
	if ok && math.Abs(f) < 1<<63 {
		return int64(f), nil
	}
	return c.arg(0, "default", int64(0)), nil
}

func itemsFilter(c *call) (Value, error) {
	switch d := c.input.(type) {
	case *Dict:
		v, err := dictItems(&call{r: c.r, input: d})
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
	items, err := c.r.iterate(c.input)
	if err != nil {
		return nil, err
	}
	if attribute := c.arg(1, "attribute", nil); attribute != nil {
		if items, err = c.mapItems(items, func(v Value) (Value, error) { return c.r.path(v, attribute) }); err != nil {
			return nil, err
		}
	}
	sep, err := c.r.text(c.arg(0, "d", ""))
	if err != nil {
		return nil, err
	}
	return c.r.joinItems(items, sep)
}

func listFilter(c *call) (Value, error) {
	items, err := c.inputItems()
	return &List{Items: items}, err
}

// path follows "a.b.0" from a value.
func (r *run) path(v, attribute Value) (Value, error) {
	name, ok := attribute.(string)
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

func extreme(sign int) func(*call) (Value, error) {
	return func(c *call) (Value, error) {
		items, err := c.r.iterate(c.input)
		if err != nil || len(items) == 0 {
			return Undefined{c.name + " of nothing"}, err
		}
		fold := !c.flag(0, "case_sensitive", false)
		attribute := c.arg(1, "attribute", nil)
		key := func(v Value) (Value, error) {
			if attribute == nil {
				return folded(v, fold), nil
			}
			got, err := c.r.path(v, attribute)
			return folded(got, fold), err
		}
		best := items[0]
		for _, item := range items[1:] {
			a, err := key(item)
			if err != nil {
				return nil, err
			}
			b, err := key(best)
			if err != nil {
				return nil, err
			}
			order, err := c.r.compare(a, b, 0)
			if err != nil {
				return nil, err
			}
			if order*sign > 0 {
				best = item
			}
		}
		return best, nil
	}
}

func replaceFilter(c *call) (Value, error) {
	s, err := c.inputText()
	if err != nil {
		return nil, err
	}
	var parts [2]string
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
	return c.r.replaceIn(s, parts[0], parts[1], n)
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
		return c.r.joinItems(items, "")
	}
	return &List{Items: items, Lazy: true}, nil
}

func round(c *call) (Value, error) {
	_, f, _, ok := number(c.input)
	if !ok {
		return nil, wrongOperand("round", c.input)
	}
	n, err := c.int(0, "precision", 0)
	if err != nil {
		return nil, err
	}
	method, err := c.str(1, "method", "common")
	if err != nil {
		return nil, err
	}
	if method == "common" && n >= 0 && n < 300 {
		out, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(n), 64), 64)
		return out, err
	}
	scale := math.Pow(10, float64(n))
	switch method {
	case "common":
		return math.RoundToEven(f*scale) / scale, nil
	case "ceil":
		return math.Ceil(f*scale) / scale, nil
	case "floor":
		return math.Floor(f*scale) / scale, nil
	}
	return nil, errorf("round has no method %q", method)
}

func sum(c *call) (Value, error) {
	items, err := c.r.iterate(c.input)
	if err != nil {
		return nil, err
	}
	attribute := c.arg(0, "attribute", nil)
	total := c.arg(1, "start", int64(0))
	for _, item := range items {
		if attribute != nil {
			if item, err = c.r.path(item, attribute); err != nil {
				return nil, err
			}
		}
		v, ok, err := c.r.sequences("+", total, item)
		if err != nil {
			return nil, err
		}
		if !ok {
			if v, err = arithmetic("+", total, item); err != nil {
				return nil, err
			}
		}
		total = v
	}
	return total, nil
}

func trim(c *call) (Value, error) {
	s, err := c.inputText()
	if err != nil {
		return nil, err
	}
	return stripText(s, c.arg(0, "chars", nil), true, true)
}

func truncate(c *call) (Value, error) {
	s, err := c.inputText()
	if err != nil {
		return nil, err
	}
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
	runes := []rune(s)
	if int64(len(runes)) <= n+leeway {
		return s, nil
	}
	keep := max(n-int64(utf8.RuneCountInString(end)), 0)
	cut := string(runes[:min(keep, int64(len(runes)))])
	if !c.flag(1, "killwords", false) {
		if at := strings.LastIndexByte(cut, ' '); at >= 0 {
			cut = cut[:at]
		}
	}
	return cut + end, nil
}

func wordCount(c *call) (Value, error) {
	s, err := c.inputText()
	return int64(len(strings.FieldsFunc(s, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r)
	}))), err
}

// indent puts spaces before the lines of a text: not the first one and not empty ones unless asked.
func indent(c *call) (Value, error) {
	s, err := c.inputText()
	if err != nil {
		return nil, err
	}
	by := ""
	if text, ok := c.arg(0, "width", int64(4)).(string); ok {
		by = text
	} else {
		n, err := c.int(0, "width", 4)
		if err != nil || n < 0 || n > 1000 {
			return nil, errorf("indent takes a width from 0 to 1000")
		}
		by = strings.Repeat(" ", int(n))
	}
	first, blank := c.flag(1, "first", false), c.flag(2, "blank", false)
	if err := c.r.charge(len(s) + len(by)*(strings.Count(s, "\n")+1)); err != nil {
		return nil, err
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if i == 0 && !first || i > 0 && line == "" && !blank {
			continue
		}
		lines[i] = by + line
	}
	return strings.Join(lines, "\n"), nil
}
