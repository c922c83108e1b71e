package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Python's "…" % values and "…".format(values).

// maxWidth bounds widths and precisions in formats.
const maxWidth = 1000

// spec says how one value is to be written.
type spec struct {
	fill      rune
	align     byte // < > = ^; 0: by the kind of value
	sign      byte // + or space: also before positive numbers
	alternate bool
	zero      bool
	group     byte // , or _ between thousands
	width     int
	precision int // -1: none
	verb      byte
}

// percent is Python's % of a string.
func (r *run) percent(format Text, arg Value) (Value, error) {
	args, _ := arg.(*List)
	if args == nil || !args.Tuple {
		args = &List{Items: []Value{arg}, Tuple: true}
	}
	p := &percenting{r: r, format: format, args: args.Items}
	for p.at < len(format.s) {
		if err := p.next(arg); err != nil {
			return nil, err
		}
	}
	_, isDict := arg.(*Dict)
	if p.used < len(p.args) && !p.named && !isDict && !(len(p.args) == 1 && isSubscriptable(arg)) {
		return nil, errorf("not all values were used by the format %q", format.s)
	}
	t := p.w.text()
	t.safe = format.safe
	return t.value(), nil
}

func isSubscriptable(v Value) bool {
	l, ok := v.(*List)
	return ok && !l.Tuple && !l.Lazy
}

type percenting struct {
	r      *run
	format Text
	args   []Value
	used   int
	named  bool
	at     int
	w      textWriter
}

func (p *percenting) add(t Text) error {
	p.w.add(t)
	return p.r.charge(t.cost())
}

// next passes text up to a directive, and the directive.
func (p *percenting) next(arg Value) error {
	s := p.format.s
	n := strings.IndexByte(s[p.at:], '%')
	if n < 0 {
		n = len(s) - p.at
	}
	if err := p.add(p.format.cut(p.at, p.at+n)); err != nil {
		return err
	}
	if p.at += n; p.at == len(s) {
		return nil
	}
	p.at++
	key, isNamed, err := p.key()
	if err != nil {
		return err
	}
	f, err := p.spec()
	if err != nil {
		return err
	}
	if f.verb == '%' {
		return p.add(Text{s: "%"})
	}
	v, err := p.value(key, isNamed, arg)
	if err != nil {
		return err
	}
	t, err := p.r.directive(f, v)
	if err != nil {
		return err
	}
	if p.format.safe {
		t = t.each(escapeHTML)
	}
	return p.add(t)
}

func (p *percenting) key() (string, bool, error) {
	s := p.format.s
	if p.at >= len(s) || s[p.at] != '(' {
		return "", false, nil
	}
	end := strings.IndexByte(s[p.at:], ')')
	if end < 0 {
		return "", false, errorf("the format %q is not complete", s)
	}
	key := s[p.at+1 : p.at+end]
	p.at += end + 1
	return key, true, nil
}

func (p *percenting) value(key string, isNamed bool, arg Value) (Value, error) {
	if isNamed {
		p.named = true
		d, ok := arg.(*Dict)
		if !ok {
			return nil, errorf("the format %q needs a dictionary", p.format.s)
		}
		v, ok := d.Get(key)
		if !ok {
			return nil, errorf("the format %q finds no key %q", p.format.s, key)
		}
		return v, nil
	}
	if p.used == len(p.args) {
		return nil, errorf("too few values for the format %q", p.format.s)
	}
	p.used++
	return p.args[p.used-1], nil
}

// spec reads flags, width, precision and verb.
func (p *percenting) spec() (spec, error) {
	s, f := p.format.s, spec{fill: ' ', precision: -1}
flags:
	for ; p.at < len(s); p.at++ {
		switch c := s[p.at]; c {
		case '-':
			f.align = '<'
		case '0':
			f.zero = true
		case '+':
			f.sign = '+'
		case ' ':
			if f.sign == 0 {
				f.sign = ' '
			}
		case '#':
			f.alternate = true
		default:
			break flags
		}
	}
	var err error
	if f.width, err = p.number(); err == nil && p.at < len(s) && s[p.at] == '.' {
		p.at++
		f.precision, err = p.number()
	}
	if err != nil {
		return f, err
	}
	for p.at < len(s) && strings.IndexByte("hlL", s[p.at]) >= 0 {
		p.at++
	}
	if p.at == len(s) {
		return f, errorf("the format %q is not complete", s)
	}
	f.verb = s[p.at]
	p.at++
	if f.align == 0 {
		f.align = '>'
		if f.zero && strings.IndexByte("diuoxXeEfFgG", f.verb) >= 0 {
			f.align, f.fill = '=', '0'
		}
	}
	return f, nil
}

// number reads a width: digits, or a star for the next value.
func (p *percenting) number() (int, error) {
	s, n := p.format.s, 0
	if p.at < len(s) && s[p.at] == '*' {
		p.at++
		v, err := p.value("", false, nil)
		if err != nil {
			return 0, err
		}
		i, _, isInt, ok := number(v)
		if !ok || !isInt || i < 0 || i > maxWidth {
			return 0, errorf("the format %q takes a width up to %d", s, maxWidth)
		}
		return int(i), nil
	}
	for ; p.at < len(s) && s[p.at] >= '0' && s[p.at] <= '9'; p.at++ {
		if n = n*10 + int(s[p.at]-'0'); n > maxWidth {
			return 0, errorf("the format %q is too wide; at most %d are possible", s, maxWidth)
		}
	}
	return n, nil
}

// directive writes one value for %.
func (r *run) directive(f spec, v Value) (Text, error) {
	i, x, isInt, ok := number(v)
	switch f.verb {
	case 's', 'r', 'a':
		t, err := r.text(v)
		if f.verb != 's' {
			t, err = r.repr(v)
		}
		if err != nil {
			return t, err
		}
		return pad(f, clip(t, f.precision)), nil
	case 'c':
		if s, isText := textOf(v); isText && utf8.RuneCountInString(s.s) == 1 {
			return pad(f, s), nil
		}
		if ok && isInt && i >= 0 && i <= utf8.MaxRune {
			return pad(f, Text{s: string(rune(i))}), nil
		}
	case 'd', 'i', 'u', 'x', 'X', 'o':
		if ok && !isInt && math.Abs(x) < 1<<63 && strings.IndexByte("diu", f.verb) >= 0 {
			i, isInt = int64(x), true
		}
		if ok && isInt {
			return f.integer(i), nil
		}
	case 'f', 'e', 'g', 'F', 'E', 'G':
		if ok {
			return f.float(x), nil
		}
	}
	return Text{}, errorf("the format %%%c does not go with a %s", f.verb, typeName(v))
}

func clip(t Text, n int) Text {
	if n < 0 {
		return t
	}
	return t.cut(0, byteOf(t.s, int64(n)))
}

// pad fills up to the width.
func pad(f spec, t Text) Text {
	missing := f.width - utf8.RuneCountInString(t.s)
	if missing <= 0 {
		return t
	}
	left := missing
	switch f.align {
	case '<':
		left = 0
	case '^':
		left = missing / 2
	}
	fill := string(f.fill)
	return concat(concat(Text{s: strings.Repeat(fill, left)}, t), Text{s: strings.Repeat(fill, missing-left)})
}

// signed writes the digits of a number with its sign and what fills up to the width.
func (f spec) signed(negative bool, prefix, digits string) Text {
	sign := ""
	switch {
	case negative:
		sign = "-"
	case f.sign != 0:
		sign = string(f.sign)
	}
	sign += prefix
	if f.align != '=' {
		return pad(f, Text{s: sign + digits})
	}
	f.align, f.width = '>', max(f.width-len(sign), 0)
	return Text{s: sign + f.zeros(digits)}
}

// zeros fills up between the sign and the digits.
func (f spec) zeros(digits string) string {
	t := pad(f, Text{s: digits}).s
	if f.group == 0 || f.fill != '0' || len(t) == len(digits) {
		return t
	}
	whole, rest := digits, ""
	if at := strings.IndexAny(digits, ".eE"); at >= 0 {
		whole, rest = digits[:at], digits[at:]
	}
	bare := strings.ReplaceAll(whole, string(f.group), "")
	for len(grouped(bare, f.group))+len(rest) < f.width {
		bare = "0" + bare
	}
	return grouped(bare, f.group) + rest
}

// grouped puts a sign between thousands.
func grouped(digits string, group byte) string {
	if group == 0 {
		return digits
	}
	var b strings.Builder
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(group)
		}
		b.WriteByte(digits[i])
	}
	return b.String()
}

func (f spec) integer(i int64) Text {
	base, prefix := 10, ""
	switch f.verb {
	case 'x', 'X':
		base, prefix = 16, "0x"
	case 'o':
		base, prefix = 8, "0o"
	case 'b':
		base, prefix = 2, "0b"
	}
	digits := strings.TrimPrefix(strconv.FormatInt(i, base), "-")
	if f.precision >= 0 {
		digits = strings.Repeat("0", max(f.precision-len(digits), 0)) + digits
	}
	if f.verb == 'X' {
		digits, prefix = strings.ToUpper(digits), "0X"
	}
	if !f.alternate {
		prefix = ""
	}
	if base == 10 {
		digits = grouped(digits, f.group)
	}
	return f.signed(i < 0, prefix, digits)
}

func (f spec) float(x float64) Text {
	precision, verb, percent := f.precision, f.verb, ""
	if precision < 0 {
		precision = 6
	}
	if verb == '%' {
		x, verb, percent = x*100, 'f', "%"
	}
	negative := math.Signbit(x) && !math.IsNaN(x)
	x = math.Abs(x)
	digits := ""
	switch verb {
	case 'f', 'F':
		digits = strconv.FormatFloat(x, 'f', precision, 64)
	case 'e', 'E':
		digits = strconv.FormatFloat(x, 'e', precision, 64)
	default:
		digits = general(x, precision, f.alternate)
	}
	switch {
	case math.IsInf(x, 0):
		digits = "inf"
	case math.IsNaN(x):
		digits = "nan"
	case f.group != 0:
		whole, rest := digits, ""
		if at := strings.IndexAny(digits, ".eE"); at >= 0 {
			whole, rest = digits[:at], digits[at:]
		}
		digits = grouped(whole, f.group) + rest
	}
	if verb == 'F' || verb == 'E' || verb == 'G' {
		digits = strings.ToUpper(digits)
	}
	return f.signed(negative, "", digits+percent)
}

// general is Python's g: significant digits, an exponent where the number is very large or small.
func general(x float64, precision int, zeros bool) string {
	precision = max(precision, 1)
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return ""
	}
	s := strconv.FormatFloat(x, 'e', precision-1, 64)
	at := strings.IndexByte(s, 'e')
	exponent, _ := strconv.Atoi(s[at+1:])
	mantissa, end := s[:at], s[at:]
	if exponent >= -4 && exponent < precision {
		mantissa, end = strconv.FormatFloat(x, 'f', precision-1-exponent, 64), ""
	}
	if !zeros && strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	return mantissa + end
}
