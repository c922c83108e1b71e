package jinja

import (
	"math"
	"strings"
)

// Operators on values.

// wrongOperand says that an operator does not go with a value.
func wrongOperand(op string, v Value) error {
	if u, ok := v.(Undefined); ok {
		return errorf("%s is undefined", u.Name)
	}
	return errorf("%s does not go with a %s", op, typeName(v))
}

// holds evaluates a comparison.
func (r *run) holds(op string, a, b Value) (bool, error) {
	switch op {
	case "==", "!=":
		same, err := r.equal(a, b, 0)
		return same == (op == "=="), err
	case "in", "not in":
		in, err := r.contains(b, a)
		return in == (op == "in"), err
	}
	for _, v := range []Value{a, b} {
		if u, ok := v.(Undefined); ok {
			return false, errorf("%s is undefined", u.Name)
		}
	}
	c, err := r.compare(a, b, 0)
	switch op {
	case "<":
		return c < 0, err
	case "<=":
		return c <= 0, err
	case ">":
		return c > 0, err
	}
	return c >= 0, err
}

// contains is Python's "in".
func (r *run) contains(in, v Value) (bool, error) {
	switch in := plain(in).(type) {
	case string:
		part, ok := plain(v).(string)
		if !ok {
			return false, errorf("only a string can be in a string, not a %s", typeName(v))
		}
		return strings.Contains(in, part), r.look(in)
	case *Dict:
		_, ok := in.Get(v)
		return ok, r.look(v)
	}
	items, err := r.iterate(in)
	if err != nil {
		return false, err
	}
	for _, item := range items {
		if same, err := r.equal(item, v, 0); err != nil || same {
			return same, err
		}
	}
	return false, nil
}

type binaryExpr struct {
	op          string
	left, right expr
}

func (b *binaryExpr) eval(r *run, s *scope) (Value, error) {
	left, err := r.eval(b.left, s)
	if err != nil {
		return nil, err
	}
	right, err := r.eval(b.right, s)
	if err != nil {
		return nil, err
	}
	if b.op == "~" {
		return r.join(left, right)
	}
	for _, v := range []Value{left, right} {
		if u, ok := v.(Undefined); ok {
			return nil, errorf("%s is undefined", u.Name)
		}
	}
	if v, ok, err := r.sequences(b.op, left, right); ok || err != nil {
		return v, err
	}
	return arithmetic(b.op, left, right)
}

// join is the operator ~.
func (r *run) join(a, b Value) (Value, error) {
	x, err := r.text(a)
	if err != nil {
		return nil, err
	}
	y, err := r.text(b)
	if err != nil {
		return nil, err
	}
	if err := r.charge(len(x) + len(y)); err != nil {
		return nil, err
	}
	return x + y, nil
}

func isMarkup(a, b Value) bool {
	_, x := a.(markup)
	_, y := b.(markup)
	return x || y
}

// joinMarkup joins two texts of which one is markup; the other one is escaped.
func (r *run) joinMarkup(a, b Value, x, y string) (Value, error) {
	if _, ok := a.(markup); !ok {
		x = escapeHTML(x)
	}
	if _, ok := b.(markup); !ok {
		y = escapeHTML(y)
	}
	return markup(x + y), r.charge(len(x) + len(y))
}

// sequences is + and * of strings and lists, and % of a string. It reports whether it was one of these.
func (r *run) sequences(op string, a, b Value) (Value, bool, error) {
	if x, ok := plain(a).(string); ok && op == "+" && isMarkup(a, b) {
		if y, ok := plain(b).(string); ok {
			v, err := r.joinMarkup(a, b, x, y)
			return v, true, err
		}
	}
	switch x := plain(a).(type) {
	case string:
		if y, ok := b.(string); ok && op == "+" {
			return x + y, true, r.charge(len(x) + len(y))
		}
		if n, ok := b.(int64); ok && op == "*" {
			v, err := r.repeat(x, n)
			return v, true, err
		}
		if op == "%" {
			v, err := r.percent(x, b)
			return v, true, err
		}
	case *List:
		if y, ok := b.(*List); ok && op == "+" && x.Tuple == y.Tuple && !x.Lazy && !y.Lazy {
			if err := r.charge(16 * (len(x.Items) + len(y.Items))); err != nil {
				return nil, true, err
			}
			return &List{append(append([]Value{}, x.Items...), y.Items...), x.Tuple, false}, true, nil
		}
		if n, ok := b.(int64); ok && op == "*" {
			v, err := r.repeatList(x, n)
			return v, true, err
		}
	case int64:
		switch y := b.(type) {
		case string, *List:
			if op == "*" {
				return r.sequences(op, y, x)
			}
		}
	}
	return nil, false, nil
}

func (r *run) repeat(s string, n int64) (Value, error) {
	n = max(n, 0)
	if len(s) > 0 && n > r.limits.Bytes {
		n = r.limits.Bytes + 1
	}
	if err := r.charge(int(min(int64(len(s))*n, math.MaxInt32))); err != nil {
		return nil, err
	}
	return strings.Repeat(s, int(n)), nil
}

func (r *run) repeatList(l *List, n int64) (Value, error) {
	n = min(max(n, 0), r.limits.Bytes)
	if err := r.charge(int(min(int64(len(l.Items))*n*16, math.MaxInt32))); err != nil {
		return nil, err
	}
	out := &List{Tuple: l.Tuple}
	for range n {
		if len(l.Items) == 0 {
			break
		}
		out.Items = append(out.Items, l.Items...)
	}
	return out, nil
}

// arithmetic is Python's arithmetic on numbers.
func arithmetic(op string, a, b Value) (Value, error) {
	x, xf, xInt, xok := number(a)
	y, yf, yInt, yok := number(b)
	if !xok || !yok {
		return nil, errorf("%s does not go with a %s and a %s", op, typeName(a), typeName(b))
	}
	if (op == "/" || op == "//" || op == "%") && yf == 0 {
		return nil, errorf("division by zero")
	}
	if xInt && yInt && op != "/" {
		if v, ok := integers(op, x, y); ok {
			return v, nil
		}
		if op != "**" || y >= 0 {
			return nil, errorf("%s gives a number that is too large", op)
		}
	}
	switch op {
	case "+":
		return xf + yf, nil
	case "-":
		return xf - yf, nil
	case "*":
		return xf * yf, nil
	case "/":
		return xf / yf, nil
	case "//":
		return math.Floor(xf / yf), nil
	case "%":
		m := math.Mod(xf, yf)
		if m != 0 && (m < 0) != (yf < 0) {
			m += yf
		}
		return m, nil
	}
	return math.Pow(xf, yf), nil
}

// integers is arithmetic on integers; it reports whether the result fits.
func integers(op string, x, y int64) (int64, bool) {
	switch op {
	case "+":
		z := x + y
		return z, (z > x) == (y > 0)
	case "-":
		z := x - y
		return z, (z < x) == (y > 0)
	case "*":
		if x == 0 || y == 0 {
			return 0, true
		}
		z := x * y
		return z, z/y == x && !(x == -1 && y == math.MinInt64) && !(y == -1 && x == math.MinInt64)
	case "//", "%":
		if y == -1 {
			return map[string]int64{"//": -x}[op], x != math.MinInt64
		}
		q, m := x/y, x%y
		if m != 0 && (m < 0) != (y < 0) {
			q, m = q-1, m+y
		}
		if op == "//" {
			return q, true
		}
		return m, true
	}
	return integerPower(x, y)
}

func integerPower(x, y int64) (int64, bool) {
	if y < 0 {
		return 0, false
	}
	z := int64(1)
	for ; y > 0; y-- {
		if x == 0 || x == 1 {
			return x, true
		}
		if x == -1 {
			return 1 - 2*(y%2), true
		}
		var ok bool
		if z, ok = integers("*", z, x); !ok {
			return 0, false
		}
	}
	return z, true
}
