package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Methods of strings that look at text, and Python's meaning of letters.

// ifAll makes a method that says whether all characters of a string that is not empty satisfy f.
func ifAll(f func(rune) bool) func(*call) (Value, error) {
	return func(c *call) (Value, error) {
		s := c.in().s
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !f(r) }) < 0, nil
	}
}

// ifCased makes a method that says whether a string has letters of one case only.
func ifCased(is, isNot func(rune) bool) func(*call) (Value, error) {
	return func(c *call) (Value, error) { return ofCase(c.in().s, is, isNot), nil }
}

func ofCase(s string, is, isNot func(rune) bool) bool {
	return strings.IndexFunc(s, is) >= 0 && strings.IndexFunc(s, func(r rune) bool { return isNot(r) || unicode.IsTitle(r) }) < 0
}

// isDigit is Python's: superscripts and circled digits, too, but not Roman numerals or fractions.
func isDigit(r rune) bool {
	return unicode.IsDigit(r) || r == 0xb2 || r == 0xb3 || r == 0xb9 || r >= 0x2070 && r <= 0x2089 && unicode.Is(unicode.No, r) || r >= 0x2460 && r <= 0x2468
}

func isASCII(c *call) (Value, error) {
	return strings.IndexFunc(c.in().s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0, nil
}

func isIdentifier(c *call) (Value, error) {
	s := c.in().s
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r) && !unicode.IsMark(r)) {
			return false, nil
		}
	}
	return s != "", nil
}

func isPrintable(c *call) (Value, error) {
	return strings.IndexFunc(c.in().s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0, nil
}

func isTitle(c *call) (Value, error) {
	some, inside := false, false
	for _, r := range c.in().s {
		switch {
		case unicode.IsUpper(r) || unicode.IsTitle(r):
			if inside {
				return false, nil
			}
			some, inside = true, true
		case unicode.IsLower(r):
			if !inside {
				return false, nil
			}
			some = true
		default:
			inside = false
		}
	}
	return some, nil
}

// manyCapitals are the letters whose capitals are several, each with those: Unicode's SpecialCasing.txt.
const manyCapitals = "ßSS ŉʼN ǰJ̌ ΐΪ́ ΰΫ́ ևԵՒ ẖH̱ ẗT̈ ẘW̊ ẙY̊ ẚAʾ ὐΥ̓ ὒΥ̓̀ ὔΥ̓́ ὖΥ̓͂ ᾶΑ͂ ῆΗ͂ ῒΪ̀ ῖΙ͂ ῗΪ͂ ῢΫ̀ ῤΡ̓ ῦΥ͂ ῧΫ͂ ῶΩ͂ ﬀFF ﬁFI ﬂFL ﬃFFI ﬄFFL ﬅST ﬆST ﬓՄՆ ﬔՄԵ ﬕՄԻ ﬖՎՆ ﬗՄԽ"

// toUpper is Python's: letters without a capital of their own get several.
func toUpper(s string) string {
	s = strings.ToUpper(s)
	if strings.IndexFunc(s, func(r rune) bool { return r == 0xdf || r >= 0x149 && strings.ContainsRune(manyCapitals, r) }) < 0 {
		return s
	}
	for pair := range strings.SplitSeq(manyCapitals, " ") {
		_, n := utf8.DecodeRuneInString(pair)
		s = strings.ReplaceAll(s, pair[:n], pair[n:])
	}
	return s
}

// toLower is Python's: the Turkish capital keeps its dot, and a sigma at the end of a word has its own form.
func toLower(s string) string {
	if strings.ContainsAny(s, "İΣ") {
		s = strings.ReplaceAll(finalSigma(s), "İ", "i̇")
	}
	return strings.ToLower(s)
}

// finalSigma writes the Σ at the end of words as they are written in small letters.
func finalSigma(s string) string {
	var b strings.Builder
	for i, r := range s {
		if r == 'Σ' && letterBeside(s[:i], utf8.DecodeLastRuneInString) && !letterAfter(s[i+len("Σ"):]) {
			r = 'ς'
		}
		b.WriteRune(r)
	}
	return b.String()
}

func letterBeside(s string, decode func(string) (rune, int)) bool {
	r, _ := decode(s)
	return isCased(r)
}

func letterAfter(s string) bool { return letterBeside(s, utf8.DecodeRuneInString) }

func isCased(r rune) bool { return unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r) }

func caseFold(s string) string {
	return strings.ReplaceAll(strings.ToLower(toUpper(strings.ReplaceAll(s, "İ", "i̇"))), "ς", "σ")
}

func capitalize(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return toTitle(s[:n]) + toLower(s[n:])
}

// toTitle is the capital of one letter at the beginning of a word.
func toTitle(letter string) string {
	if up := toUpper(letter); utf8.RuneCountInString(up) > 1 {
		_, n := utf8.DecodeRuneInString(up)
		return up[:n] + strings.ToLower(up[n:])
	}
	return strings.ToTitle(letter)
}

// title begins each run of letters with a capital.
func title(s string) string {
	inside := false
	var b strings.Builder
	for _, r := range finalSigma(s) {
		was := inside
		inside = isCased(r)
		switch {
		case !inside:
			b.WriteRune(r)
		case was:
			b.WriteString(toLower(string(r)))
		default:
			b.WriteString(toTitle(string(r)))
		}
	}
	return b.String()
}

func swapCase(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == 'Σ' && letterBeside(s[:i], utf8.DecodeLastRuneInString) && !letterAfter(s[i+len("Σ"):]):
			b.WriteRune('ς')
		case unicode.IsUpper(r):
			b.WriteString(toLower(string(r)))
		default:
			b.WriteString(toUpper(string(r)))
		}
	}
	return b.String()
}

// part is the part of the input that the optional arguments start and end name; ok is false if it begins
// after the end. start is in characters.
func (c *call) part(first int) (s string, start int64, ok bool, err error) {
	s = c.in().s
	if c.arg(first, "start", nil) == nil && c.arg(first+1, "end", nil) == nil {
		return s, 0, true, nil
	}
	n := int64(utf8.RuneCountInString(s))
	bounds := [2]int64{0, n}
	for i, name := range []string{"start", "end"} {
		if c.arg(first+i, name, nil) == nil {
			continue
		}
		v, err := c.int(first+i, name, 0)
		if err != nil {
			return "", 0, false, err
		}
		if v < 0 {
			v = max(v+n, 0)
		}
		bounds[i] = v
	}
	from, to := bounds[0], min(bounds[1], n)
	if from > n || from > to {
		return "", from, false, nil
	}
	at := byteOf(s, from)
	return s[at : at+byteOf(s[at:], to-from)], from, true, nil
}

// affix is startswith and endswith, of one string or of a tuple of them.
func affix(has func(s, part string) bool) func(*call) (Value, error) {
	return func(c *call) (Value, error) {
		v, err := c.need(0, "prefix")
		if err != nil {
			return nil, err
		}
		s, _, ok, err := c.part(1)
		if err != nil {
			return nil, err
		}
		parts := []Value{v}
		if l, isList := v.(*List); isList && l.Tuple {
			parts = l.Items
		}
		for _, part := range parts {
			text, isText := String(part)
			if !isText {
				return nil, errorf("%s takes a str, not a %s", c.name, typeName(part))
			}
			if ok && has(s, text) {
				return true, nil
			}
		}
		return false, nil
	}
}

// find is find and index; the place is counted in characters.
func find(look func(s, part string) int, must bool) func(*call) (Value, error) {
	return func(c *call) (Value, error) {
		sub, err := c.textArg(0, "sub")
		if err != nil {
			return nil, err
		}
		s, start, ok, err := c.part(1)
		if err != nil {
			return nil, err
		}
		at := -1
		if ok {
			at = look(s, sub.s)
		}
		switch {
		case at >= 0:
			return start + int64(utf8.RuneCountInString(s[:at])), nil
		case must:
			return nil, errorf("%q was not found", sub.s)
		}
		return int64(-1), nil
	}
}

func countText(c *call) (Value, error) {
	sub, err := c.textArg(0, "sub")
	if err != nil {
		return nil, err
	}
	s, _, ok, err := c.part(1)
	if err != nil || !ok {
		return int64(0), err
	}
	return int64(strings.Count(s, sub.s)), nil
}
