// Package lark reads grammars in the notation of Lark, as far as llguidance and vLLM accept it: rules,
// terminals, strings, ranges, regular expressions, repetitions, %ignore and %import of Lark's common
// terminals. A text is accepted if it is in the context-free language: terminals are not cut out greedily
// before rules are tried, as by Lark's dynamic lexer. Priorities and aliases, which choose and name parses,
// change nothing about that.
package lark

import (
	"strings"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/notation"
	"github.com/spillway/spillway/internal/grammar/regular"
)

// Options are what a grammar may refer to.
type Options struct {
	Tokens notation.Lookup
	// JSON is the instances of a JSON Schema, for %json; nil: there is none.
	JSON func(b *cfg.Builder, schema string) (cfg.Expr, error)
	// Regular bounds the automata of regular expressions.
	Regular regular.Limits
}

// Parse adds a grammar's rules to b and returns the rule start.
func Parse(b *cfg.Builder, text string, o Options) (cfg.Expr, error) {
	p := &parser{Reader: notation.New(b, text, o.Tokens), o: o, words: regular.NewBuilder(o.Regular)}
	p.skip = b.NewRule("%ignore")
	for p.space(true); p.Err == nil && p.At < len(p.Text); p.space(true) {
		p.statement()
	}
	b.Define(p.skip, b.Repeat(b.Alt(p.ignored...), 0, -1))
	p.Resolve(p.unimported)
	start := p.Root("start")
	if p.Err != nil {
		return 0, p.Err
	}
	return b.Seq(b.Ref(p.skip), start), b.Err()
}

type parser struct {
	notation.Reader
	o       Options
	words   *regular.Builder
	ignored []cfg.Expr
	skip    cfg.Rule // any of what is ignored
	inRule  bool     // terminals are followed by what is ignored
}

// isTerminal says whether a name is a terminal's: its letters are upper case.
func isTerminal(name string) bool {
	name = strings.TrimLeft(name, "_")
	return name != "" && name[0] >= 'A' && name[0] <= 'Z'
}

func (p *parser) statement() {
	if p.Take("%") {
		p.directive()
		return
	}
	begin := p.At
	for p.Take("?") || p.Take("!") {
	}
	name := p.name()
	if name == "" {
		p.Failf("a rule, a terminal or a directive is expected, not %q", p.Rest())
		return
	}
	switch p.Peek() {
	case '{':
		p.Failf("templates (%s{...}) are not supported", name)
	case '[':
		p.Failf("attributes (%s[...]) are not supported", name)
	}
	if p.Take(".") { // a priority
		p.Take("-")
		if _, ok := p.Number(); !ok {
			p.Failf("a priority is a number")
		}
	}
	p.space(false)
	if !p.Take(":") {
		p.Failf(": is missing after the name %q", name)
		return
	}
	e := p.body(!isTerminal(name))
	p.Define(name, begin, e)
}

// body reads the right side of a definition.
func (p *parser) body(inRule bool) cfg.Expr {
	p.inRule = inRule
	e := p.alternatives(false)
	p.space(false)
	if p.Err == nil && p.At < len(p.Text) && p.Peek() != '\n' {
		p.Failf("a definition ends at the end of its line; %q is left", p.Rest())
	}
	return e
}

func (p *parser) directive() {
	begin := p.At - 1
	switch name := p.name(); name {
	case "ignore":
		p.ignored = append(p.ignored, p.body(false))
	case "import":
		p.importLine()
	case "llguidance":
		if p.space(false); !p.Take("{}") {
			p.Failf("options of %%llguidance are not supported; it can be {}")
		}
	default:
		p.FailAt(begin, "%%%s is not supported here; there are %%ignore and %%import", name)
	}
}

// alternatives reads sequences between bars; a bar may begin a line.
func (p *parser) alternatives(nested bool) cfg.Expr {
	all := []cfg.Expr{p.sequence(nested)}
	for p.Err == nil {
		at := p.At
		p.space(true)
		if !p.Take("|") {
			p.At = at
			break
		}
		all = append(all, p.sequence(nested))
	}
	return p.B.Alt(all...)
}

func (p *parser) sequence(nested bool) cfg.Expr {
	var all []cfg.Expr
	for p.Err == nil {
		p.space(nested)
		if p.Take("->") {
			p.space(nested)
			if p.name() == "" {
				p.Failf("a name is missing after ->")
			}
			break
		}
		e, ok := p.atom()
		if !ok {
			break
		}
		all = append(all, p.repeated(e))
	}
	return p.B.Seq(all...)
}

func (p *parser) group(shut string) cfg.Expr {
	return p.Nested(func() cfg.Expr {
		e := p.alternatives(true)
		if p.space(true); !p.Take(shut) {
			p.Failf("%s is missing before %q", shut, p.Rest())
		}
		return e
	})
}

func (p *parser) repeated(e cfg.Expr) cfg.Expr {
	if e, ok := p.Often(e); ok {
		return e
	}
	begin := p.At
	space := func() { p.space(false) }
	var low, high int
	var ok bool
	space()
	switch {
	case p.Take("~"):
		space()
		low, ok = p.Number()
		high = low
		if space(); p.Take("..") {
			space()
			high, ok = p.Number()
		}
	case p.Take("{"):
		low, high, ok = p.Bounds(space)
	default:
		p.At = begin
		return e
	}
	if !ok {
		p.Failf("a repetition is ~m, ~m..n, {m}, {m,} or {m,n}")
	}
	return p.Repeat(e, begin, low, high)
}
