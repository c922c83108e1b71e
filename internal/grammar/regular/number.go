package regular

import (
	"fmt"
	"math/big"
	"strings"
)

// A Range bounds numbers. A nil bound is none.
type Range struct {
	Min, Max                   *big.Rat // with finitely many decimals
	ExclusiveMin, ExclusiveMax bool
}

// mostDigits bounds the digits of a bound or a divisor.
const mostDigits = 1000

// Decimal is the language of the numbers of a range as JSON without exponent: digits, then at most fraction
// decimals, any number of them for fraction < 0. There is no -0.
func (b *Builder) Decimal(r Range, fraction int) (*DFA, error) {
	shape, err := b.decimalShape(fraction)
	if err != nil {
		return nil, err
	}
	zero := new(big.Rat)
	positive := Range{Min: r.Min, ExclusiveMin: r.ExclusiveMin, Max: r.Max, ExclusiveMax: r.ExclusiveMax}
	if r.Min != nil && r.Min.Sign() < 0 {
		positive.Min, positive.ExclusiveMin = nil, false
	}
	negative := Range{Min: zero, ExclusiveMin: true}
	if r.Max != nil && r.Max.Sign() < 0 {
		negative.Min, negative.ExclusiveMin = new(big.Rat).Neg(r.Max), r.ExclusiveMax
	}
	if r.Min != nil {
		negative.Max, negative.ExclusiveMax = new(big.Rat).Neg(r.Min), r.ExclusiveMin
	}
	p, err := b.magnitudes(shape, positive)
	if err != nil {
		return nil, err
	}
	n, err := b.magnitudes(shape, negative)
	if err != nil {
		return nil, err
	}
	return b.compileNode(either(dfaNode(p), sequence(literalNode("-"), dfaNode(n))), atStart)
}

func literalNode(text string) *node {
	n := sequence()
	for _, c := range text {
		n.subs = append(n.subs, setNode(newRunes(span{c, c})))
	}
	return n
}

// decimalShape is the language of all decimals without sign.
func (b *Builder) decimalShape(fraction int) (*DFA, error) {
	pattern := `0|[1-9][0-9]*`
	if fraction != 0 {
		most := ""
		if fraction > 0 {
			most = fmt.Sprint(fraction)
		}
		pattern = fmt.Sprintf(`(?:%s)(?:\.[0-9]{1,%s})?`, pattern, most)
	}
	return b.Regexp(pattern, false)
}

// magnitudes are the numbers of a shape, without sign, in a range.
func (b *Builder) magnitudes(shape *DFA, r Range) (d *DFA, err error) {
	d = shape
	if r.Max != nil && (r.Max.Sign() < 0 || r.Max.Sign() == 0 && r.ExclusiveMax) {
		return b.compileNode(either(), atStart)
	}
	if r.Min != nil && r.Min.Sign() >= 0 {
		if d, err = b.bound(d, r.Min, func(order int) bool { return order > 0 || order == 0 && !r.ExclusiveMin }); err != nil {
			return nil, err
		}
	}
	if r.Max != nil {
		return b.bound(d, r.Max, func(order int) bool { return order < 0 || order == 0 && !r.ExclusiveMax })
	}
	return d, nil
}

func (b *Builder) bound(d *DFA, limit *big.Rat, accept func(order int) bool) (*DFA, error) {
	c, err := comparison(limit, accept)
	if err != nil {
		return nil, err
	}
	return b.product(d, c, false)
}

// digitsOf gives the decimals of a number ≥ 0 before and behind the point, none for 0.
func digitsOf(r *big.Rat) (whole, fraction string, err error) {
	places, exact := r.FloatPrec()
	if !exact || places > mostDigits || r.Num().BitLen() > 4*mostDigits {
		return "", "", fmt.Errorf("%.40s has more than %d decimals", r.RatString(), mostDigits)
	}
	whole, fraction, _ = strings.Cut(r.FloatString(places), ".")
	return strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0"), nil
}

// The columns of the automata of numbers.
const (
	columnPoint = 10
	columnNone  = 11
)

func numberColumns() (class [256]uint8) {
	for c := range class {
		class[c] = columnNone
	}
	for digit := range 10 {
		class['0'+digit] = uint8(digit)
	}
	class['.'] = columnPoint
	return class
}

// comparison accepts the decimals without sign and zeros in front whose order to limit ≥ 0, -1, 0 or 1, is
// accepted.
func comparison(limit *big.Rat, accept func(order int) bool) (*DFA, error) {
	whole, fraction, err := digitsOf(limit)
	if err != nil {
		return nil, err
	}
	c := &comparer{d: &DFA{class: numberColumns(), columns: 12}, whole: whole, fraction: fraction, numbers: map[compared]int32{}}
	c.number(compared{})
	for i := 0; i < len(c.states); i++ {
		c.expand(c.states[i], accept)
	}
	return c.d, nil
}

// A compared is how many digits were read on a side of the point, and the order of the digits so far to
// those of the limit.
type compared struct {
	read     int
	order    int
	fraction bool
}

type comparer struct {
	d               *DFA
	whole, fraction string
	numbers         map[compared]int32
	states          []compared
}

func (c *comparer) number(s compared) int32 {
	n, ok := c.numbers[s]
	if !ok {
		n = int32(len(c.states))
		c.numbers[s] = n
		c.states = append(c.states, s)
	}
	return n
}

func (c *comparer) expand(s compared, accept func(int) bool) {
	c.d.accept = append(c.d.accept, accept(c.order(s)))
	for digit := range 10 {
		c.d.next = append(c.d.next, c.number(c.after(s, digit)))
	}
	point := int32(dead)
	if !s.fraction {
		point = c.number(compared{order: c.wholeOrder(s), fraction: true})
	}
	c.d.next = append(c.d.next, point, dead)
}

// after reads a digit. A single 0 before the point counts as no digit.
func (c *comparer) after(s compared, digit int) compared {
	against := c.whole
	if s.fraction {
		against = c.fraction
	} else if s.read == 0 && digit == 0 {
		return s
	}
	limit := 0
	if s.read < len(against) {
		limit = int(against[s.read] - '0')
	} else if !s.fraction {
		return compared{read: len(against) + 1, order: 1}
	}
	if s.order == 0 && digit != limit {
		s.order = 1
		if digit < limit {
			s.order = -1
		}
	}
	s.read = min(s.read+1, len(against))
	return s
}

// wholeOrder is the order of the digits before the point as a whole number.
func (c *comparer) wholeOrder(s compared) int {
	switch {
	case s.read < len(c.whole):
		return -1
	case s.read > len(c.whole):
		return 1
	}
	return s.order
}

// order is the order of the number if it ends here.
func (c *comparer) order(s compared) int {
	if !s.fraction {
		if order := c.wholeOrder(s); order != 0 || c.fraction == "" {
			return order
		}
		return -1
	}
	if s.order == 0 && s.read < len(c.fraction) {
		return -1
	}
	return s.order
}

// MultipleOf is the language of the decimals, with a sign or not, that are whole multiples of a number > 0.
func (b *Builder) MultipleOf(of *big.Rat) (*DFA, error) {
	if of.Sign() <= 0 {
		return nil, fmt.Errorf("%s is no number above 0", of.RatString())
	}
	places, exact := of.FloatPrec()
	if !exact || places > mostDigits {
		return nil, fmt.Errorf("%.40s has more than %d decimals", of.RatString(), mostDigits)
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)
	scaled := new(big.Rat).Mul(of, new(big.Rat).SetInt(scale)).Num()
	if !scaled.IsInt64() || scaled.Int64() > int64(b.limits.States) {
		return nil, &LimitError{"states", b.limits.States}
	}
	return b.multiples(int(scaled.Int64()), places)
}

// multiples are the decimals that are multiples of modulus·10^-places: without the point, with places
// decimals, their remainder is 0. States: remainder·(places+2) + decimals read + 1, or 0 before the point;
// one more before the sign.
func (b *Builder) multiples(modulus, places int) (*DFA, error) {
	per := places + 2
	states := modulus*per + 1
	if err := b.room(states, 12); err != nil {
		return nil, err
	}
	if err := b.step(states * 12); err != nil {
		return nil, err
	}
	d := &DFA{class: numberColumns(), columns: 13, accept: make([]bool, states)}
	d.class['-'] = columnNone + 1
	shift := make([]int, per) // 10^(decimals that are missing) modulo modulus
	shift[places+1] = 1 % modulus
	for i := places; i > 0; i-- {
		shift[i] = shift[i+1] * 10 % modulus
	}
	shift[0] = shift[1]
	row := func(remainder, read int, minus int32) {
		for digit := range 10 {
			d.next = append(d.next, multipleAfter(remainder, read, digit, modulus, places))
		}
		point := int32(dead)
		if read == 0 {
			point = int32(1 + remainder*per + 1)
		}
		d.next = append(d.next, point, dead, minus)
	}
	row(0, 0, 1)
	for remainder := range modulus {
		for read := range per {
			row(remainder, read, dead)
			d.accept[1+remainder*per+read] = remainder*shift[read]%modulus == 0
		}
	}
	d.accept[0] = d.accept[1]
	return b.minimise(d)
}

// multipleAfter is the state after one more digit, read being 0 before the point, else 1 + decimals read.
func multipleAfter(remainder, read, digit, modulus, places int) int32 {
	if read == places+1 { // only zeros may follow
		if digit != 0 {
			return dead
		}
		return int32(1 + remainder*(places+2) + read)
	}
	if read > 0 {
		read++
	}
	return int32(1 + (remainder*10+digit)%modulus*(places+2) + read)
}
