// Package lark reads grammars in the notation of Lark, as far as llguidance and vLLM accept it: rules,
// terminals, strings, ranges, regular expressions, repetitions, %ignore and %import of Lark's common
// terminals. A text is accepted if it is in the context-free language: terminals are not cut out greedily
// before rules are tried, as by Lark's dynamic lexer. Priorities and aliases, which choose and name parses,
// change nothing about that.
package lark

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/regular"
)

// Options are what a grammar may refer to.
type Options struct {
	// Token is the id of a token by its text, such as <think>; nil: there are none.
	Token func(text string) (id int32, ok bool)
	// JSON is the instances of a JSON Schema, for %json; nil: there is none.
	JSON func(b *cfg.Builder, schema string) (cfg.Expr, error)
	// Regular bounds the automata of regular expressions.
	Regular regular.Limits
}

// Error says where a grammar is wrong.
type Error struct {
	Line, Column int // from 1; columns are characters
	Problem      string
	cause        error
}

func (e *Error) Error() string {
	return fmt.Sprintf("grammar: line %d, column %d: %s", e.Line, e.Column, e.Problem)
}

func (e *Error) Unwrap() error { return e.cause }

// maxDepth is how deep groups nest.
const maxDepth = 200

// Parse adds a grammar's rules to b and returns the rule start.
func Parse(b *cfg.Builder, text string, o Options) (cfg.Expr, error) {
	if !utf8.ValidString(text) {
		return 0, &Error{1, 1, "it is not UTF-8", nil}
	}
	p := &parser{b: b, text: text, o: o, names: map[string]*named{}, words: regular.NewBuilder(o.Regular)}
	p.skip = b.NewRule("%ignore")
	for p.space(true); p.err == nil && p.at < len(p.text); p.space(true) {
		p.statement()
	}
	b.Define(p.skip, b.Repeat(b.Alt(p.ignored...), 0, -1))
	if p.err == nil {
		p.imports()
	}
	start := p.names["start"]
	if p.err == nil && (start == nil || !start.defined) {
		p.failf("there is no rule named start")
	}
	if p.err != nil {
		return 0, p.err
	}
	return b.Seq(b.Ref(p.skip), b.Ref(start.rule)), b.Err()
}

// named is a rule or a terminal.
type named struct {
	rule    cfg.Rule
	used    int // offset of the first use
	defined bool
}

type parser struct {
	b       *cfg.Builder
	text    string
	at      int
	depth   int
	o       Options
	words   *regular.Builder
	names   map[string]*named
	order   []string
	ignored []cfg.Expr
	skip    cfg.Rule // any of what is ignored
	inRule  bool     // terminals are followed by what is ignored
	err     error
}

func (p *parser) failf(format string, args ...any) {
	if p.err != nil {
		return
	}
	err := fmt.Errorf(format, args...)
	before := p.text[:min(p.at, len(p.text))]
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	p.err = &Error{line, column, err.Error(), errors.Unwrap(err)}
}

func (p *parser) named(name string, at int) *named {
	n := p.names[name]
	if n == nil {
		n = &named{rule: p.b.NewRule(name), used: at}
		p.names[name] = n
		p.order = append(p.order, name)
	}
	return n
}

// isTerminal says whether a name is a terminal's: its letters are upper case.
func isTerminal(name string) bool {
	name = strings.TrimLeft(name, "_")
	return name != "" && name[0] >= 'A' && name[0] <= 'Z'
}

func (p *parser) statement() {
	if p.take("%") {
		p.directive()
		return
	}
	begin := p.at
	for p.take("?") || p.take("!") {
	}
	name := p.name()
	if name == "" {
		p.failf("a rule, a terminal or a directive is expected, not %q", rest(p.text[p.at:]))
		return
	}
	switch p.peek() {
	case '{':
		p.failf("templates (%s{...}) are not supported", name)
	case '[':
		p.failf("attributes (%s[...]) are not supported", name)
	}
	if p.take(".") { // a priority
		p.take("-")
		if _, ok := p.number(); !ok {
			p.failf("a priority is a number")
		}
	}
	p.space(false)
	if !p.take(":") {
		p.failf(": is missing after the name %q", name)
		return
	}
	e := p.body(!isTerminal(name))
	n := p.named(name, begin)
	if n.defined {
		p.at = begin
		p.failf("%s is defined twice", name)
	}
	n.defined = true
	p.b.Define(n.rule, e)
}

// body reads the right side of a definition.
func (p *parser) body(inRule bool) cfg.Expr {
	p.inRule = inRule
	e := p.alternatives(false)
	p.space(false)
	if p.err == nil && p.at < len(p.text) && p.peek() != '\n' {
		p.failf("a definition ends at the end of its line; %q is left", rest(p.text[p.at:]))
	}
	return e
}

func (p *parser) directive() {
	begin := p.at - 1
	switch name := p.name(); name {
	case "ignore":
		p.ignored = append(p.ignored, p.body(false))
	case "import":
		p.importLine()
	case "llguidance":
		if p.space(false); !p.take("{}") {
			p.failf("options of %%llguidance are not supported; it can be {}")
		}
	default:
		p.at = begin
		p.failf("%%%s is not supported here; there are %%ignore and %%import", name)
	}
}

// alternatives reads sequences between bars; a bar may begin a line.
func (p *parser) alternatives(nested bool) cfg.Expr {
	all := []cfg.Expr{p.sequence(nested)}
	for p.err == nil {
		at := p.at
		p.space(true)
		if !p.take("|") {
			p.at = at
			break
		}
		all = append(all, p.sequence(nested))
	}
	return p.b.Alt(all...)
}

func (p *parser) sequence(nested bool) cfg.Expr {
	var all []cfg.Expr
	for p.err == nil {
		p.space(nested)
		if p.take("->") {
			p.space(nested)
			if p.name() == "" {
				p.failf("a name is missing after ->")
			}
			break
		}
		e, ok := p.atom()
		if !ok {
			break
		}
		all = append(all, p.repeated(e))
	}
	return p.b.Seq(all...)
}

func (p *parser) group(shut string) cfg.Expr {
	if p.depth++; p.depth > maxDepth {
		p.failf("groups nest deeper than the limit of %d", maxDepth)
		return 0
	}
	defer func() { p.depth-- }()
	e := p.alternatives(true)
	if p.space(true); !p.take(shut) {
		p.failf("%s is missing before %q", shut, rest(p.text[p.at:]))
	}
	return e
}

// maxCount is the largest bound of a repetition.
const maxCount = 1 << 30

func (p *parser) repeated(e cfg.Expr) cfg.Expr {
	switch p.peek() {
	case '*':
		p.at++
		return p.b.Repeat(e, 0, -1)
	case '+':
		p.at++
		return p.b.Repeat(e, 1, -1)
	case '?':
		p.at++
		return p.b.Repeat(e, 0, 1)
	}
	begin := p.at
	p.space(false)
	if p.take("~") {
		p.space(false)
		low, ok := p.number()
		high := low
		p.space(false)
		if p.take("..") {
			p.space(false)
			high, ok = p.number()
		}
		return p.counted(e, begin, low, high, ok)
	}
	if p.take("{") {
		low, ok := p.number()
		high := low
		if p.space(false); p.take(",") {
			p.space(false)
			most, bound := p.number()
			if high = -1; bound {
				high = most
			}
			ok = ok || bound
			p.space(false)
		}
		return p.counted(e, begin, low, high, p.take("}") && ok)
	}
	p.at = begin
	return e
}

func (p *parser) counted(e cfg.Expr, at, low, high int, ok bool) cfg.Expr {
	switch {
	case !ok:
		p.failf("a repetition is ~m, ~m..n, {m}, {m,} or {m,n}")
	case high >= 0 && low > high:
		p.at = at
		p.failf("a repetition of %d to %d times", low, high)
	default:
		return p.b.Repeat(e, low, high)
	}
	return 0
}
