package schema

import (
	"math/big"

	"github.com/spillway/spillway/internal/grammar/regular"
)

// numberForm is numbers between two bounds that are multiples of one number and not of others.
type numberForm struct {
	s       *Schema // one of those that say so, nil: none
	lo, hi  *Bound
	step    *big.Rat
	off     []*big.Rat
	exclude []*Value
}

// maxListed bounds the numbers of a range that are written out one by one.
const maxListed = 64

func (c *compiler) finishNumber(x *alt) (*numberForm, error) {
	n := &numberForm{exclude: x.exclude}
	for _, p := range x.numbers {
		if n.s == nil || p.step != nil && p.step != one {
			n.s = p.s
		}
		n.lo = stricter(n.lo, p.min, 1)
		n.hi = stricter(n.hi, p.max, -1)
		switch {
		case p.step == nil:
		case p.off:
			n.off = append(n.off, p.step)
		case n.step == nil:
			n.step = p.step
		default:
			n.step = commonMultiple(n.step, p.step)
		}
	}
	if n.lo != nil && n.hi != nil {
		order := n.lo.Value.Cmp(n.hi.Value)
		if order > 0 || order == 0 && (n.lo.Exclusive || n.hi.Exclusive) {
			return nil, nil
		}
	}
	if list, all := n.list(); all && len(list) == 0 {
		return nil, nil
	}
	return n, nil
}

// stricter is the bound that lets less through; sign is 1 for lower bounds, -1 for upper ones.
func stricter(a, b *Bound, sign int) *Bound {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	order := a.Value.Cmp(b.Value) * sign
	if order > 0 || order == 0 && a.Exclusive {
		return a
	}
	return b
}

// commonMultiple is the least common multiple of two fractions.
func commonMultiple(a, b *big.Rat) *big.Rat {
	gcd := new(big.Int).GCD(nil, nil, a.Num(), b.Num())
	num := new(big.Int).Mul(new(big.Int).Quo(a.Num(), gcd), b.Num())
	den := new(big.Int).GCD(nil, nil, a.Denom(), b.Denom())
	return new(big.Rat).SetFrac(num, den)
}

// contains says whether a number is in the bounds, a multiple, and not excluded.
func (n *numberForm) contains(v *big.Rat) bool {
	if n.lo != nil {
		if order := v.Cmp(n.lo.Value); order < 0 || order == 0 && n.lo.Exclusive {
			return false
		}
	}
	if n.hi != nil {
		if order := v.Cmp(n.hi.Value); order > 0 || order == 0 && n.hi.Exclusive {
			return false
		}
	}
	if n.step != nil && !isMultiple(v, n.step) {
		return false
	}
	for _, off := range n.off {
		if isMultiple(v, off) {
			return false
		}
	}
	for _, e := range n.exclude {
		if e.Number.Cmp(v) == 0 {
			return false
		}
	}
	return true
}

func isMultiple(v, of *big.Rat) bool { return new(big.Rat).Quo(v, of).IsInt() }

// list has the numbers, if they are few.
func (n *numberForm) list() (list []*Value, all bool) {
	if n.lo == nil || n.hi == nil {
		return nil, false
	}
	step := n.step
	if step == nil {
		if n.lo.Value.Cmp(n.hi.Value) != 0 {
			return nil, false
		}
		step = one
		if n.lo.Value.Sign() != 0 {
			step = new(big.Rat).Abs(n.lo.Value)
		}
	}
	first := ceil(new(big.Rat).Quo(n.lo.Value, step))
	last := new(big.Rat).Quo(n.hi.Value, step)
	if new(big.Rat).Sub(last, first).Cmp(big.NewRat(maxListed, 1)) > 0 {
		return nil, false
	}
	for i := first; i.Cmp(last) <= 0; i = new(big.Rat).Add(i, one) {
		if v := new(big.Rat).Mul(i, step); n.contains(v) {
			list = append(list, &Value{Kind: Number, Text: decimal(v), Number: v})
		}
	}
	return list, true
}

// ceil is the next integer from v on.
func ceil(v *big.Rat) *big.Rat {
	q := new(big.Int).Neg(v.Num())
	q.Div(q, v.Denom()) // Euclid: rounds down for the positive denominator
	return new(big.Rat).SetInt(q.Neg(q))
}

// decimal spells a number that has finitely many decimals.
func decimal(v *big.Rat) string {
	places, _ := v.FloatPrec()
	return v.FloatString(places)
}

// Numbers without a bound have so many digits before the point and behind it at most: models are tempted to go
// on with digits for ever.
const mostDigits = 16

// tooLarge is from where on a number has more digits, and farBound from where on bounds are left as they are.
var (
	tooLarge = new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(mostDigits), nil))
	farBound = new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(mostDigits-1), nil))
)

// sized is the bounds, and how many decimals there are (-1: any number), with those that the schema does not give.
func (n *numberForm) sized() (r regular.Range, fraction int) {
	r, fraction = n.bounds(), mostDigits
	if n.step != nil {
		fraction, _ = n.step.FloatPrec()
	}
	for _, b := range []*big.Rat{r.Min, r.Max} {
		if b == nil {
			continue
		}
		if places, _ := b.FloatPrec(); n.step == nil && places > mostDigits/2 {
			fraction = -1
		}
	}
	if n.hi == nil && (n.lo == nil || n.lo.Value.Cmp(farBound) < 0) {
		r.Max, r.ExclusiveMax = tooLarge, true
	}
	if n.lo == nil && (n.hi == nil || n.hi.Value.Cmp(new(big.Rat).Neg(farBound)) > 0) {
		r.Min, r.ExclusiveMin = new(big.Rat).Neg(tooLarge), true
	}
	return r, fraction
}

// language is the numbers as JSON without exponent.
func (n *numberForm) language(b *regular.Builder) (*regular.DFA, error) {
	d, err := b.Decimal(n.sized())
	if err != nil {
		return nil, err
	}
	if n.step != nil && n.step.Cmp(one) != 0 {
		m, err := b.MultipleOf(n.step)
		if err != nil {
			return nil, err
		}
		if d, err = b.Intersect(d, m); err != nil {
			return nil, err
		}
	}
	for _, off := range n.off {
		m, err := b.MultipleOf(off)
		if err != nil {
			return nil, err
		}
		if d, err = b.Difference(d, m); err != nil {
			return nil, err
		}
	}
	for _, e := range n.exclude {
		same, err := b.Decimal(regular.Range{Min: e.Number, Max: e.Number}, -1)
		if err != nil {
			return nil, err
		}
		if d, err = b.Difference(d, same); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (n *numberForm) bounds() regular.Range {
	var r regular.Range
	if n.lo != nil {
		r.Min, r.ExclusiveMin = n.lo.Value, n.lo.Exclusive
	}
	if n.hi != nil {
		r.Max, r.ExclusiveMax = n.hi.Value, n.hi.Exclusive
	}
	return r
}
