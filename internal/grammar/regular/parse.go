package regular

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A SyntaxError says what of a regular expression is wrong, or cannot be an automaton, and where.
type SyntaxError struct {
	Pattern string
	Offset  int // in bytes
	Message string
	Refused bool // it is a regular expression, but one that no automaton can match
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("regular expression %.60q: at byte %d: %s", e.Pattern, e.Offset, e.Message)
}

const (
	mostNesting = 200
	mostRepeat  = 1 << 20
	mostNames   = 1000 // of groups
)

// A parser reads ECMA-262 regular expressions, edition 2025, with the flag u. From its annex B it takes
// what schemas are full of: escapes of punctuation, and { } ] that stand for themselves.
type parser struct {
	ecma    bool // nothing of other languages
	pattern string
	at      int
	depth   int
	groups  int  // all capturing groups of the pattern
	fold    bool // (?i:
	dotAll  bool // (?s:
	names   []string
}

func parse(pattern string) (*node, error) { return (&parser{pattern: pattern}).parse() }

// parse reads the pattern. Panics of type *SyntaxError stay inside.
func (p *parser) parse() (n *node, err error) {
	defer func() {
		if r := recover(); r != nil {
			syntax, ok := r.(*SyntaxError)
			if !ok {
				panic(r)
			}
			n, err = nil, syntax
		}
	}()
	if i := invalidUTF8(p.pattern); i >= 0 {
		p.fail(i, "no valid UTF-8")
	}
	n = p.alternatives()
	if p.at < len(p.pattern) {
		p.fail(p.at, ") without (")
	}
	return n, nil
}

func invalidUTF8(s string) int {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return i
		}
	}
	return -1
}

func (p *parser) fail(at int, format string, args ...any) {
	panic(&SyntaxError{Pattern: p.pattern, Offset: at, Message: fmt.Sprintf(format, args...)})
}

// rest is what was not read yet.
func (p *parser) rest() string { return p.pattern[p.at:] }

// take reads text if it comes next.
func (p *parser) take(text string) bool {
	if !strings.HasPrefix(p.rest(), text) {
		return false
	}
	p.at += len(text)
	return true
}

// char reads one character; the pattern must not be at its end.
func (p *parser) char() rune {
	r, n := utf8.DecodeRuneInString(p.rest())
	p.at += n
	return r
}

func (p *parser) alternatives() *node {
	p.depth++
	if p.depth > mostNesting {
		p.fail(p.at, "groups nest more than %d deep", mostNesting)
	}
	outer := slices.Clip(p.names)
	subs := []*node{p.alternative()}
	for p.take("|") { // alternatives may have groups of the same name
		others := p.names
		p.names = outer
		subs = append(subs, p.alternative())
		p.names = append(others, p.names[len(outer):]...)
	}
	p.depth--
	if len(subs) == 1 {
		return subs[0]
	}
	return either(subs...)
}

func (p *parser) alternative() *node {
	var subs []*node
	for p.at < len(p.pattern) && p.pattern[p.at] != '|' && p.pattern[p.at] != ')' {
		at := p.at
		n := p.term()
		n.at = at
		subs = append(subs, p.quantified(n))
	}
	return sequence(subs...)
}

// term reads what a quantifier may follow.
func (p *parser) term() *node {
	switch c := p.char(); c {
	case '^':
		return &node{kind: kindStart}
	case '$':
		return &node{kind: kindEnd}
	case '(':
		return p.group()
	case '[':
		return setNode(p.class())
	case '.':
		if p.dotAll {
			return setNode(allRunes)
		}
		return setNode(lineEnds.not())
	case '\\':
		return p.escape()
	case '*', '+', '?':
		p.fail(p.at-1, "%c repeats nothing", c)
		return nil
	case '{':
		p.at--
		if _, _, ok := p.braces(); ok {
			p.fail(p.at, "{…} repeats nothing")
		}
		p.at++
		return p.single('{')
	default:
		return p.single(c)
	}
}

// single is the language of one character.
func (p *parser) single(c rune) *node { return setNode(p.folded(newRunes(span{c, c}))) }

func (p *parser) folded(r runes) runes {
	if p.fold {
		return r.fold()
	}
	return r
}

// quantified reads a quantifier, if one comes. Lazy ones have the same language.
func (p *parser) quantified(n *node) *node {
	at := p.at
	least, most, ok := p.quantifier()
	if !ok {
		return n
	}
	switch n.kind {
	case kindStart, kindEnd, kindBoundary, kindNotBoundary, kindBehind:
		p.fail(at, "a quantifier repeats nothing that has characters")
	}
	p.take("?")
	r := repeat(n, least, most)
	r.at = n.at
	return r
}

func (p *parser) quantifier() (least, most int, ok bool) {
	switch {
	case p.take("*"):
		return 0, -1, true
	case p.take("+"):
		return 1, -1, true
	case p.take("?"):
		return 0, 1, true
	}
	at := p.at
	least, most, ok = p.braces()
	if ok && most >= 0 && least > most {
		p.fail(at, "{%d,%d}: the least is more than the most", least, most)
	}
	return least, most, ok
}

// braces reads {n}, {n,} or {n,m}; anything else stands for itself and stays.
func (p *parser) braces() (least, most int, ok bool) {
	start := p.at
	if !p.take("{") {
		return 0, 0, false
	}
	least, ok = p.number()
	most = least
	if ok && p.take(",") {
		most = -1
		if n, bounded := p.number(); bounded {
			most = n
		}
	}
	if !ok || !p.take("}") {
		p.at = start
		return 0, 0, false
	}
	if least > mostRepeat || most > mostRepeat {
		p.fail(start, "repeats more than %d times", mostRepeat)
	}
	return least, most, true
}

// number reads decimal digits; what is larger than any limit stays just above it.
func (p *parser) number() (n int, ok bool) {
	for p.at < len(p.pattern) && p.pattern[p.at] >= '0' && p.pattern[p.at] <= '9' {
		n, ok = min(n*10+int(p.pattern[p.at]-'0'), mostRepeat+1), true
		p.at++
	}
	return n, ok
}

// group reads what stands behind a parenthesis.
func (p *parser) group() *node {
	at := p.at - 1
	n := &node{kind: kindAhead, at: at}
	switch {
	case !p.take("?"):
		p.groups++
		return p.inside(at)
	case p.take(":"):
		return p.inside(at)
	case p.take("="):
	case p.take("!"):
		n.negative = true
	case p.take("<="), p.take("<!"):
		n.kind = kindBehind
	case p.take("<"), !p.ecma && p.take("P<"): // (?P<: of Python, meant the same
		p.name(at)
		p.groups++
		return p.inside(at)
	default:
		return p.modified(at)
	}
	n.subs = []*node{p.inside(at)}
	return n
}

// inside reads the alternatives of a group and its end.
func (p *parser) inside(at int) *node {
	n := p.alternatives()
	if !p.take(")") {
		p.fail(at, "( without )")
	}
	return n
}

func (p *parser) name(at int) {
	name, _, ok := strings.Cut(p.rest(), ">")
	if !ok || name == "" || !isName(name) {
		p.fail(at, "a group's name must be letters, digits, _ or $ up to a >")
	}
	if slices.Contains(p.names, name) {
		p.fail(at, "two groups are named %.30q", name)
	}
	if len(p.names) >= mostNames {
		p.fail(at, "more than %d groups have names", mostNames)
	}
	p.names = append(p.names, name)
	p.at += len(name) + 1
}

func isName(name string) bool {
	for i, r := range name {
		digit := r >= '0' && r <= '9'
		if !(digit && i > 0) && r < 0x80 && r != '_' && r != '$' && !(r >= 'a' && r <= 'z') && !(r >= 'A' && r <= 'Z') {
			return false
		}
	}
	return true
}

// modified reads (?ims-ims: … ).
func (p *parser) modified(at int) *node {
	fold, dotAll := p.fold, p.dotAll
	on := true
	for {
		switch {
		case p.take("i"):
			p.fold = on
		case p.take("s"):
			p.dotAll = on
		case on && p.take("-"):
			on = false
		case p.take(":"):
			n := p.inside(at)
			p.fold, p.dotAll = fold, dotAll
			return n
		case p.take("m"):
			p.fail(at, "the modifier m, for which ^ and $ match at lines, is not supported")
		default:
			p.fail(at, "(? must be followed by : = ! <name>, i: or s:")
		}
	}
}
