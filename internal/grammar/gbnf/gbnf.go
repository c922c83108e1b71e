// Package gbnf reads grammars in the notation of llama.cpp (grammars/README.md there): rules of literals,
// characters, groups, repetitions and tokens. Left recursion, which llama.cpp refuses, is allowed.
package gbnf

import (
	"unicode/utf8"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/notation"
)

// Parse adds a grammar's rules to b and returns the rule root.
func Parse(b *cfg.Builder, text string, tokens notation.Lookup) (cfg.Expr, error) {
	p := &parser{notation.New(b, text, tokens)}
	p.space(true)
	for p.Err == nil && p.At < len(p.Text) {
		p.rule()
	}
	p.Resolve(func(*notation.Name) bool { return false })
	root := p.Root("root")
	if p.Err != nil {
		return 0, p.Err
	}
	return root, b.Err()
}

type parser struct{ notation.Reader }

// space skips blanks and comments, and line ends if they mean nothing here.
func (p *parser) space(lines bool) {
	for p.At < len(p.Text) {
		switch c := p.Text[p.At]; {
		case c == ' ' || c == '\t' || lines && (c == '\n' || c == '\r'):
			p.At++
		case c == '#':
			p.While(func(c byte) bool { return c != '\n' && c != '\r' })
		default:
			return
		}
	}
}

func isName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

func (p *parser) name() string { return p.While(isName) }

func (p *parser) rule() {
	begin := p.At
	name := p.name()
	if name == "" {
		p.Failf("a rule's name is missing: rules are name ::= what it matches")
		return
	}
	p.space(false)
	if !p.Take("::=") {
		p.Failf("::= is missing after the rule's name %q", name)
		return
	}
	p.space(true)
	e := p.alternatives(false)
	if p.Err != nil {
		return
	}
	p.Define(name, begin, e)
	if p.At < len(p.Text) && p.Peek() != '\n' && p.Peek() != '\r' {
		p.Failf("a rule ends at the end of its line; %q is left", p.Rest())
	}
	p.space(true)
}

// alternatives reads sequences between bars; nested ones go on over line ends.
func (p *parser) alternatives(nested bool) cfg.Expr {
	all := []cfg.Expr{p.sequence(nested)}
	for p.Err == nil && p.bar(nested) {
		p.space(true)
		all = append(all, p.sequence(nested))
	}
	return p.B.Alt(all...)
}

// bar takes a bar, also one that begins the next line.
func (p *parser) bar(nested bool) bool {
	at := p.At
	if !nested {
		p.space(true)
	}
	if p.Take("|") {
		return true
	}
	p.At = at
	return false
}

func (p *parser) sequence(nested bool) cfg.Expr {
	var all []cfg.Expr
	for p.Err == nil {
		e, ok := p.item()
		if !ok {
			break
		}
		p.space(nested)
		all = append(all, p.repeated(e, nested))
	}
	return p.B.Seq(all...)
}

// item is what a repetition may stand behind.
func (p *parser) item() (cfg.Expr, bool) {
	switch c := p.Peek(); {
	case c == '"':
		p.At++
		return p.literal(), true
	case c == '[':
		p.At++
		return p.class(), true
	case c == '(':
		p.At++
		return p.Nested(p.group), true
	case c == '.':
		p.At++
		return p.B.Runes([2]rune{0, utf8.MaxRune}), true
	case c == '<':
		return p.B.Token(p.Token()), true
	case c == '!':
		return p.otherTokens(), true
	case isName(c) && !p.atRule():
		at := p.At
		return p.B.Ref(p.Named(p.name(), at).Rule), true
	}
	return 0, false
}

// atRule says that a name begins a rule, not that it refers to one: in a group that was not closed.
func (p *parser) atRule() bool {
	at := p.At
	defer func() { p.At = at }()
	p.name()
	p.space(false)
	return p.Take("::=")
}

func (p *parser) group() cfg.Expr {
	p.space(true)
	e := p.alternatives(true)
	p.space(true)
	if !p.Take(")") {
		p.Failf("a group's ) is missing before %q", p.Rest())
	}
	return e
}

func (p *parser) repeated(e cfg.Expr, nested bool) cfg.Expr {
	for again := true; again && p.Err == nil; {
		if e, again = p.Often(e); !again && p.Take("{") {
			at, low, high := p.bounds()
			e, again = p.Repeat(e, at, low, high), true
		}
		p.space(nested)
	}
	return e
}

// bounds reads what is behind the { of a repetition.
func (p *parser) bounds() (at, low, high int) {
	at = p.At
	low, high, ok := p.Bounds(func() { p.space(true) })
	if !ok {
		p.Failf("a repetition is {m}, {m,} or {m,n}")
	}
	return at, low, high
}
