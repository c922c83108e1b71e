package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// method returns a method of a value, or nil.
func (r *run) method(object Value, name string) *Func {
	var f func(*call) (Value, error)
	switch object.(type) {
	case string:
		f = stringMethods[name]
	case *List:
		f = listMethods[name]
	case *Dict:
		f = dictMethods[name]
	}
	if f == nil {
		return nil
	}
	return &Func{name, func(args []Value, kwargs *Dict) (Value, error) {
		if s, ok := object.(string); ok {
			if err := r.charge(len(s)); err != nil {
				return nil, err
			}
		}
		return f(&call{r, name, object, args, kwargs})
	}}
}

// onText makes a method of a function of strings.
func onText(f func(string) string) func(*call) (Value, error) {
	return func(c *call) (Value, error) {
		out := f(c.input.(string))
		return out, c.r.charge(len(out))
	}
}

// ifAll makes a method that says whether all characters of a string that is not empty satisfy f.
func ifAll(f func(rune) bool) func(*call) (Value, error) {
	return func(c *call) (Value, error) {
		s := c.input.(string)
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !f(r) }) < 0, nil
	}
}

// ifCased makes a method that says whether a string has letters of one case only.
func ifCased(is, isNot func(rune) bool) func(*call) (Value, error) {
	return func(c *call) (Value, error) {
		s := c.input.(string)
		return strings.IndexFunc(s, is) >= 0 && strings.IndexFunc(s, isNot) < 0, nil
	}
}

var stringMethods, listMethods, dictMethods map[string]func(*call) (Value, error)

func init() {
	stringMethods = map[string]func(*call) (Value, error){
		"upper": onText(toUpper), "lower": onText(strings.ToLower), "casefold": onText(strings.ToLower),
		"title": onText(title), "capitalize": onText(capitalize), "swapcase": onText(swapCase),
		"isdigit": ifAll(unicode.IsDigit), "isdecimal": ifAll(unicode.IsDigit), "isnumeric": ifAll(unicode.IsNumber),
		"isalpha": ifAll(unicode.IsLetter), "isspace": ifAll(isSpace),
		"isalnum": ifAll(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
		"isupper": ifCased(unicode.IsUpper, unicode.IsLower), "islower": ifCased(unicode.IsLower, unicode.IsUpper),
		"strip": strip(true, true), "lstrip": strip(true, false), "rstrip": strip(false, true),
		"startswith": affix(strings.HasPrefix), "endswith": affix(strings.HasSuffix),
		"removeprefix": removeAffix(strings.TrimPrefix), "removesuffix": removeAffix(strings.TrimSuffix),
		"split": split, "rsplit": rsplit, "splitlines": splitLines, "partition": partition, "rpartition": rpartition,
		"replace": replaceText, "join": joinText, "format": formatText,
		"find": find(strings.Index, false), "rfind": find(strings.LastIndex, false),
		"index": find(strings.Index, true), "rindex": find(strings.LastIndex, true),
		"count": countText, "zfill": zfill, "ljust": justify(0), "rjust": justify(2), "center": justify(1),
	}
	listMethods = map[string]func(*call) (Value, error){
		"append": listAppend, "extend": listExtend, "insert": listInsert, "pop": listPop, "remove": listRemove, "clear": listClear,
		"reverse": listReverse, "copy": listCopy, "index": listIndex, "count": listCount,
	}
	dictMethods = map[string]func(*call) (Value, error){
		"items": dictItems, "keys": dictKeys, "values": dictValues, "get": dictGet, "pop": dictPop, "update": dictUpdate,
		"setdefault": dictSetDefault, "copy": dictCopy, "clear": dictClear,
	}
}

// toUpper is Python's: the one letter that has no capital of its own gets two.
func toUpper(s string) string { return strings.ReplaceAll(strings.ToUpper(s), "ß", "SS") }

func capitalize(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToTitle(s[:n]) + strings.ToLower(s[n:])
}

// title begins each run of letters with a capital.
func title(s string) string {
	inside := false
	return strings.Map(func(r rune) rune {
		was := inside
		if inside = unicode.IsLetter(r); !inside {
			return r
		}
		if was {
			return unicode.ToLower(r)
		}
		return unicode.ToTitle(r)
	}, s)
}

func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}

// stripText takes characters of a set away, or white space.
func stripText(s string, set Value, left, right bool) (string, error) {
	drop := isSpace
	if set != nil {
		chars, ok := set.(string)
		if !ok {
			return "", errorf("strip takes a str, not a %s", typeName(set))
		}
		drop = func(r rune) bool { return strings.ContainsRune(chars, r) }
	}
	if left {
		s = strings.TrimLeftFunc(s, drop)
	}
	if right {
		s = strings.TrimRightFunc(s, drop)
	}
	return s, nil
}

func strip(left, right bool) func(*call) (Value, error) {
	return func(c *call) (Value, error) { return stripText(c.input.(string), c.arg(0, "chars", nil), left, right) }
}

// affix is startswith and endswith, of one string or of a tuple of them.
func affix(has func(s, part string) bool) func(*call) (Value, error) {
	return func(c *call) (Value, error) {
		v, err := c.need(0, "prefix")
		if err != nil {
			return nil, err
		}
		parts := []Value{v}
		if l, ok := v.(*List); ok {
			parts = l.Items
		}
		for _, part := range parts {
			text, ok := part.(string)
			if !ok {
				return nil, errorf("%s takes a str, not a %s", c.name, typeName(part))
			}
			if has(c.input.(string), text) {
				return true, nil
			}
		}
		return false, nil
	}
}

func removeAffix(trim func(s, part string) string) func(*call) (Value, error) {
	return func(c *call) (Value, error) {
		part, err := c.str(0, "prefix", "")
		return trim(c.input.(string), part), err
	}
}

// texts makes a list of strings.
func (r *run) texts(parts []string) (*List, error) {
	items := make([]Value, len(parts))
	for i, part := range parts {
		items[i] = part
	}
	return &List{Items: items}, r.charge(32 * len(parts))
}

func split(c *call) (Value, error) {
	s := c.input.(string)
	most, err := c.int(1, "maxsplit", -1)
	if err != nil {
		return nil, err
	}
	sep := c.arg(0, "sep", nil)
	if sep == nil {
		return c.r.texts(fields(s, most))
	}
	text, ok := sep.(string)
	if !ok || text == "" {
		return nil, errorf("split takes a str that is not empty")
	}
	n := -1
	if most >= 0 {
		n = int(min(most, int64(len(s)))) + 1
	}
	return c.r.texts(strings.SplitN(s, text, n))
}

// fields splits at white space, most times at most.
func fields(s string, most int64) []string {
	var out []string
	for {
		s = strings.TrimLeftFunc(s, isSpace)
		if s == "" {
			return out
		}
		end := strings.IndexFunc(s, isSpace)
		if most >= 0 && int64(len(out)) == most {
			return append(out, strings.TrimRightFunc(s, isSpace))
		}
		if end < 0 {
			return append(out, s)
		}
		out = append(out, s[:end])
		s = s[end:]
	}
}

func rsplit(c *call) (Value, error) {
	s := c.input.(string)
	most, err := c.int(1, "maxsplit", -1)
	if err != nil {
		return nil, err
	}
	sep, err := c.str(0, "sep", " ")
	if err != nil || most < 0 {
		return split(c)
	}
	if sep == "" {
		return nil, errorf("rsplit takes a str that is not empty")
	}
	var out []string
	for int64(len(out)) < most {
		at := strings.LastIndex(s, sep)
		if at < 0 {
			break
		}
		out = append(out, s[at+len(sep):])
		s = s[:at]
	}
	out = append(out, s)
	slices.Reverse(out)
	return c.r.texts(out)
}

func splitLines(c *call) (Value, error) {
	s := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(c.input.(string))
	if s == "" {
		return NewList(), nil
	}
	return c.r.texts(strings.Split(strings.TrimSuffix(s, "\n"), "\n"))
}

func partition(c *call) (Value, error) {
	sep, err := c.str(0, "sep", "")
	if err != nil || sep == "" {
		return nil, errorf("partition takes a str that is not empty")
	}
	before, after, ok := strings.Cut(c.input.(string), sep)
	if !ok {
		sep = ""
	}
	return &List{Items: []Value{before, sep, after}, Tuple: true}, nil
}

func rpartition(c *call) (Value, error) {
	sep, err := c.str(0, "sep", "")
	if err != nil || sep == "" {
		return nil, errorf("rpartition takes a str that is not empty")
	}
	s := c.input.(string)
	at := strings.LastIndex(s, sep)
	if at < 0 {
		return &List{Items: []Value{"", "", s}, Tuple: true}, nil
	}
	return &List{Items: []Value{s[:at], sep, s[at+len(sep):]}, Tuple: true}, nil
}

// replaceIn replaces at most n times, all if n is negative.
func (r *run) replaceIn(s, old, new string, n int64) (Value, error) {
	count := int64(strings.Count(s, old))
	if n >= 0 {
		count = min(count, n)
	}
	if grown := count * int64(len(new)); grown > r.limits.Bytes {
		return nil, r.charge(int(r.limits.Bytes) + 1)
	}
	if err := r.charge(len(s) + int(count)*len(new)); err != nil {
		return nil, err
	}
	return strings.Replace(s, old, new, int(count)), nil
}

func replaceText(c *call) (Value, error) {
	old, err := c.need(0, "old")
	if err != nil {
		return nil, err
	}
	new, err := c.need(1, "new")
	if err != nil {
		return nil, err
	}
	n, err := c.int(2, "count", -1)
	if err != nil {
		return nil, err
	}
	from, ok := old.(string)
	to, ok2 := new.(string)
	if !ok || !ok2 {
		return nil, errorf("replace takes strs, not a %s and a %s", typeName(old), typeName(new))
	}
	return c.r.replaceIn(c.input.(string), from, to, n)
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
	return c.r.joinItems(items, c.input.(string))
}

// joinItems joins the texts of values.
func (r *run) joinItems(items []Value, sep string) (Value, error) {
	var b strings.Builder
	for i, item := range items {
		text, err := r.text(item)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = sep + text
		}
		if err := r.charge(len(text)); err != nil {
			return nil, err
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// find is find and index; the place is counted in characters.
func find(look func(s, part string) int, must bool) func(*call) (Value, error) {
	return func(c *call) (Value, error) {
		part, err := c.str(0, "sub", "")
		if err != nil {
			return nil, err
		}
		s := c.input.(string)
		at := look(s, part)
		if at < 0 {
			if must {
				return nil, errorf("%q was not found", part)
			}
			return int64(-1), nil
		}
		return int64(utf8.RuneCountInString(s[:at])), nil
	}
}

func countText(c *call) (Value, error) {
	part, err := c.str(0, "sub", "")
	return int64(strings.Count(c.input.(string), part)), err
}

// width returns an argument that is a width, bounded by what may be made.
func (c *call) width() (int, error) {
	n, err := c.int(0, "width", 0)
	if err != nil {
		return 0, err
	}
	if n > c.r.limits.Bytes {
		return 0, c.r.charge(int(c.r.limits.Bytes) + 1)
	}
	return int(max(n, 0)), c.r.charge(int(max(n, 0)))
}

func zfill(c *call) (Value, error) {
	n, err := c.width()
	if err != nil {
		return nil, err
	}
	s, sign := c.input.(string), ""
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		sign, s = s[:1], s[1:]
	}
	return sign + strings.Repeat("0", max(n-len(sign)-utf8.RuneCountInString(s), 0)) + s, nil
}

// justify fills up with spaces: 0 at the end, 1 on both sides, 2 at the beginning.
func justify(side int) func(*call) (Value, error) {
	return func(c *call) (Value, error) {
		n, err := c.width()
		if err != nil {
			return nil, err
		}
		fill, err := c.str(1, "fillchar", " ")
		if err != nil || utf8.RuneCountInString(fill) != 1 {
			return nil, errorf("%s fills up with one character", c.name)
		}
		s := c.input.(string)
		missing := max(n-utf8.RuneCountInString(s), 0)
		left := []int{0, missing / 2, missing}[side]
		return strings.Repeat(fill, left) + s + strings.Repeat(fill, missing-left), nil
	}
}
