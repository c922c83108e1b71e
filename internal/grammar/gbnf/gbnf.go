// Package gbnf reads grammars in the notation of llama.cpp (grammars/README.md there): rules of literals,
// characters, groups, repetitions and tokens. Left recursion, which llama.cpp refuses, is allowed.
package gbnf

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// Options are what a grammar may refer to.
type Options struct {
	// Token is the id of a token by its text, such as <think>; nil: there are none.
	Token func(text string) (id int32, ok bool)
}

// Error says where a grammar is wrong.
type Error struct {
	Line, Column int // from 1; columns are characters
	Problem      string
}

func (e *Error) Error() string {
	return fmt.Sprintf("grammar: line %d, column %d: %s", e.Line, e.Column, e.Problem)
}

// maxDepth is how deep groups nest.
const maxDepth = 200

// Parse adds a grammar's rules to b and returns the rule root.
func Parse(b *cfg.Builder, text string, o Options) (cfg.Expr, error) {
	if !utf8.ValidString(text) {
		return 0, &Error{1, 1, "it is not UTF-8"}
	}
	p := &parser{b: b, text: text, o: o, rules: map[string]*rule{}}
	p.space(true)
	for p.err == nil && p.at < len(p.text) {
		p.rule()
	}
	if p.err != nil {
		return 0, p.err
	}
	for _, r := range p.rules {
		if !r.defined && (p.err == nil || r.used < p.at) {
			p.at = r.used
			p.err = nil
			p.failf("rule %q is used, but not defined", r.name)
		}
	}
	root := p.rules["root"]
	if p.err == nil && root == nil {
		p.failf("there is no rule named root")
	}
	if p.err != nil {
		return 0, p.err
	}
	return b.Ref(root.rule), b.Err()
}

type rule struct {
	name    string
	rule    cfg.Rule
	used    int // offset of the first use
	defined bool
}

type parser struct {
	b     *cfg.Builder
	text  string
	at    int
	depth int
	o     Options
	rules map[string]*rule
	err   error
}

func (p *parser) failf(format string, args ...any) {
	if p.err != nil {
		return
	}
	before := p.text[:min(p.at, len(p.text))]
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	p.err = &Error{line, column, fmt.Sprintf(format, args...)}
}

func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *parser) take(s string) bool {
	if strings.HasPrefix(p.text[p.at:], s) {
		p.at += len(s)
		return true
	}
	return false
}

// space skips blanks and comments, and line ends if they mean nothing here.
func (p *parser) space(lines bool) {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == ' ' || c == '\t' || lines && (c == '\n' || c == '\r'):
			p.at++
		case c == '#':
			for p.at < len(p.text) && p.text[p.at] != '\n' && p.text[p.at] != '\r' {
				p.at++
			}
		default:
			return
		}
	}
}

func isName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

func (p *parser) name() string {
	begin := p.at
	for p.at < len(p.text) && isName(p.text[p.at]) {
		p.at++
	}
	return p.text[begin:p.at]
}

func (p *parser) named(name string, at int) *rule {
	r := p.rules[name]
	if r == nil {
		r = &rule{name: name, rule: p.b.NewRule(name), used: at}
		p.rules[name] = r
	}
	return r
}

func (p *parser) rule() {
	begin := p.at
	name := p.name()
	if name == "" {
		p.failf("a rule's name is missing: rules are name ::= what it matches")
		return
	}
	p.space(false)
	if !p.take("::=") {
		p.failf("::= is missing after the rule's name %q", name)
		return
	}
	p.space(true)
	e := p.alternatives(false)
	r := p.named(name, begin)
	if r.defined {
		p.at = begin
		p.failf("rule %q is defined twice", name)
	}
	if p.err != nil {
		return
	}
	r.defined = true
	p.b.Define(r.rule, e)
	if p.at < len(p.text) && p.peek() != '\n' && p.peek() != '\r' {
		p.failf("a rule ends at the end of its line; %q is left", rest(p.text[p.at:]))
	}
	p.space(true)
}

// rest is the beginning of what is left, for errors.
func rest(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > 20 {
		s = strings.ToValidUTF8(s[:20], "") + "..."
	}
	return s
}

// alternatives reads sequences between bars; nested ones go on over line ends.
func (p *parser) alternatives(nested bool) cfg.Expr {
	all := []cfg.Expr{p.sequence(nested)}
	for p.err == nil && p.bar(nested) {
		p.space(true)
		all = append(all, p.sequence(nested))
	}
	return p.b.Alt(all...)
}

// bar takes a bar, also one that begins the next line.
func (p *parser) bar(nested bool) bool {
	at := p.at
	if !nested {
		p.space(true)
	}
	if p.take("|") {
		return true
	}
	p.at = at
	return false
}

func (p *parser) sequence(nested bool) cfg.Expr {
	var all []cfg.Expr
	for p.err == nil {
		e, ok := p.item()
		if !ok {
			break
		}
		p.space(nested)
		all = append(all, p.repeated(e, nested))
	}
	return p.b.Seq(all...)
}

// item is what a repetition may stand behind.
func (p *parser) item() (cfg.Expr, bool) {
	switch c := p.peek(); {
	case c == '"':
		p.at++
		return p.literal(), true
	case c == '[':
		p.at++
		return p.class(), true
	case c == '(':
		p.at++
		return p.group(), true
	case c == '.':
		p.at++
		return p.b.Runes([2]rune{0, utf8.MaxRune}), true
	case c == '<':
		return p.b.Token(p.token()), true
	case c == '!':
		return p.otherTokens(), true
	case isName(c) && !p.atRule():
		at := p.at
		return p.b.Ref(p.named(p.name(), at).rule), true
	}
	return 0, false
}

// atRule says that a name begins a rule, not that it refers to one: in a group that was not closed.
func (p *parser) atRule() bool {
	at := p.at
	defer func() { p.at = at }()
	p.name()
	p.space(false)
	return p.take("::=")
}

func (p *parser) group() cfg.Expr {
	if p.depth++; p.depth > maxDepth {
		p.failf("groups nest deeper than the limit of %d", maxDepth)
		return 0
	}
	defer func() { p.depth-- }()
	p.space(true)
	e := p.alternatives(true)
	p.space(true)
	if !p.take(")") {
		p.failf("a group's ) is missing before %q", rest(p.text[p.at:]))
	}
	return e
}

func (p *parser) repeated(e cfg.Expr, nested bool) cfg.Expr {
	for p.err == nil {
		switch p.peek() {
		case '*':
			e = p.b.Repeat(e, 0, -1)
		case '+':
			e = p.b.Repeat(e, 1, -1)
		case '?':
			e = p.b.Repeat(e, 0, 1)
		case '{':
			p.at++
			low, high := p.bounds()
			if p.err != nil {
				return 0
			}
			e = p.b.Repeat(e, low, high)
			p.space(nested)
			continue
		default:
			return e
		}
		p.at++
		p.space(nested)
	}
	return e
}

// bounds reads m}, m,} or m,n} or ,n}.
func (p *parser) bounds() (low, high int) {
	p.space(true)
	begin := p.at
	low, given := p.number()
	high = low
	p.space(true)
	if p.take(",") {
		p.space(true)
		most, ok := p.number()
		if high = -1; ok {
			high = most
		}
		given = given || ok
		p.space(true)
	}
	switch {
	case !given || !p.take("}"):
		p.failf("a repetition is {m}, {m,} or {m,n}")
	case high >= 0 && low > high:
		p.at = begin
		p.failf("a repetition of %d to %d times", low, high)
	}
	return low, high
}

// maxCount is the largest bound of a repetition.
const maxCount = 1 << 30

func (p *parser) number() (int, bool) {
	begin, n := p.at, 0
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		if n = 10*n + int(p.text[p.at]-'0'); n > maxCount {
			p.failf("a repetition's bound is over %d", maxCount)
			return 0, false
		}
		p.at++
	}
	return n, p.at > begin
}
