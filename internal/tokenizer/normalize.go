package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A normalizer rewrites text before it is cut into pieces. It returns its argument where nothing changes.
type normalizer interface {
	normalize(text string) string
}

// composer is a Unicode normalization form.
type composer struct{ form norm.Form }

func (c composer) normalize(text string) string {
	if c.form.IsNormalString(text) && !longMarks(text) {
		return text
	}
	if strings.ContainsFunc(text, decomposesLater) {
		return c.between(text)
	}
	return c.whole(text)
}

// between normalizes what is between characters that stay.
func (c composer) between(text string) string {
	var b strings.Builder
	for {
		at := strings.IndexFunc(text, decomposesLater)
		if at < 0 {
			b.WriteString(c.whole(text))
			return b.String()
		}
		end := at + runeLen(text[at:])
		b.WriteString(c.whole(text[:at]))
		b.WriteString(text[at:end])
		text = text[end:]
	}
}

func (c composer) whole(text string) string {
	if !longMarks(text) {
		return c.form.String(text)
	}
	return canonical(text, c.form == norm.NFC || c.form == norm.NFKC, c.form == norm.NFKC || c.form == norm.NFKD)
}

// maxMarks is the number of non-starters in a row above which x/text puts in a U+034F ("stream-safe
// text"). The standard forms, which tokenizers were trained with, do not.
const maxMarks = 30

// longMarks reports whether text may have a run of marks that x/text would break.
func longMarks(text string) bool {
	run := 0
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			run = 0
			i++
			continue
		}
		p := norm.NFKD.PropertiesString(text[i:])
		if p.Size() == 0 { // cut off in the middle of a character
			return false
		}
		i += p.Size()
		switch { // a character decomposes to at most 3 marks
		case !p.BoundaryBefore() && p.Decomposition() == nil:
			run++
		case !p.BoundaryBefore():
			run += 3
		case p.TrailCCC() != 0:
			run = 3
		default:
			run = 0
		}
		if run > maxMarks-3 {
			return true
		}
	}
	return false
}

// canonical is UAX #15 without the stream-safe limit; slow, for odd text only.
func canonical(text string, compose, compat bool) string {
	runes := reorder(decompose(text, compat))
	if compose {
		runes = recompose(runes)
	}
	var b strings.Builder
	for _, r := range runes {
		if r.raw >= 0 {
			b.WriteByte(byte(r.raw))
		} else {
			b.WriteRune(r.r)
		}
	}
	return b.String()
}

// markedRune is a character with its combining class, or a byte that is not UTF-8.
type markedRune struct {
	r   rune
	ccc uint8
	raw int
}

func decompose(text string, compat bool) []markedRune {
	form := norm.NFD
	if compat {
		form = norm.NFKD
	}
	var out []markedRune
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			out = append(out, markedRune{raw: int(text[i])})
			i++
			continue
		}
		for _, d := range form.String(text[i : i+size]) {
			out = append(out, markedRune{r: d, ccc: form.PropertiesString(string(d)).CCC(), raw: -1})
		}
		i += size
	}
	return out
}

// reorder sorts each run of marks by combining class, keeping the order of equals.
func reorder(runes []markedRune) []markedRune {
	for i := 0; i < len(runes); {
		if runes[i].ccc == 0 {
			i++
			continue
		}
		end := i
		for end < len(runes) && runes[end].ccc != 0 {
			end++
		}
		sortMarks(runes[i:end])
		i = end
	}
	return runes
}

// sortMarks is a counting sort, since a hostile text can be one run of marks.
func sortMarks(run []markedRune) {
	var buckets [256][]markedRune
	for _, m := range run {
		buckets[m.ccc] = append(buckets[m.ccc], m)
	}
	run = run[:0]
	for _, bucket := range buckets {
		run = append(run, bucket...)
	}
}

func recompose(runes []markedRune) []markedRune {
	out := runes[:0]
	starter := -1
	for _, m := range runes {
		if starter >= 0 && m.raw < 0 {
			last := out[len(out)-1]
			adjacent := len(out)-1 == starter
			if adjacent || last.ccc != 0 && last.ccc < m.ccc {
				if r, ok := composePair(out[starter].r, m.r); ok {
					out[starter].r = r
					continue
				}
			}
		}
		if m.ccc == 0 {
			starter = len(out)
			if m.raw >= 0 {
				starter = -1
			}
		}
		out = append(out, m)
	}
	return out
}

// composePair returns the primary composite of two characters.
func composePair(a, b rune) (rune, bool) {
	joined := norm.NFC.String(string(a) + string(b))
	r, size := utf8.DecodeRuneInString(joined)
	return r, size == len(joined)
}

// lowercase is the Lowercase normalizer: each character by itself, İ as two.
type lowercase struct{}

func (lowercase) normalize(text string) string {
	return filterMap(strings.ReplaceAll(text, "İ", "i\u0307"), unicode.ToLower)
}

// replace puts one string in the place of another.
type replace struct{ old, new string }

func (r replace) normalize(text string) string { return orSame(r, text) }

func (r replace) try(text string, most int) (string, error) {
	grows := len(r.new) - len(r.old)
	if (len(text)+1)*(grows+1) > most && len(text)+strings.Count(text, r.old)*grows > most {
		return "", tooMuch(most)
	}
	return strings.ReplaceAll(text, r.old, r.new), nil
}

// prepend puts a string before a text that is not empty.
type prepend struct{ prefix string }

func (p prepend) normalize(text string) string {
	if text == "" {
		return text
	}
	return p.prefix + text
}

// normalizers run one after another.
type normalizers []normalizer

func (n normalizers) normalize(text string) string {
	for _, each := range n {
		text = each.normalize(text)
	}
	return text
}

// maxGrowth bounds how many times longer a text may become by normalization.
const maxGrowth = 64

// growthLimit is the most bytes that a text of n bytes may become.
func growthLimit(n int) int { return maxGrowth * (n + maxContent) }

func tooMuch(most int) error {
	return formatError("the normalizer makes more than %d bytes of a text; %d times its length are possible", most, maxGrowth)
}

// A bounded normalizer can fail: it takes too long, or what the file says makes more than most bytes of a text.
type bounded interface {
	try(text string, most int) (string, error)
}

// orSame is try for those who know no errors: a text stays as it is.
func orSame(n bounded, text string) string {
	if out, err := n.try(text, growthLimit(len(text))); err == nil {
		return out
	}
	return text
}

// normalized is n.normalize with its error. A nil n changes nothing.
func normalized(n normalizer, text string) (string, error) {
	return normalizedTo(n, text, growthLimit(len(text)))
}

func normalizedTo(n normalizer, text string, most int) (out string, err error) {
	switch n := n.(type) {
	case nil:
		return text, nil
	case normalizers:
		for _, each := range n {
			if text, err = normalizedTo(each, text, most); err != nil {
				return "", err
			}
		}
		return text, nil
	case bounded:
		out, err = n.try(text, most)
	default:
		out = n.normalize(text)
	}
	if err == nil && len(out) > most {
		err = tooMuch(most)
	}
	return out, err
}
