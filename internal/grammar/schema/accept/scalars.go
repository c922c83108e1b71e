package accept

import (
	"fmt"
	"math/big"
	"sort"
	"strconv"
	"strings"

	"github.com/spillway/spillway/internal/grammar/schema"
)

// Numbers with more are not computed with.
const (
	mostNumberText = 4096
	mostExponent   = 1100 // holds every float64
)

// A textRun follows a string through a schema's automata and choices.
type textRun struct {
	pattern, format int
	narrow          []narrowed // by choice
}

// A narrowed is the run of sorted texts that begin as the string does.
type narrowed struct{ lo, hi int }

func (c *Checker) beginText(e *eval) {
	e.text = &textRun{}
	for _, choice := range e.n.choices {
		e.text.narrow = append(e.text.narrow, narrowed{0, len(choice.texts)})
	}
	switch p := e.n.pattern; {
	case p == nil:
	case p.lazy != nil:
		c.run(p, e.n).Begin()
	case p.automaton.Empty():
		c.failPattern(e)
	}
}

func (c *Checker) failPattern(e *eval) {
	c.fail(e, "pattern", fmt.Sprintf("does not match %.80q", *e.n.s.Pattern))
}

// decoded takes the next decoded bytes of a string.
func (c *Checker) decoded(text []byte) {
	f := c.top()
	before := f.text.Len()
	f.text.Write(text)
	for _, b := range text {
		if b&0xC0 != 0x80 {
			f.chars++
		}
	}
	for _, e := range f.evals {
		if e.verdict == open && e.text != nil {
			c.runText(e, text, before)
		}
	}
}

func (c *Checker) runText(e *eval, text []byte, before int) {
	if most := e.n.s.MaxLength; most >= 0 && e.f.chars > most {
		c.fail(e, "maxLength", "has more than "+strconv.Itoa(most)+" characters")
		return
	}
	for i, choice := range e.n.choices {
		if !e.text.narrow[i].next(choice.texts, text, before) {
			c.fail(e, choice.keyword, choice.detail())
			return
		}
	}
	for _, b := range text {
		if e.n.pattern != nil && !c.runPattern(e, b) {
			c.failPattern(e)
			return
		}
		if f := e.n.format; f != nil && f.automaton != nil {
			if e.text.format = f.automaton.Next(e.text.format, b); e.text.format < 0 {
				c.failFormat(e)
				return
			}
		}
	}
}

func (c *Checker) runPattern(e *eval, b byte) bool {
	if p := e.n.pattern; p.lazy != nil {
		return c.run(p, e.n).Next(b)
	}
	e.text.pattern = e.n.pattern.automaton.Next(e.text.pattern, b)
	return e.text.pattern >= 0
}

func (c *Checker) failFormat(e *eval) { c.fail(e, "format", "is no "+e.n.format.name) }

// next keeps the texts that have these bytes at an offset.
func (n *narrowed) next(texts []string, more []byte, at int) bool {
	for i, b := range more {
		i += at
		run := texts[n.lo:n.hi]
		after := func(limit int) int {
			return sort.Search(len(run), func(k int) bool { return len(run[k]) > i && int(run[k][i]) >= limit })
		}
		lo, hi := after(int(b)), after(int(b)+1)
		n.lo, n.hi = n.lo+lo, n.lo+hi
		if n.lo == n.hi {
			return false
		}
	}
	return true
}

// endScalar checks what the end of a string, number or literal decides.
func (c *Checker) endScalar(e *eval) {
	switch e.f.kind {
	case kindString:
		c.endText(e)
	case kindNumber:
		c.endNumber(e)
	default:
		v := c.scalarValue(e.f)
		for _, choice := range e.n.choices {
			if !choice.has(v) {
				c.fail(e, choice.keyword, choice.detail())
			}
		}
	}
}

func (c *Checker) endText(e *eval) {
	text := e.f.text.String()
	for i, choice := range e.n.choices {
		if n := e.text.narrow[i]; n.lo == n.hi || choice.texts[n.lo] != text {
			c.fail(e, choice.keyword, choice.detail())
			return
		}
	}
	if e.f.chars < e.n.s.MinLength {
		c.fail(e, "minLength", fmt.Sprintf("has %d characters, fewer than %d", e.f.chars, e.n.s.MinLength))
	}
	if p := e.n.pattern; p != nil && (p.lazy != nil && !c.run(p, e.n).Accepting() || p.lazy == nil && !p.automaton.Accepting(e.text.pattern)) {
		c.failPattern(e)
	}
	if f := e.n.format; f != nil && (f.automaton != nil && !f.automaton.Accepting(e.text.format) || f.check != nil && !f.check(text)) {
		c.failFormat(e)
	}
}

func (c *Checker) endNumber(e *eval) {
	s := e.n.s
	v := c.scalarValue(e.f)
	if v == nil {
		return // refused as a whole
	}
	for _, choice := range e.n.choices {
		if !choice.has(v) {
			c.fail(e, choice.keyword, choice.detail())
			return
		}
	}
	if s.Types&schema.TypeNumber == 0 && (!v.Number.IsInt() || s.Draft == schema.Draft4 && strings.ContainsAny(v.Text, ".eE")) {
		c.fail(e, "type", "is a number, not an integer")
		return
	}
	if b := s.Minimum; b != nil {
		if order := v.Number.Cmp(b.Value); order < 0 || order == 0 && b.Exclusive {
			c.failBound(e, b, "inimum", "above", "at least")
			return
		}
	}
	if b := s.Maximum; b != nil {
		if order := v.Number.Cmp(b.Value); order > 0 || order == 0 && b.Exclusive {
			c.failBound(e, b, "aximum", "below", "at most")
			return
		}
	}
	if s.MultipleOf != nil && !new(big.Rat).Quo(v.Number, s.MultipleOf).IsInt() {
		c.fail(e, "multipleOf", "is no multiple of "+decimal(s.MultipleOf))
	}
}

func (c *Checker) failBound(e *eval, b *schema.Bound, keyword, exclusive, inclusive string) {
	keyword, relation := "m"+keyword, inclusive
	if b.Exclusive {
		relation = exclusive
		if e.n.s.Draft > schema.Draft4 {
			keyword = "exclusiveM" + keyword[1:]
		}
	}
	c.fail(e, keyword, "must be "+relation+" "+decimal(b.Value))
}

// decimal writes a number for a message.
func decimal(r *big.Rat) string {
	places, _ := r.FloatPrec()
	return r.FloatString(min(places, 20))
}

// scalarValue is the value of a frame that has ended. A number that is too long to compute with is a failure
// of the text, and nil.
func (c *Checker) scalarValue(f *frame) *schema.Value {
	if f.value != nil {
		return f.value
	}
	switch f.kind {
	case kindNull:
		f.value = &schema.Value{Kind: schema.Null}
	case kindTrue, kindFalse:
		f.value = &schema.Value{Kind: schema.Boolean, Bool: f.kind == kindTrue}
	case kindString:
		f.value = &schema.Value{Kind: schema.String, Text: f.text.String()}
	case kindNumber:
		text := f.text.String()
		r, ok := exact(text)
		if !ok {
			c.syntax("the number %.40s… is too long to compute with", text)
			return nil
		}
		f.value = &schema.Value{Kind: schema.Number, Text: text, Number: r}
	default:
		return f.keep()
	}
	return f.value
}

// exact reads a number within bounds.
func exact(text string) (*big.Rat, bool) {
	if len(text) > mostNumberText {
		return nil, false
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if strings.Trim(mantissa, "-0.") == "" {
		return new(big.Rat), true
	}
	if exponent != "" {
		if e, err := strconv.Atoi(exponent); err != nil || e > mostExponent || e < -mostExponent {
			return nil, false
		}
	}
	return new(big.Rat).SetString(text)
}
