package grammar

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// Format is a part of a structural tag, as vLLM and XGrammar define them: one of Literal, TokenID, FreeText,
// Leaf, Custom, Sequence, OneOf, Repeated, Tag, Triggered, Dispatch and Separated.
type Format interface{ isFormat() }

// Literal is a text as it is.
type Literal string

// TokenID is one token of the model; it matches as this token alone, never as text.
type TokenID int32

// TokenText is a TokenID by the token's text.
type TokenText string

// FreeText is any text without Excludes, and, within a Tag, without the tag's end.
type FreeText struct {
	Excludes []string
	MaxChars int // at most so many characters; 0: no bound
}

// Leaf is any Source.
type Leaf Source

// Custom is what a function builds.
type Custom func(b *cfg.Builder) (cfg.Expr, error)

// Sequence is its parts in order.
type Sequence []Format

// OneOf is any of its parts.
type OneOf []Format

// Repeated is a part at least Min and at most Max times; Max < 0: no bound.
type Repeated struct {
	Part     Format
	Min, Max int
}

// Tag is Begin, Content and one of Ends.
type Tag struct {
	Begin   Format // a Literal, a TokenID or a TokenText
	Content Format
	Ends    []Format // like Begin
}

// Triggered is free text until one of Triggers, which begins a tag; then that tag; then free text again.
// Each tag begins with exactly one of Triggers. Without Triggers the tags begin with tokens.
type Triggered struct {
	Triggers       []string
	Tags           []Tag
	AtLeastOne     bool // begins with a tag
	StopAfterFirst bool // ends with the first tag
	Excludes       []string
}

// Dispatch is free text until one of the patterns, then what belongs to it, and so on if Loop is set.
type Dispatch struct {
	Rules    []DispatchRule
	Loop     bool
	Excludes []string
}

// DispatchRule is what must come after a pattern.
type DispatchRule struct {
	Pattern string
	Then    Format
}

// Separated is tags with a text between each two.
type Separated struct {
	Tags           []Tag
	Separator      string
	AtLeastOne     bool
	StopAfterFirst bool
}

func (Literal) isFormat()   {}
func (TokenID) isFormat()   {}
func (TokenText) isFormat() {}
func (FreeText) isFormat()  {}
func (Leaf) isFormat()      {}
func (Custom) isFormat()    {}
func (Sequence) isFormat()  {}
func (OneOf) isFormat()     {}
func (Repeated) isFormat()  {}
func (Tag) isFormat()       {}
func (Triggered) isFormat() {}
func (Dispatch) isFormat()  {}
func (Separated) isFormat() {}

// maxFormatDepth is how deep formats nest.
const maxFormatDepth = 64

// format makes an expression; free text in it has none of ends.
func (c *compiler) format(f Format, ends []string) (cfg.Expr, error) {
	if c.depth++; c.depth > maxFormatDepth {
		return 0, fmt.Errorf("grammar: a structural tag nests deeper than the limit of %d", maxFormatDepth)
	}
	defer func() { c.depth-- }()
	switch f := f.(type) {
	case Literal:
		return c.b.Bytes(string(f)), nil
	case TokenID:
		return c.b.Token(int32(f)), c.b.Err()
	case TokenText:
		return c.tokenText(string(f))
	case FreeText:
		return c.free(f, ends)
	case Leaf:
		s := Source(f)
		return c.source(&s)
	case Custom:
		return f(c.b)
	case Sequence:
		return c.sequence(f, ends)
	case OneOf:
		all, err := c.formats(f, ends)
		return c.b.Alt(all...), err
	case Repeated:
		e, err := c.format(f.Part, ends)
		return c.b.Repeat(e, f.Min, f.Max), err
	case Tag:
		return c.tag(&f, "")
	case Triggered:
		return c.triggered(&f, ends)
	case Dispatch:
		return c.dispatch(&f, ends)
	case Separated:
		return c.separated(&f)
	}
	return 0, fmt.Errorf("grammar: a part of a structural tag is missing")
}

func (c *compiler) formats(all []Format, ends []string) ([]cfg.Expr, error) {
	out := make([]cfg.Expr, len(all))
	var err error
	for i, f := range all {
		if out[i], err = c.format(f, ends); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// sequence hands on to its last part what free text there ends with.
func (c *compiler) sequence(parts Sequence, ends []string) (cfg.Expr, error) {
	out := make([]cfg.Expr, len(parts))
	var err error
	for i, f := range parts {
		inner := []string(nil)
		if i == len(parts)-1 {
			inner = ends
		}
		if out[i], err = c.format(f, inner); err != nil {
			return 0, err
		}
	}
	return c.b.Seq(out...), nil
}

func (c *compiler) tokenText(text string) (cfg.Expr, error) {
	if c.lookup != nil {
		if id, ok := c.lookup(text); ok {
			return c.b.Token(id), c.b.Err()
		}
	}
	return 0, fmt.Errorf("grammar: %q is not one token of the model", text)
}

func (c *compiler) free(f FreeText, ends []string) (cfg.Expr, error) {
	words := append(slices.Clone(f.Excludes), ends...)
	if f.MaxChars > 0 {
		if len(words) > 0 {
			return 0, fmt.Errorf("grammar: free text with a largest length and texts that it excludes or ends with")
		}
		return c.b.Repeat(c.b.Runes([2]rune{0, utf8.MaxRune}), 0, f.MaxChars), nil
	}
	s, err := newSearch(words)
	if err != nil {
		return 0, err
	}
	return c.b.DFA(freeText{s}), nil
}

// tag is a tag whose beginning was matched up to the end of trigger.
func (c *compiler) tag(t *Tag, trigger string) (cfg.Expr, error) {
	begin := t.Begin
	if text, ok := begin.(Literal); ok {
		begin = Literal(strings.TrimPrefix(string(text), trigger))
	}
	var words []string
	for _, e := range t.Ends {
		if text, ok := e.(Literal); ok && text != "" {
			words = append(words, string(text))
		}
	}
	all, err := c.formats([]Format{begin, OneOf(t.Ends)}, nil)
	if err != nil {
		return 0, err
	}
	content, err := c.format(t.Content, words)
	return c.b.Seq(all[0], content, all[1]), err
}

func (c *compiler) tags(all []Tag) (cfg.Expr, error) {
	var out []cfg.Expr
	for i := range all {
		e, err := c.tag(&all[i], "")
		if err != nil {
			return 0, err
		}
		out = append(out, e)
	}
	if len(out) == 0 {
		return 0, fmt.Errorf("grammar: a structural tag without tags")
	}
	return c.b.Alt(out...), nil
}

func (c *compiler) triggered(t *Triggered, ends []string) (cfg.Expr, error) {
	first, err := c.tags(t.Tags)
	if err != nil || t.AtLeastOne && t.StopAfterFirst {
		return first, err
	}
	rest, err := c.afterText(t, ends)
	if err != nil || !t.AtLeastOne {
		return rest, err
	}
	return c.b.Seq(first, rest), nil
}

// afterText is free text, and tags behind triggers.
func (c *compiler) afterText(t *Triggered, ends []string) (cfg.Expr, error) {
	if len(t.Triggers) == 0 {
		text, err := c.free(FreeText{Excludes: t.Excludes}, ends)
		if err != nil {
			return 0, err
		}
		tags, err := c.tags(t.Tags)
		return c.loop(text, c.b.Seq(text, tags), !t.StopAfterFirst), err
	}
	d := Dispatch{Loop: !t.StopAfterFirst, Excludes: t.Excludes}
	used := make([]bool, len(t.Tags))
	for _, trigger := range t.Triggers {
		var then []cfg.Expr
		for i := range t.Tags {
			text, _ := t.Tags[i].Begin.(Literal)
			if !strings.HasPrefix(string(text), trigger) {
				continue
			}
			if used[i] {
				return 0, fmt.Errorf("grammar: the tag %q begins with more than one trigger", text)
			}
			used[i] = true
			e, err := c.tag(&t.Tags[i], trigger)
			if err != nil {
				return 0, err
			}
			then = append(then, e)
		}
		if len(then) == 0 {
			return 0, fmt.Errorf("grammar: no tag begins with the trigger %q", trigger)
		}
		e := c.b.Alt(then...)
		d.Rules = append(d.Rules, DispatchRule{trigger, Custom(func(*cfg.Builder) (cfg.Expr, error) { return e, nil })})
	}
	if i := slices.Index(used, false); i >= 0 {
		return 0, fmt.Errorf("grammar: the tag %v begins with no trigger", t.Tags[i].Begin)
	}
	return c.dispatch(&d, ends)
}

// loop is text, or once or many times a part and then text.
func (c *compiler) loop(text, part cfg.Expr, many bool) cfg.Expr {
	if many {
		return c.b.Seq(c.b.Repeat(part, 0, -1), text)
	}
	return c.b.Alt(text, part)
}

func (c *compiler) dispatch(d *Dispatch, ends []string) (cfg.Expr, error) {
	words := make([]string, 0, len(d.Rules)+len(d.Excludes)+len(ends))
	for _, r := range d.Rules {
		if slices.Contains(words, r.Pattern) {
			return 0, fmt.Errorf("grammar: the trigger %q is there twice", r.Pattern)
		}
		words = append(words, r.Pattern)
	}
	words = append(append(words, d.Excludes...), ends...)
	s, err := newSearch(words)
	if err != nil {
		return 0, err
	}
	var parts []cfg.Expr
	for i, r := range d.Rules {
		if other, ok := within(r.Pattern, words); ok {
			return 0, fmt.Errorf("grammar: the trigger %q is never reached: %q is part of it", r.Pattern, other)
		}
		then, err := c.format(r.Then, nil)
		if err != nil {
			return 0, err
		}
		parts = append(parts, c.b.Seq(c.b.DFA(textUntil{s, int32(i)}), then))
	}
	return c.loop(c.b.DFA(freeText{s}), c.b.Alt(parts...), d.Loop), nil
}

func (c *compiler) separated(t *Separated) (cfg.Expr, error) {
	tags, err := c.tags(t.Tags)
	if err != nil {
		return 0, err
	}
	all := tags
	if !t.StopAfterFirst {
		all = c.b.Seq(tags, c.b.Repeat(c.b.Seq(c.b.Bytes(t.Separator), tags), 0, -1))
	}
	if !t.AtLeastOne {
		all = c.b.Opt(all)
	}
	return all, nil
}
