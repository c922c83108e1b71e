package calls

import (
	"errors"

	"github.com/spillway/spillway/internal/grammar/cfg"
	"github.com/spillway/spillway/internal/grammar/regular"
	"github.com/spillway/spillway/internal/grammar/schema"
)

// A language names the strings of a schema.
type language struct {
	s     *schema.Schema
	exact bool // all of them; else there may be fewer, which all validators take
}

// maxExact is how many characters a length is counted in by an automaton.
const maxExact = 500

// strings are the strings of a schema, without quotes.
func (w *writer) strings(s *schema.Schema, exact bool) (*regular.DFA, error) {
	key := language{s, exact}
	if d := w.languages[key]; d != nil {
		return d, nil
	}
	d, err := w.ownStrings(s, exact)
	for _, part := range append([]*schema.Schema{s.Ref}, s.AllOf...) {
		if err == nil && part != nil {
			d, err = w.both(d, part, exact)
		}
	}
	for _, narrow := range []func(*regular.DFA, *schema.Schema, bool) (*regular.DFA, error){w.anyOf, w.oneOfThem, w.negated, w.conditional} {
		if err == nil {
			d, err = narrow(d, s, exact)
		}
	}
	if err == nil {
		w.languages[key] = d
	}
	return d, err
}

func (w *writer) both(d *regular.DFA, s *schema.Schema, exact bool) (*regular.DFA, error) {
	other, err := w.strings(s, exact)
	if err != nil {
		return nil, err
	}
	return w.words.Intersect(d, other)
}

func (w *writer) butNot(d *regular.DFA, s *schema.Schema) (*regular.DFA, error) {
	other, err := w.strings(s, true)
	if err != nil {
		return nil, err
	}
	return w.words.Difference(d, other)
}

func (w *writer) anyOf(d *regular.DFA, s *schema.Schema, exact bool) (*regular.DFA, error) {
	if s.AnyOf == nil {
		return d, nil
	}
	return w.union(d, s.AnyOf, func(int) []*schema.Schema { return nil }, exact)
}

func (w *writer) oneOfThem(d *regular.DFA, s *schema.Schema, exact bool) (*regular.DFA, error) {
	if s.OneOf == nil {
		return d, nil
	}
	return w.union(d, s.OneOf, func(i int) []*schema.Schema { return append(s.OneOf[:i:i], s.OneOf[i+1:]...) }, exact)
}

// union is the strings of d that one of several schemas has and its rivals have not.
func (w *writer) union(d *regular.DFA, of []*schema.Schema, rivals func(i int) []*schema.Schema, exact bool) (*regular.DFA, error) {
	var all []*regular.DFA
	for i, s := range of {
		one, err := w.both(d, s, exact)
		for _, rival := range rivals(i) {
			if err == nil && !one.Empty() {
				one, err = w.butNot(one, rival)
			}
		}
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return w.words.Union(all...)
}

func (w *writer) negated(d *regular.DFA, s *schema.Schema, _ bool) (*regular.DFA, error) {
	if s.Not == nil {
		return d, nil
	}
	return w.butNot(d, s.Not)
}

func (w *writer) conditional(d *regular.DFA, s *schema.Schema, exact bool) (*regular.DFA, error) {
	if s.If == nil {
		return d, nil
	}
	yes, err := w.both(d, s.If, exact)
	if err == nil && s.Then != nil {
		yes, err = w.both(yes, s.Then, exact)
	}
	if err != nil {
		return nil, err
	}
	no, err := w.butNot(d, s.If)
	if err == nil && s.Else != nil {
		no, err = w.both(no, s.Else, exact)
	}
	if err != nil {
		return nil, err
	}
	return w.words.Union(yes, no)
}

// ownStrings are the strings that a schema's own keywords allow.
func (w *writer) ownStrings(s *schema.Schema, exact bool) (*regular.DFA, error) {
	if s.Bool != nil && !*s.Bool || s.Types&schema.TypeString == 0 {
		return w.words.Literal()
	}
	d, err := w.words.Text()
	narrow := func(keyword string, other *regular.DFA, problem error) {
		if err == nil && problem != nil {
			err = schema.Refuse(s, keyword, "%v", problem)
		}
		if err == nil {
			d, err = w.words.Intersect(d, other)
		}
	}
	if s.Enum != nil {
		other, problem := w.words.Literal(stringsOf(s.Enum)...)
		narrow("enum", other, problem)
	}
	if s.Const != nil {
		other, problem := w.words.Literal(stringsOf([]*schema.Value{s.Const})...)
		narrow("const", other, problem)
	}
	if s.Pattern != nil {
		other, problem := w.words.Regexp(*s.Pattern, true)
		narrow("pattern", other, problem)
	}
	if s.MinLength > 0 || s.MaxLength >= 0 {
		most := s.MaxLength
		if !exact && s.MinLength <= maxExact {
			most = min(most, maxExact)
		}
		other, problem := w.words.Length(max(s.MinLength, 0), most)
		narrow("maxLength", other, problem)
	}
	if s.Format != "" && err == nil {
		other, problem := w.format(s, exact)
		narrow("format", other, problem)
	}
	return d, err
}

func stringsOf(values []*schema.Value) (out []string) {
	for _, v := range values {
		if v.Kind == schema.String {
			out = append(out, v.Text)
		}
	}
	return out
}

// format is the strings of a format; formats that nobody knows say nothing.
func (w *writer) format(s *schema.Schema, exact bool) (*regular.DFA, error) {
	d, known, err := w.words.ExactFormat(s.Format)
	if known && exact || err != nil {
		return d, err
	}
	some, writable, err := w.words.Format(s.Format)
	switch {
	case err != nil:
		return nil, err
	case writable && !exact:
		return some, nil
	case writable || s.Format == "regex" || s.Format == "idn-hostname":
		return nil, errors.New("the dialect cannot write strings of the format " + s.Format)
	case known:
		return d, nil
	}
	return w.words.Text()
}

// raw is strings as they are, without any of the words, and without those that are read as a value of one of the types.
func (w *writer) raw(s *schema.Schema, words, types []string) (cfg.Expr, error) {
	if least, most, ok := lengths(s); ok && len(types) == 0 && (least > maxExact || most > maxExact) {
		return w.long(s, least, most, words)
	}
	d, err := w.strings(s, false)
	if err != nil {
		return 0, err
	}
	if d, err = without(w.words, d, words); err != nil {
		return 0, err
	}
	if len(types) > 0 {
		other, err := w.words.Regexp(valuesOf(types), false)
		if err != nil {
			return 0, err
		}
		if d, err = w.words.Difference(d, other); err != nil {
			return 0, err
		}
	}
	if d.Empty() {
		return 0, noValue(s)
	}
	return w.b.DFA(d), w.b.Err()
}

// valuesOf is a regular expression of all texts that are read as a value of one of the types, and of more.
func valuesOf(types []string) string {
	all := `\(.*`
	for _, t := range types {
		switch t {
		case "integer", "number":
			all += `|[-+.0-9].*`
		case "boolean":
			all += `|(?:[Tt]rue|[Ff]alse)\s*`
		case "null":
			all += `|(?:None|null)\s*`
		case "array":
			all += `|\[.*`
		case "object":
			all += `|\{.*`
		}
	}
	return `\s*(?:` + all + `)[^]*`
}

// lengths are the bounds of a schema's strings, if these are all that it says of them; most < 0: no bound.
func lengths(s *schema.Schema) (least, most int, ok bool) {
	most = -1
	for _, p := range together(s) {
		if p.Pattern != nil || p.Format != "" || p.Types&schema.TypeString == 0 || choice(p) != "" || p.Bool != nil {
			return 0, 0, false
		}
		least = max(least, p.MinLength)
		if p.MaxLength >= 0 && (most < 0 || p.MaxLength < most) {
			most = p.MaxLength
		}
	}
	return least, most, true
}

// long is texts of so many characters: in units of one or two, of which there are at most half as many, so that no
// text is too long. A unit has no two characters that one of the words begins with.
func (w *writer) long(s *schema.Schema, least, most int, words []string) (cfg.Expr, error) {
	if most >= 0 {
		most /= 2
	}
	if most >= 0 && least > most {
		return 0, schema.Refuse(s, "minLength", "the dialect cannot write strings of a length between %d and %d", least, 2*most)
	}
	seconds := map[byte]string{}
	firsts := ""
	for _, word := range words {
		if seconds[word[0]] == "" {
			firsts += string(word[0])
		}
		seconds[word[0]] += string(word[1])
	}
	units := []cfg.Expr{w.but(firsts)}
	for i := range len(firsts) {
		units = append(units, w.b.Seq(w.b.Bytes(firsts[i:i+1]), w.but(firsts+seconds[firsts[i]])))
	}
	return w.b.Repeat(w.b.Alt(units...), least, most), w.b.Err()
}

// but is any character but some of ASCII.
func (w *writer) but(chars string) cfg.Expr {
	var ranges [][2]rune
	for _, c := range chars {
		ranges = append(ranges, [2]rune{c, c})
	}
	return w.b.OtherRunes(ranges...)
}
