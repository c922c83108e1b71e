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
	for i, item := range items {
		if same, err := r.equal(item, v, 0); err != nil || same {
			if l, ok := in.(*List); ok && l.Lazy {
				l.Items = items[i+1:]
			}
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
	x.safe, y.safe = false, false
	return r.concat(x, y)
}

// concat is + of two strings.
func (r *run) concat(a, b Text) (Value, error) {
	if err := r.charge(a.cost() + b.cost()); err != nil {
		return nil, err
	}
	safe := a.safe || b.safe
	if safe && !a.safe {
		a = a.each(escapeHTML)
	}
	if safe && !b.safe {
		b = b.each(escapeHTML)
	}
	t := concat(a, b)
	t.safe = safe
	return t.value(), nil
}

// sequences is + and * of strings and lists, and % of a string. It reports whether it was one of these.
func (r *run) sequences(op string, a, b Value) (Value, bool, error) {
	if x, ok := textOf(a); ok {
		return r.textOperator(op, x, b)
	}
	switch x := a.(type) {
	case *List:
		if y, ok := b.(*List); ok && op == "+" && x.Tuple == y.Tuple && x.isSequence() && y.isSequence() {
			if err := r.charge(16 * (len(x.Items) + len(y.Items))); err != nil {
				return nil, true, err
			}
			return &List{Items: append(append([]Value{}, x.Items...), y.Items...), Tuple: x.Tuple}, true, nil
		}
		if n, _, isInt, ok := number(b); ok && isInt && op == "*" && x.isSequence() {
			v, err := r.repeatList(x, n)
			return v, true, err
		}
	case int64, bool:
		switch y := b.(type) {
		case string, *Text, *List:
			if op == "*" {
				return r.sequences(op, y, a)
			}
		}
	}
	return nil, false, nil
}

// textOperator is an operator after a string.
func (r *run) textOperator(op string, x Text, b Value) (Value, bool, error) {
	switch y, isText := textOf(b); {
	case op == "%":
		v, err := r.percent(x, b)
		return v, true, err
	case op == "+" && isText:
		v, err := r.concat(x, y)
		return v, true, err
	case op != "*":
		return nil, false, nil
	}
	n, _, isInt, ok := number(b)
	if !ok || !isInt {
		return nil, false, nil
	}
	v, err := r.repeat(x, n)
	return v, true, err
}

func (r *run) repeat(t Text, n int64) (Value, error) {
	if n = max(n, 0); len(t.s) == 0 {
		return "", nil
	}
	if n > r.limits.Bytes/int64(len(t.s)) {
		n = r.limits.Bytes/int64(len(t.s)) + 1
	}
	if err := r.charge(len(t.s) * int(n)); err != nil {
		return nil, err
	}
	return t.with(strings.Repeat(t.s, int(n))).value(), nil
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
	if (op == "/" || op == "//" || op == "%") && yf == 0 || op == "**" && xf == 0 && yf < 0 {
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
	z := math.Pow(xf, yf)
	if math.IsNaN(z) && !math.IsNaN(xf) && !math.IsNaN(yf) || math.IsInf(z, 0) && !math.IsInf(xf, 0) && !math.IsInf(yf, 0) {
		return nil, errorf("%s gives no number", op)
	}
	return z, nil
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
