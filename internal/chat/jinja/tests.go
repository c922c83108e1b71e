package jinja

import (
	"math"
	"strings"
	"unicode"
)

// testTable are the tests by name.
var testTable map[string]func(*call) (bool, error)

func init() {
	is := func(f func(Value) bool) func(*call) (bool, error) {
		return func(c *call) (bool, error) { return f(c.input), nil }
	}
	order := func(op string) func(*call) (bool, error) {
		return func(c *call) (bool, error) {
			other, err := c.need(0, "other")
			if err != nil {
				return false, err
			}
			return c.r.holds(op, c.input, other)
		}
	}
	testTable = map[string]func(*call) (bool, error){
		"defined": is(func(v Value) bool { return !isUndefined(v) }), "undefined": is(isUndefined),
		"none":    is(func(v Value) bool { return v == nil }),
		"boolean": is(func(v Value) bool { _, ok := v.(bool); return ok }),
		"true":    is(func(v Value) bool { return v == true }), "false": is(func(v Value) bool { return v == false }),
		"integer": is(func(v Value) bool { _, ok := v.(int64); return ok }), "float": is(func(v Value) bool { _, ok := v.(float64); return ok }),
		"number": is(func(v Value) bool { _, _, _, ok := number(v); return ok }), "string": is(isString),
		"mapping": is(func(v Value) bool { _, ok := v.(*Dict); return ok }), "iterable": is(isIterable), "sequence": is(isSequence),
		"callable": is(func(v Value) bool { _, ok := v.(*Func); return ok }), "escaped": is(func(Value) bool { return false }),
		"lower": cased(unicode.IsLower, unicode.IsUpper), "upper": cased(unicode.IsUpper, unicode.IsLower),
		"odd": remainder(1), "even": remainder(0), "divisibleby": divisibleBy, "sameas": sameAs,
		"filter": is(func(v Value) bool { s, ok := v.(string); return ok && filterTable[s] != nil }),
		"test":   is(func(v Value) bool { s, ok := v.(string); return ok && testTable[s] != nil }),
		"in":     order("in"), "eq": order("=="), "==": order("=="), "equalto": order("=="), "ne": order("!="), "!=": order("!="),
		"lt": order("<"), "<": order("<"), "lessthan": order("<"), "le": order("<="), "<=": order("<="),
		"gt": order(">"), ">": order(">"), "greaterthan": order(">"), "ge": order(">="), ">=": order(">="),
	}
}

func (r *run) applyTest(name string, v Value, args []Value) (bool, error) {
	f := testTable[name]
	if f == nil {
		return false, errorf("No test named '%s' found.", name)
	}
	return f(r.newCall(name, v, args, nil))
}

func isUndefined(v Value) bool { _, ok := v.(Undefined); return ok }
func isString(v Value) bool    { _, ok := v.(string); return ok }

func isIterable(v Value) bool {
	switch v.(type) {
	case string, *List, *Dict, Undefined:
		return true
	}
	return false
}

func isSequence(v Value) bool { return isIterable(v) }

func cased(is, isNot func(rune) bool) func(*call) (bool, error) {
	return func(c *call) (bool, error) {
		s, err := c.inputText()
		return strings.IndexFunc(s, is) >= 0 && strings.IndexFunc(s, isNot) < 0, err
	}
}

func remainder(want int64) func(*call) (bool, error) {
	return func(c *call) (bool, error) {
		i, f, isInt, ok := number(c.input)
		switch {
		case !ok:
			return false, wrongOperand(c.name, c.input)
		case !isInt:
			return math.Abs(math.Mod(f, 2)) == float64(want), nil
		}
		return i&1 == want, nil
	}
}

func divisibleBy(c *call) (bool, error) {
	v, err := arithmetic("%", c.input, c.arg(0, "num", nil))
	return !truth(v) && err == nil, err
}

func sameAs(c *call) (bool, error) {
	other, err := c.need(0, "other")
	if err != nil {
		return false, err
	}
	if isUndefined(c.input) {
		return false, nil
	}
	return c.input == plain(other), nil // pointers and plain values: all comparable
}
