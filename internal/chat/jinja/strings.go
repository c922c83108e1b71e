package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Methods of strings that make or take apart text. They know what of it came from the request.

var stringMethods map[string]func(*call) (Value, error)

func init() {
	stringMethods = map[string]func(*call) (Value, error){
		"upper": perCharacter(toUpper), "lower": perCharacter(toLower), "casefold": perCharacter(caseFold),
		"title": onText(title), "capitalize": onText(capitalize), "swapcase": perCharacter(swapCase),
		"isdigit": ifAll(isDigit), "isdecimal": ifAll(unicode.IsDigit), "isnumeric": ifAll(unicode.IsNumber),
		"isalpha": ifAll(unicode.IsLetter), "isspace": ifAll(isSpace), "isascii": isASCII, "isidentifier": isIdentifier,
		"isprintable": isPrintable, "isalnum": ifAll(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
		"isupper": ifCased(unicode.IsUpper, unicode.IsLower), "islower": ifCased(unicode.IsLower, unicode.IsUpper), "istitle": isTitle,
		"strip": strip(true, true), "lstrip": strip(true, false), "rstrip": strip(false, true),
		"startswith": affix(strings.HasPrefix), "endswith": affix(strings.HasSuffix),
		"removeprefix": removePrefix, "removesuffix": removeSuffix, "expandtabs": expandTabs,
		"split": split, "rsplit": rsplit, "splitlines": splitLines, "partition": partition, "rpartition": rpartition,
		"replace": replaceText, "join": joinText, "format": formatMethod, "format_map": formatMap,
		"find": find(strings.Index, false), "rfind": find(strings.LastIndex, false),
		"index": find(strings.Index, true), "rindex": find(strings.LastIndex, true),
		"count": countText, "zfill": zfill, "ljust": justify(0), "rjust": justify(2), "center": justify(1),
	}
}

// in is the string that a method belongs to.
func (c *call) in() Text {
	t, _ := textOf(c.raw)
	return t
}

// perCharacter makes a method of a function that looks at one character at a time.
func perCharacter(f func(string) string) func(*call) (Value, error) {
	return func(c *call) (Value, error) { return c.value(c.in().each(f)) }
}

// onText makes a method of a function of strings.
func onText(f func(string) string) func(*call) (Value, error) {
	return func(c *call) (Value, error) { return c.value(c.in().mapped(f)) }
}

// mapped makes a text of what f makes of the whole of it; what came from the request stays where it was if
// nothing has moved.
func (t Text) mapped(f func(string) string) Text {
	s := f(t.s)
	if len(s) != len(t.s) {
		return t.with(s)
	}
	t.s = s
	return t
}

func stripSet(set Value) (func(rune) bool, error) {
	if set == nil {
		return isSpace, nil
	}
	chars, ok := set.(string)
	if !ok {
		return nil, errorf("strip takes a str, not a %s", typeName(set))
	}
	return func(r rune) bool { return strings.ContainsRune(chars, r) }, nil
}

// stripText takes characters of a set away, or white space.
func stripText(t Text, set Value, left, right bool) (Text, error) {
	drop, err := stripSet(set)
	if err != nil {
		return Text{}, err
	}
	from, to := 0, len(t.s)
	if left {
		from = len(t.s) - len(strings.TrimLeftFunc(t.s, drop))
	}
	if right {
		to = from + len(strings.TrimRightFunc(t.s[from:], drop))
	}
	return t.cut(from, to), nil
}

func strip(left, right bool) func(*call) (Value, error) {
	return func(c *call) (Value, error) {
		t, err := stripText(c.in(), c.arg(0, "chars", nil), left, right)
		if err != nil {
			return nil, err
		}
		return c.value(t)
	}
}

func removePrefix(c *call) (Value, error) {
	part, err := c.textArg(0, "prefix")
	if t := c.in(); err == nil && strings.HasPrefix(t.s, part.s) {
		return c.value(t.cut(len(part.s), len(t.s)))
	}
	c.exact = true
	return c.raw, err
}

func removeSuffix(c *call) (Value, error) {
	part, err := c.textArg(0, "suffix")
	if t := c.in(); err == nil && strings.HasSuffix(t.s, part.s) {
		return c.value(t.cut(0, len(t.s)-len(part.s)))
	}
	c.exact = true
	return c.raw, err
}

// cuts makes a list of parts of the input.
func (c *call) cuts(parts []Span) (*List, error) {
	t := c.in()
	if err := c.r.charge((32 + spanBytes + len(t.user)*spanBytes) * len(parts)); err != nil {
		return nil, err
	}
	items := make([]Value, len(parts))
	for i, p := range parts {
		items[i] = t.cut(p.Start, p.End).value()
	}
	return &List{Items: items}, nil
}

func split(c *call) (Value, error) {
	most, err := c.int(1, "maxsplit", -1)
	if err != nil {
		return nil, err
	}
	s, sep := c.in().s, c.arg(0, "sep", nil)
	if sep == nil {
		return c.cuts(fields(s, most))
	}
	text, ok := sep.(string)
	if !ok || text == "" {
		return nil, errorf("split takes a str that is not empty")
	}
	var parts []Span
	at := 0
	for most < 0 || int64(len(parts)) < most {
		n := strings.Index(s[at:], text)
		if n < 0 {
			break
		}
		parts = append(parts, Span{at, at + n})
		at += n + len(text)
	}
	return c.cuts(append(parts, Span{at, len(s)}))
}

// fields splits at white space, most times at most.
func fields(s string, most int64) []Span {
	var out []Span
	for at := 0; ; {
		at = len(s) - len(strings.TrimLeftFunc(s[at:], isSpace))
		if at == len(s) {
			return out
		}
		end := strings.IndexFunc(s[at:], isSpace)
		switch {
		case most >= 0 && int64(len(out)) == most:
			return append(out, Span{at, len(s)})
		case end < 0:
			return append(out, Span{at, len(s)})
		}
		out = append(out, Span{at, at + end})
		at += end
	}
}

func rsplit(c *call) (Value, error) {
	most, err := c.int(1, "maxsplit", -1)
	sep := c.arg(0, "sep", nil)
	if err != nil || most < 0 {
		return split(c)
	}
	text, ok := sep.(string)
	if sep != nil && (!ok || text == "") {
		return nil, errorf("rsplit takes a str that is not empty")
	}
	s := c.in().s
	var out []Span
	if sep == nil {
		out = lastFields(s, most)
	} else {
		end := len(s)
		for int64(len(out)) < most {
			at := strings.LastIndex(s[:end], text)
			if at < 0 {
				break
			}
			out = append(out, Span{at + len(text), end})
			end = at
		}
		out = append(out, Span{0, end})
	}
	l, err := c.cuts(out)
	if err != nil {
		return nil, err
	}
	for i, j := 0, len(l.Items)-1; i < j; i, j = i+1, j-1 {
		l.Items[i], l.Items[j] = l.Items[j], l.Items[i]
	}
	return l, nil
}

// lastFields splits at white space from the end, most times at most; the last one comes first.
func lastFields(s string, most int64) []Span {
	var out []Span
	for end := len(s); ; {
		if end = len(strings.TrimRightFunc(s[:end], isSpace)); end == 0 {
			return out
		}
		if int64(len(out)) == most {
			return append(out, Span{0, end})
		}
		at := strings.LastIndexFunc(s[:end], isSpace)
		if at < 0 {
			return append(out, Span{0, end})
		}
		_, n := utf8.DecodeRuneInString(s[at:])
		out = append(out, Span{at + n, end})
		end = at
	}
}

// isBreak is what ends a line, for Python.
func isBreak(r rune) bool {
	return r >= '\n' && r <= '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029
}

// lines are the lines of s; keep: with what ends them.
func lines(s string, keep bool) []Span {
	var parts []Span
	for at := 0; at < len(s); {
		n := strings.IndexFunc(s[at:], isBreak)
		if n < 0 {
			return append(parts, Span{at, len(s)})
		}
		end := at + n
		_, size := utf8.DecodeRuneInString(s[end:])
		if strings.HasPrefix(s[end:], "\r\n") {
			size = 2
		}
		part := Span{at, end}
		if at = end + size; keep {
			part.End = at
		}
		parts = append(parts, part)
	}
	return parts
}

func splitLines(c *call) (Value, error) {
	return c.cuts(lines(c.in().s, c.flag(0, "keepends", false)))
}

func (c *call) threeParts(at int, found bool, otherwise [3]Span) (Value, error) {
	sep, err := c.textArg(0, "sep")
	if err != nil {
		return nil, err
	}
	t := c.in()
	cuts := otherwise[:]
	if found {
		cuts = []Span{{0, at}, {at, at + len(sep.s)}, {at + len(sep.s), len(t.s)}}
	}
	l, err := c.cuts(cuts)
	if err != nil {
		return nil, err
	}
	if l.Tuple = true; found {
		l.Items[1] = sep.value()
	}
	return l, nil
}

func partition(c *call) (Value, error) {
	sep, err := c.textArg(0, "sep")
	if err != nil || sep.s == "" {
		return nil, errorf("partition takes a str that is not empty")
	}
	s := c.in().s
	at := strings.Index(s, sep.s)
	return c.threeParts(at, at >= 0, [3]Span{{0, len(s)}})
}

func rpartition(c *call) (Value, error) {
	sep, err := c.textArg(0, "sep")
	if err != nil || sep.s == "" {
		return nil, errorf("partition takes a str that is not empty")
	}
	s := c.in().s
	at := strings.LastIndex(s, sep.s)
	return c.threeParts(at, at >= 0, [3]Span{2: {0, len(s)}})
}

// replaceIn replaces at most n times, all if n is negative.
func (r *run) replaceIn(t, old, new Text, n int64) (Text, error) {
	count := int64(strings.Count(t.s, old.s))
	if n >= 0 {
		count = min(count, n)
	}
	if grown := count * int64(new.cost()); grown > r.limits.Bytes {
		return Text{}, r.charge(int(r.limits.Bytes) + 1)
	}
	if err := r.charge(t.cost() + int(count)*new.cost()); err != nil {
		return Text{}, err
	}
	if count == 0 {
		return t, nil
	}
	if t.tainted() == new.tainted() && t.whole == new.whole {
		if t.whole || !t.tainted() {
			return Text{s: strings.Replace(t.s, old.s, new.s, int(count)), whole: t.whole, safe: t.safe}, nil
		}
	}
	var w textWriter
	at := 0
	for i := range count {
		skip := 0
		if old.s != "" {
			skip = strings.Index(t.s[at:], old.s)
		} else if i > 0 {
			_, skip = utf8.DecodeRuneInString(t.s[at:])
		}
		w.add(t.cut(at, at+skip))
		w.add(new)
		at += skip + len(old.s)
	}
	w.add(t.cut(at, len(t.s)))
	out := w.text()
	out.safe = t.safe
	return out, nil
}

func replaceText(c *call) (Value, error) {
	old, err := c.textArg(0, "old")
	if err != nil {
		return nil, err
	}
	new, err := c.textArg(1, "new")
	if err != nil {
		return nil, err
	}
	n, err := c.int(2, "count", -1)
	if err != nil {
		return nil, err
	}
	t, err := c.r.replaceIn(c.in(), old, new, n)
	if err != nil {
		return nil, err
	}
	return c.value(t)
}

func joinText(c *call) (Value, error) {
	list, err := c.need(0, "iterable")
	if err != nil {
		return nil, err
	}
	items, err := c.r.iterate(list)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if _, ok := plain(item).(string); !ok {
			return nil, errorf("join takes strs, not a %s", typeName(item))
		}
	}
	c.exact = true
	return c.r.joinItems(items, c.in())
}

// joinItems joins the texts of values.
func (r *run) joinItems(items []Value, sep Text) (Value, error) {
	var w textWriter
	for i, item := range items {
		text, err := r.text(item)
		if err != nil {
			return nil, err
		}
		cost := text.cost()
		if i > 0 {
			cost += sep.cost()
		}
		if err := r.charge(cost); err != nil {
			return nil, err
		}
		if i > 0 {
			w.add(sep)
		}
		w.add(text)
	}
	return w.text().value(), nil
}

// width returns an argument that is a width, bounded by what may be made.
func (c *call) width(missing int64) (int, error) {
	n, err := c.int(0, "width", missing)
	if err != nil {
		return 0, err
	}
	if n > c.r.limits.Bytes {
		return 0, c.r.charge(int(c.r.limits.Bytes) + 1)
	}
	return int(max(n, 0)), c.r.charge(int(max(n, 0)))
}

func zfill(c *call) (Value, error) {
	n, err := c.width(0)
	if err != nil {
		return nil, err
	}
	t, sign := c.in(), Text{}
	length := utf8.RuneCountInString(t.s)
	if strings.HasPrefix(t.s, "-") || strings.HasPrefix(t.s, "+") {
		sign, t = t.cut(0, 1), t.cut(1, len(t.s))
	}
	zeros := Text{s: strings.Repeat("0", max(n-length, 0))}
	return c.value(concat(concat(sign, zeros), t))
}

// justify fills up with spaces: 0 at the end, 1 on both sides, 2 at the beginning.
func justify(side int) func(*call) (Value, error) {
	return func(c *call) (Value, error) {
		n, err := c.width(0)
		if err != nil {
			return nil, err
		}
		fill, err := c.str(1, "fillchar", " ")
		if err != nil || utf8.RuneCountInString(fill) != 1 {
			return nil, errorf("%s fills up with one character", c.name)
		}
		t := c.in()
		missing := max(n-utf8.RuneCountInString(t.s), 0)
		if err := c.r.charge(missing * len(fill)); err != nil {
			return nil, err
		}
		left := []int{0, missing/2 + missing&n&1, missing}[side]
		before, after := Text{s: strings.Repeat(fill, left)}, Text{s: strings.Repeat(fill, missing-left)}
		return c.value(concat(concat(before, t), after))
	}
}

func expandTabs(c *call) (Value, error) {
	n, err := c.width(8)
	if err != nil {
		return nil, err
	}
	t := c.in()
	if err := c.r.charge(strings.Count(t.s, "\t") * n); err != nil {
		return nil, err
	}
	var b strings.Builder
	column := 0
	for _, r := range t.s {
		switch {
		case r == '\t' && n > 0:
			b.WriteString(strings.Repeat(" ", n-column%n))
			column += n - column%n
			continue
		case r == '\t':
			continue
		case r == '\n' || r == '\r':
			column = -1
		}
		column++
		b.WriteRune(r)
	}
	return c.value(t.with(b.String()))
}
