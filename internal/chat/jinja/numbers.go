package jinja

import (
	"math"
	"strconv"
	"strings"
)

// Filters about numbers.

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

func floatFilter(c *call) (Value, error) {
	if u, ok := c.input.(Undefined); ok {
		return nil, errorf("%s is undefined", u.Name)
	}
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
	if u, ok := c.input.(Undefined); ok {
		return nil, errorf("%s is undefined", u.Name)
	}
	i, f, isInt, ok := number(c.input)
	if ok && isInt {
		return i, nil
	}
	if s, text := c.input.(string); text {
		base, err := c.int(1, "base", 10)
		if err != nil || base < 0 || base > 36 {
			return nil, errorf("int takes a base up to 36")
		}
		if i, err := strconv.ParseInt(digitsOf(s, base), int(base), 64); err == nil {
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

// digitsOf takes away what Python allows around the digits of a number.
func digitsOf(s string, base int64) string {
	s = strings.TrimFunc(s, isSpace)
	sign := ""
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		sign, s = s[:1], s[1:]
	}
	for prefix, of := range map[string]int64{"0x": 16, "0o": 8, "0b": 2} {
		if base == of && len(s) > 2 && strings.EqualFold(s[:2], prefix) {
			s = strings.TrimPrefix(s[2:], "_")
		}
	}
	digits := []byte(sign)
	for i := range len(s) {
		if s[i] == '_' && i > 0 && i+1 < len(s) && s[i-1] != '_' && s[i+1] != '_' {
			continue
		}
		digits = append(digits, s[i])
	}
	return string(digits)
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
	i, _, isInt, _ := number(c.input)
	if method == "common" && isInt {
		return roundInt(i, n), nil
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

// roundInt rounds to tens, hundreds … if n is negative, halves to the even side.
func roundInt(i, n int64) int64 {
	if n >= 0 || n < -18 {
		if n < -18 {
			return 0
		}
		return i
	}
	unit := int64(1)
	for range -n {
		unit *= 10
	}
	return int64(math.RoundToEven(float64(i)/float64(unit))) * unit
}

func sum(c *call) (Value, error) {
	items, err := c.r.iterate(c.raw)
	if err != nil {
		return nil, err
	}
	attribute := c.arg(0, "attribute", nil)
	total := c.rawArg(1, "start", int64(0))
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

func extreme(sign int) func(*call) (Value, error) {
	return func(c *call) (Value, error) {
		items, err := c.r.iterate(c.raw)
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
