package notation

import "github.com/spillway/spillway/internal/grammar/cfg"

// Name is of a rule or a terminal, which may be used before it is defined.
type Name struct {
	Text    string
	Rule    cfg.Rule
	Used    int // offset of the first use
	Defined bool
}

// Named is a name that stands at an offset.
func (r *Reader) Named(text string, at int) *Name {
	n := r.names[text]
	if n == nil {
		n = &Name{Text: text, Rule: r.B.NewRule(text), Used: at}
		r.names[text] = n
		r.order = append(r.order, n)
	}
	return n
}

// Define gives a name, which stands at an offset, its meaning.
func (r *Reader) Define(text string, at int, e cfg.Expr) {
	n := r.Named(text, at)
	if n.Defined {
		r.FailAt(at, "%s is defined twice", text)
		return
	}
	n.Defined = true
	r.B.Define(n.Rule, e)
}

// Resolve finds a name that is used and not defined; missing may define it, or more names, and says whether it did.
func (r *Reader) Resolve(missing func(*Name) bool) {
	for i := 0; i < len(r.order) && r.Err == nil; i++ {
		if n := r.order[i]; !n.Defined && !missing(n) {
			r.FailAt(n.Used, "%s is used, but not defined", n.Text)
		}
	}
}

// Root is the rule that a grammar begins with.
func (r *Reader) Root(text string) cfg.Expr {
	n := r.names[text]
	if n == nil || !n.Defined {
		r.Failf("there is no rule named %s", text)
		return 0
	}
	return r.B.Ref(n.Rule)
}

// Nested reads what is within a group, unless that is too deep.
func (r *Reader) Nested(group func() cfg.Expr) cfg.Expr {
	if r.depth++; r.depth > maxDepth {
		r.Failf("groups nest deeper than the limit of %d", maxDepth)
		return 0
	}
	defer func() { r.depth-- }()
	return group()
}

// Often repeats an expression if *, + or ? is next.
func (r *Reader) Often(e cfg.Expr) (cfg.Expr, bool) {
	switch r.Peek() {
	case '*':
		e = r.B.Repeat(e, 0, -1)
	case '+':
		e = r.B.Repeat(e, 1, -1)
	case '?':
		e = r.B.Repeat(e, 0, 1)
	default:
		return e, false
	}
	r.At++
	return e, true
}

// Bounds reads m}, m,} m,n} or ,n}, in which space goes over what means nothing; high < 0: no bound.
func (r *Reader) Bounds(space func()) (low, high int, ok bool) {
	space()
	low, ok = r.Number()
	high = low
	if space(); r.Take(",") {
		space()
		most, given := r.Number()
		if high = -1; given {
			high = most
		}
		ok = ok || given
		space()
	}
	return low, high, r.Take("}") && ok
}

// Repeat is an expression low to high times, as it stands at an offset.
func (r *Reader) Repeat(e cfg.Expr, at, low, high int) cfg.Expr {
	if high >= 0 && low > high {
		r.FailAt(at, "a repetition of %d to %d times", low, high)
		return 0
	}
	return r.B.Repeat(e, low, high)
}
