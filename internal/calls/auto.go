package calls

import (
	"regexp"
	"strings"

	"github.com/spillway/spillway/internal/chat/dialect"
	"github.com/spillway/spillway/internal/grammar"
	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/regular"
)

// An opening is what may follow in the midst of text.
type opening struct {
	without []string // texts that the text before it has nowhere: those that it begins with
	body    grammar.Format
	last    bool // the answer is over behind it
}

// auto is text with calls: all of them behind one opening, or each behind its own.
func auto(o *Options, name string) grammar.Format {
	var openings []opening
	var starts grammar.OneOf
	var first []string
	for f := formOf(name); f != nil; f = f.also {
		if f.start != "" {
			first = append(first, o.named(f.start)...)
			starts = append(starts, grammar.Sequence{blanks, written(o, name, f, o.Parallel && !f.single)})
		}
		if f.trigger != "" {
			body := written(o, name, f, o.Parallel && f.open+f.end != "")
			openings = append(openings, opening{o.named(f.trigger), grammar.Sequence{grammar.Literal(f.lead), body}, !o.Parallel || f.single})
		}
		if f.aside != "" {
			openings = append(openings, opening{body: grammar.Literal(f.aside)})
		}
	}
	text := o.open(append(openings, o.asides()...), first)
	if len(starts) == 0 {
		return text
	}
	return append(starts, text)
}

// written is calls in one form.
func written(o *Options, name string, f *form, several bool) grammar.Format {
	return grammar.Custom(func(b *cfg.Builder) (cfg.Expr, error) { return newWriter(b, o, name).calls(f, several) })
}

// named is a text with each tool's name.
func (o *Options) named(text string) []string {
	if !strings.Contains(text, "$name") {
		return []string{text}
	}
	var out []string
	for _, t := range o.Tools {
		out = append(out, strings.ReplaceAll(text, "$name", t.Name))
	}
	return out
}

// asides are control tokens that stand in text: around answers, and where reasoning begins again.
func (o *Options) asides() (out []opening) {
	m := dialect.ReasoningMarks(o.Tool, o.Reasoning)
	token := func(text string) (grammar.Format, bool) {
		all := o.pieces(text)
		_, ok := all[0].(grammar.TokenID)
		return grammar.Sequence(all), ok
	}
	for _, w := range m.Wraps {
		for _, text := range []string{w.Open, w.End} {
			if f, ok := token(text); ok {
				out = append(out, opening{body: f})
			}
		}
	}
	for _, text := range m.Open {
		if f, ok := token(text); m.Reopens && ok {
			out = append(out, opening{body: grammar.Sequence{f, o.thinking(m)}})
		}
	}
	return out
}

// open is text with openings in it, which does not begin with any of first.
func (o *Options) open(openings []opening, first []string) grammar.Format {
	var words []string
	var through, last grammar.OneOf
	for _, x := range openings {
		words = append(words, x.without...)
		if x.last {
			last = append(last, x.body)
		} else {
			through = append(through, x.body)
		}
	}
	text := grammar.FreeText{Excludes: words}
	all := grammar.Sequence{text}
	if len(first) > 0 {
		all[0] = grammar.Custom(func(b *cfg.Builder) (cfg.Expr, error) { return otherText(b, words, first) })
	}
	if len(through) > 0 {
		all = append(all, grammar.Repeated{Part: grammar.Sequence{through, text}, Max: -1})
	}
	if len(last) > 0 {
		all = append(all, grammar.Repeated{Part: last, Max: 1})
	}
	return all
}

// otherText is text that has none of words and does not begin with one of first.
func otherText(b *cfg.Builder, words, first []string) (cfg.Expr, error) {
	r := regular.NewBuilder(grammar.RegularLimits(b))
	spaces := strings.NewReplacer(`\[`, `\[[ \n\t\r]*`, `\{`, `\{[ \n\t\r]*`)
	var beginnings []string
	for _, text := range first {
		beginnings = append(beginnings, spaces.Replace(regexp.QuoteMeta(text)))
	}
	d, err := r.Regexp(`[ \n\t\r]*(?:`+strings.Join(beginnings, "|")+`)[^]*`, false)
	if err != nil {
		return 0, err
	}
	if d, err = r.Complement(d); err != nil {
		return 0, err
	}
	if d, err = without(r, d, words); err != nil {
		return 0, err
	}
	return b.DFA(d), nil
}

// without is a language without the texts that have one of words in them.
func without(r *regular.Builder, d *regular.DFA, words []string) (*regular.DFA, error) {
	if len(words) == 0 {
		return d, nil
	}
	has, err := r.Regexp(anyOf(words), true)
	if err != nil {
		return nil, err
	}
	return r.Difference(d, has)
}

// anyOf is a regular expression of some texts.
func anyOf(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = regexp.QuoteMeta(word)
	}
	return "(?:" + strings.Join(quoted, "|") + ")"
}
