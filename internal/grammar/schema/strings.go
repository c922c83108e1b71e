package schema

import (
	"errors"

	"github.com/spillway/spillway/internal/grammar/regular"
)

// textForm is the strings of a language with min to max characters.
type textForm struct {
	language *regular.DFA // nil: all
	char     *regular.DFA // if not nil: the strings are min to max of its characters
	min, max int          // max < 0: no bound; without char, the language keeps the bounds by itself
}

// reading says which language stands for a format.
type reading uint8

const (
	forWriting reading = iota // texts that all validators accept
	allOfIt                   // a language that has all texts of the format
	forJudging                // all texts of it where that is a regular language, else as for writing
)

// finishText is nil if there are no such strings. Where it has fewer strings than are valid, its
// language may be empty although there are some.
func (c *compiler) finishText(x *alt) (*textForm, error) {
	t, whole, err := c.textOf(x, forWriting)
	if t != nil || whole || err != nil {
		return t, err
	}
	if t, _, err = c.textOf(x, allOfIt); t != nil {
		t.char = nil
		t.language, err = c.words.Literal()
	}
	return t, err
}

// textOf is the strings that satisfy an alternative; whole says whether these are all of them.
func (c *compiler) textOf(x *alt, as reading) (t *textForm, whole bool, err error) {
	t = &textForm{max: -1}
	whole = as == forWriting
	for _, p := range x.strings {
		t.bound(p)
	}
	if t.max >= 0 && t.min > t.max {
		return nil, true, nil
	}
	var last stringPart
	for _, p := range x.strings {
		if p.keyword != "pattern" && p.keyword != "format" {
			continue
		}
		d, err := c.partLanguage(p, as)
		if err != nil {
			return nil, false, err
		}
		if d == nil {
			continue
		}
		whole = whole && p.keyword != "format"
		last = p
		if t.language, err = c.intersect(t.language, d); err != nil {
			return nil, false, languageError(err, p)
		}
	}
	if t.language, err = c.without(t.language, textsOf(x.exclude)); err != nil {
		return nil, false, err
	}
	if t.language == nil {
		return t, whole, nil
	}
	cutWhole, err := c.cut(t, last, as)
	if err != nil {
		return nil, false, err
	}
	if t.language.Empty() {
		return nil, whole && cutWhole, nil
	}
	return t, whole && cutWhole, nil
}

func textsOf(values []*Value) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = v.Text
	}
	return texts
}

// bound reads minLength and maxLength.
func (t *textForm) bound(p stringPart) {
	lower := func(n int) { t.min = max(t.min, n) }
	upper := func(n int) {
		if t.max < 0 || n < t.max {
			t.max = n
		}
	}
	switch {
	case p.keyword == "minLength" && !p.negated:
		lower(p.s.MinLength)
	case p.keyword == "minLength":
		upper(p.s.MinLength - 1)
	case p.keyword == "maxLength" && !p.negated:
		upper(p.s.MaxLength)
	case p.keyword == "maxLength":
		lower(p.s.MaxLength + 1)
	}
}

// partLanguage is the language of a pattern or format, nil for all strings.
func (c *compiler) partLanguage(p stringPart, as reading) (*regular.DFA, error) {
	if p.keyword == "format" {
		d, err := c.format(p.s, p.negated, as)
		return d, languageError(err, p)
	}
	d, err := c.pattern(*p.s.Pattern)
	if err == nil && p.negated {
		d, err = c.words.Complement(d)
	}
	return d, languageError(err, p)
}

// format is the language of a format or of its contrary, nil for all strings. Unknown formats are
// annotations, as the standard says.
func (c *compiler) format(s *Schema, negated bool, as reading) (*regular.DFA, error) {
	exact, ok, err := c.formatLanguage(s.Format, true)
	switch {
	case err != nil:
		return nil, err
	case ok && negated:
		return c.words.Complement(exact)
	case ok && as != forWriting:
		return exact, nil
	}
	write, ok, err := c.formatLanguage(s.Format, false)
	switch {
	case err != nil:
		return nil, err
	case !ok && negated:
		return c.words.Literal()
	case !ok || as == allOfIt:
		return nil, nil
	case negated:
		return nil, Refuse(s, "format", "%q cannot be negated", s.Format)
	}
	return write, nil
}

// someRegexps are regular expressions that ECMAScript and RE2 read alike, with groups one level deep.
// All of them are no regular language.
const (
	regexpPiece = "(?:[\\w ,:;<>@#%&~\"'`=!/-]|\\.|\\\\[dDwWsSnrt.\\\\*+?()[\\]{}|^$/]|" +
		`\[\^?(?:a-z|A-Z|0-9|[\w .,:/@])+\])(?:[*+?]\??|\{\d\d?\})?`
	regexpGroup = `\((?:\?:)?(?:` + regexpPiece + `)*(?:\|(?:` + regexpPiece + `)*)*\)[*+?]?`
	someRegexps = `\^?(?:` + regexpPiece + `|` + regexpGroup + `)*(?:\|(?:` + regexpPiece + `|` + regexpGroup + `)*)*\$?`
)

func (c *compiler) formatLanguage(name string, exact bool) (*regular.DFA, bool, error) {
	build := c.words.Format
	key := "format " + name
	switch {
	case exact:
		build = c.words.ExactFormat
		key = "exact " + key
	case name == "regex":
		build = func(string) (*regular.DFA, bool, error) {
			d, err := c.words.Regexp(someRegexps, false)
			return d, true, err
		}
	}
	known := true
	d, err := shared.get(key, func() (d *regular.DFA, err error) {
		d, known, err = build(name)
		return d, err
	})
	return d, known, err
}

// languageError says which keyword has a language that cannot be computed.
func languageError(err error, p stringPart) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return patternError(err, p.s, p.keyword)
}

func patternError(err error, s *Schema, keyword string) error {
	var syntax *regular.SyntaxError
	if errors.As(err, &syntax) && !syntax.Refused {
		return invalid(s, keyword, "%v", err)
	}
	return Refuse(s, keyword, "%v", err)
}

// pattern is the language of strings in which a regular expression is found.
func (c *compiler) pattern(text string) (*regular.DFA, error) {
	if d := c.patterns[text]; d != nil {
		return d, nil
	}
	d, err := c.words.Regexp(text, true)
	if err == nil {
		c.patterns[text] = d
	}
	return d, err
}

// intersect is the texts of both languages; nil is all texts.
func (c *compiler) intersect(a, b *regular.DFA) (*regular.DFA, error) {
	switch {
	case a == nil || a == b:
		return b, nil
	case b == nil:
		return a, nil
	}
	key := [2]*regular.DFA{a, b}
	if d := c.products[key]; d != nil {
		return d, nil
	}
	d, err := c.words.Intersect(a, b)
	if err == nil {
		c.products[key] = d
	}
	return d, err
}

// without is a language without some texts; nil is all texts.
func (c *compiler) without(a *regular.DFA, texts []string) (*regular.DFA, error) {
	if len(texts) == 0 {
		return a, nil
	}
	not, err := c.words.Literal(texts...)
	if err != nil {
		return nil, err
	}
	return c.minus(a, not)
}

func (c *compiler) minus(a, b *regular.DFA) (*regular.DFA, error) {
	if a == nil {
		return c.words.Complement(b)
	}
	return c.words.Difference(a, b)
}
