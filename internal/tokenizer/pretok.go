package tokenizer

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// preTokenizer collects the stages of a pre-tokenizer.
type preTokenizer struct {
	raw    bool      // the model's symbols are characters, so that ByteLevel maps bytes to them
	stages splitters // of a text
	first  splitters // of a text's beginning: the same, but for Metaspace's scheme "first"
	differ bool
}

// splitters returns the splitter of a text, and that of a text's beginning, nil if it is the same.
func (p *preTokenizer) splitters() (all, beginning splitter) {
	all = whole{}
	if len(p.stages) > 0 {
		all = p.stages
	}
	if p.differ {
		beginning = beginnings{p.first, p.stages}
	}
	return all, beginning
}

func (p *preTokenizer) put(s splitter) {
	p.stages, p.first = append(p.stages, s), append(p.first, s)
}

func (p *preTokenizer) add(s section) error {
	for _, part := range s.flat() {
		if err := p.addOne(part); err != nil {
			return err
		}
	}
	return nil
}

func (p *preTokenizer) addOne(s section) error {
	switch s.Type {
	case "ByteLevel":
		p.addByteLevel(s)
	case "Digits":
		if s.IndividualDigits {
			p.put(isolate{numbers{1}})
		} else {
			p.put(isolate{numbers{unlimited}})
		}
	case "Punctuation":
		b, ok := behaviourOf(cmp.Or(s.Behavior, "Isolated"))
		if !ok {
			return unsupported("pre-tokenizer", "Punctuation with behavior "+s.Behavior)
		}
		p.put(separate{finder: scan{oneOf(isBERTPunctuation)}, behaviour: b})
	case "Split":
		return p.addSplit(s)
	case "Metaspace":
		return p.addMetaspace(s)
	case "Whitespace":
		p.put(separate{finder: scan{wordsOrMarks{}}, behaviour: removed, invert: true})
	case "WhitespaceSplit":
		p.put(separate{finder: scan{oneOf(unicode.IsSpace)}, behaviour: removed})
	case "BertPreTokenizer":
		p.put(separate{finder: scan{oneOf(unicode.IsSpace)}, behaviour: removed})
		p.put(isolate{oneOf(isBERTPunctuation)})
	case "CharDelimiterSplit":
		if utf8.RuneCountInString(s.Delimiter) != 1 {
			return formatError("the delimiter of a CharDelimiterSplit is %.20q instead of one character", s.Delimiter)
		}
		p.put(separate{finder: literal{s.Delimiter}, behaviour: removed})
	case "UnicodeScripts":
		p.put(scripts{})
	case "FixedLength":
		if s.Length <= 0 {
			return formatError("the length of a FixedLength is %d", s.Length)
		}
		p.put(fixedLength(s.Length))
	default:
		return unsupported("pre-tokenizer", s.Type)
	}
	return nil
}

func (p *preTokenizer) addByteLevel(s section) {
	if orTrue(s.AddPrefixSpace) {
		p.put(prefixSpace{})
	}
	if orTrue(s.UseRegex) {
		p.put(isolate{gpt2Words{}})
	}
	if p.raw {
		p.put(mapped{byteMap{}})
	}
}

func (p *preTokenizer) addSplit(s section) error {
	b, ok := behaviourOf(s.Behavior)
	if !ok {
		return unsupported("pre-tokenizer", "Split with behavior "+s.Behavior)
	}
	switch {
	case s.Pattern != nil && s.Pattern.String != nil:
		p.put(separate{literal{*s.Pattern.String}, b, s.Invert})
	case s.Pattern == nil || s.Pattern.Regex == nil:
		return formatError("a pre-tokenizer of type Split has no pattern")
	case b == isolated: // inverted, gaps and matches change places: the pieces are the same
		stage, err := splitterFor(*s.Pattern.Regex)
		if err != nil {
			return err
		}
		p.put(stage)
	default:
		f, err := finderFor(*s.Pattern.Regex)
		if err != nil {
			return err
		}
		p.put(separate{f, b, s.Invert})
	}
	return nil
}

// scheme returns a Metaspace's prepend_scheme; older files say add_prefix_space.
func (s section) scheme() (string, error) {
	switch s.PrependScheme {
	case "always", "first", "never":
		return s.PrependScheme, nil
	case "":
		if orTrue(s.AddPrefixSpace) {
			return "always", nil
		}
		return "never", nil
	}
	return "", unsupported("pre-tokenizer", "Metaspace with prepend_scheme "+s.PrependScheme)
}

// addMetaspace adds SentencePiece's treatment of spaces: a mark stands for them, and one is put before the
// text ("first") or before every part of it between added tokens ("always").
func (p *preTokenizer) addMetaspace(s section) error {
	mark := cmp.Or(s.Replacement, spaceMark)
	if utf8.RuneCountInString(mark) != 1 {
		return formatError("the replacement of a Metaspace is %.20q instead of one character", mark)
	}
	scheme, err := s.scheme()
	if err != nil {
		return err
	}
	p.stages = append(p.stages, metaspace{mark, scheme == "always"})
	p.first = append(p.first, metaspace{mark, scheme != "never"})
	p.differ = p.differ || scheme == "first"
	if orTrue(s.Split) {
		p.put(separate{finder: literal{mark}, behaviour: mergedWithNext})
	}
	return nil
}

// beginnings are splitters for a text's beginning: the first piece goes on through first, others through rest.
type beginnings struct{ first, rest splitters }

func (b beginnings) split(text string, emit func(string) error) error {
	if len(b.first) == 0 {
		return whole{}.split(text, emit)
	}
	begun := false
	return b.first[0].split(text, func(piece string) error {
		_, cuts := b.first[0].(separate)
		if begun || cuts && !strings.HasPrefix(text, piece) {
			return b.rest[1:].split(piece, emit)
		}
		begun = true
		return beginnings{b.first[1:], b.rest[1:]}.split(piece, emit)
	})
}

// mapped rewrites pieces.
type mapped struct{ n normalizer }

func (m mapped) split(text string, emit func(string) error) error {
	return whole{}.split(m.n.normalize(text), emit)
}

// oneOf matches one character of a kind.
type oneOf func(rune) bool

func (is oneOf) match(s string, i int) int {
	if r, n := utf8.DecodeRuneInString(s[i:]); is(r) {
		return i + n
	}
	return i
}

// wordsOrMarks is \w+|[^\w\s]+ of the Rust regex crate.
type wordsOrMarks struct{}

func (wordsOrMarks) match(s string, i int) int {
	first, n := utf8.DecodeRuneInString(s[i:])
	if n == 0 || unicode.IsSpace(first) {
		return i
	}
	word := isWord(first)
	for n > 0 {
		i += n
		var r rune
		if r, n = utf8.DecodeRuneInString(s[i:]); isWord(r) != word || unicode.IsSpace(r) {
			return i
		}
	}
	return i
}

// fixedLength cuts text into pieces of so many characters.
type fixedLength int

func (f fixedLength) split(text string, emit func(string) error) error {
	start, count := 0, 0
	for i := range text {
		if count == int(f) {
			if err := emit(text[start:i]); err != nil {
				return err
			}
			start, count = i, 0
		}
		count++
	}
	return whole{}.split(text[start:], emit)
}

// scripts cuts text where the script changes; kana count as Han, and spaces belong to any script. What is
// before the first character of a script is dropped, as Hugging Face does.
type scripts struct{}

func (scripts) split(text string, emit func(string) error) error {
	last, start := "", -1
	for i, r := range text {
		script := scriptOf(r, last)
		if script == "" {
			continue
		}
		if script != last {
			if start >= 0 {
				if err := emit(text[start:i]); err != nil {
					return err
				}
			}
			start = i
		}
		last = script
	}
	if start < 0 {
		return nil
	}
	return whole{}.split(text[start:], emit)
}

// scriptOf returns the script of a character, "" for a space and for one without a script. It looks at the
// likely script first, since there are many.
func scriptOf(r rune, likely string) string {
	switch {
	case r == ' ':
		return ""
	case r == 0x30fc:
		return "Han"
	case r < 0x80:
		if unicode.IsLetter(r) {
			return "Latin"
		}
		return "Common"
	}
	if unicode.In(r, unicode.Hiragana, unicode.Katakana) {
		return "Han"
	}
	if table := unicode.Scripts[likely]; table != nil && unicode.Is(table, r) {
		return likely
	}
	for name, table := range unicode.Scripts {
		if unicode.Is(table, r) {
			return name
		}
	}
	return ""
}
