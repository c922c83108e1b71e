package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// while returns the end of the longest run from i of characters in any of the classes, but of no more
// than most characters.
func while(s string, i int, in class, most int) int {
	return whileNot(s, i, in, 0, most)
}

// whileNot is while for characters that are in none of the classes not.
func whileNot(s string, i int, in, not class, most int) int {
	start := i
	for ; most > 0; most-- {
		c, n := classOf(s, i)
		if c&in == 0 || c&not != 0 {
			break
		}
		i += n
	}
	count(i - start)
	return i
}

// others returns the end of the run from i of characters in none of the classes.
func others(s string, i int, not class) int {
	start := i
	for {
		c, n := classOf(s, i)
		if n == 0 || c&not != 0 {
			count(i - start)
			return i
		}
		i += n
	}
}

const unlimited = int(^uint(0) >> 1)

// spaces is `\s+(?!\S)|\s+`: a run of white space without its last character if something follows.
func spaces(s string, i int) int {
	end := while(s, i, space, unlimited)
	if end == len(s) || end == i {
		return end
	}
	_, n := utf8.DecodeLastRuneInString(s[i:end])
	if end-n > i {
		return end - n
	}
	return end
}

// lineBreaks is `\s*[\r\n]+`: white space up to and with its last line break, or i.
func lineBreaks(s string, i int) int {
	end := while(s, i, space, unlimited)
	return i + strings.LastIndexAny(s[i:end], "\r\n") + 1
}

// contraction is `'s|'t|'re|'ve|'m|'ll|'d`, in any case if fold. The long s (U+017F) folds to s.
func contraction(s string, i int, fold bool) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return i
	}
	if fold && strings.HasPrefix(s[i+1:], "ſ") {
		return i + 1 + len("ſ")
	}
	a := s[i+1]
	b := byte(0)
	if i+2 < len(s) {
		b = s[i+2]
	}
	if fold {
		a |= 0x20
		b |= 0x20
	}
	switch {
	case a == 's' || a == 't' || a == 'm' || a == 'd':
		return i + 2
	case a == 'r' && b == 'e', a == 'v' && b == 'e', a == 'l' && b == 'l':
		return i + 3
	}
	return i
}

// gpt2Words is GPT-2's pattern:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
type gpt2Words struct{}

func (gpt2Words) match(s string, i int) int {
	if end := contraction(s, i, false); end > i {
		return end
	}
	start := i
	if s[i] == ' ' {
		start++
	}
	c, n := classOf(s, start)
	switch {
	case n == 0 || c&space != 0:
		return spaces(s, i)
	case c&letter != 0:
		return while(s, start, letter, unlimited)
	case c&number != 0:
		return while(s, start, number, unlimited)
	}
	return others(s, start, space|letter|number)
}

// modernWords is the pattern of cl100k, Llama 3, Qwen and their kin:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
type modernWords struct {
	digits       int   // the most digits of a piece: 1, 3 or unlimited
	word         class // letter, or letter|mark where marks belong to words
	contractions bool
	bare         bool // line breaks do not belong to the symbols before them
}

func (p modernWords) match(s string, i int) int {
	if p.contractions {
		if end := contraction(s, i, true); end > i {
			return end
		}
	}
	c, n := classOf(s, i)
	if c&p.word != 0 {
		return while(s, i, p.word, unlimited)
	}
	if c&(newline|letter|number) == 0 {
		if end := while(s, i+n, p.word, unlimited); end > i+n {
			return end
		}
	}
	if c&number != 0 {
		return while(s, i, number, p.digits)
	}
	trail := newline
	if p.bare {
		trail = 0
	}
	if end := symbols(s, i, p.word, trail, 0); end > i {
		return end
	}
	if end := lineBreaks(s, i); end > i {
		return end
	}
	return spaces(s, i)
}

// symbols is ` ?[^\s\p{L}\p{N}]+[\r\n]*`, or i; word may take marks out, slash may be allowed at the end.
func symbols(s string, i int, word, trail class, slash byte) int {
	start := i
	if s[i] == ' ' {
		start++
	}
	end := others(s, start, space|letter|number|word)
	if end == start {
		return i
	}
	for end < len(s) && (asciiIs(s[end], trail) || slash != 0 && s[end] == slash) {
		end++
	}
	return end
}

func asciiIs(c byte, in class) bool { return c < utf8.RuneSelf && asciiClass[c]&in != 0 }

// casedWords is the pattern of o200k (GPT-4o, gpt-oss, Llama 4) and Tekken: words are cut where upper
// case follows lower case.
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|
//	\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
type casedWords struct {
	digits       int
	contractions bool
	noHan        bool // Kimi K2: runs of Han are pieces, words have none, and no / ends symbols
}

func (p casedWords) match(s string, i int) int {
	c, n := classOf(s, i)
	if p.noHan && c&han != 0 {
		return while(s, i, han, unlimited)
	}
	if end := p.word(s, i, c, n); end > i {
		if p.contractions {
			end = contraction(s, end, true)
		}
		return end
	}
	if c&number != 0 {
		return while(s, i, number, p.digits)
	}
	slash := byte('/')
	if p.noHan {
		slash = 0
	}
	if end := symbols(s, i, 0, newline, slash); end > i {
		return end
	}
	if end := lineBreaks(s, i); end > i {
		return end
	}
	return spaces(s, i)
}

// word tries both alternatives with and without the character before the word, in the order in which
// a backtracking engine does.
func (p casedWords) word(s string, i int, c class, n int) int {
	lead := c&(newline|letter|number) == 0
	not := class(0)
	if p.noHan {
		not = han
	}
	if lead {
		if end := mixedCase(s, i+n, not); end > i+n {
			return end
		}
	}
	if end := mixedCase(s, i, not); end > i {
		return end
	}
	if lead {
		if end := upperFirst(s, i+n, not); end > i+n {
			return end
		}
	}
	return upperFirst(s, i, not)
}

// mixedCase is `[upper]*[lower]+`, or i.
func mixedCase(s string, i int, not class) int {
	end := whileNot(s, i, upper, not, unlimited)
	if after := whileNot(s, end, lower, not, unlimited); after > end {
		return after
	}
	// Give back: the match ends after the last character of the run that is lower too.
	for start := end; end > i; {
		r, n := utf8.DecodeLastRuneInString(s[i:end])
		if classify(r)&lower != 0 {
			count(start - end)
			return end
		}
		end -= n
	}
	return i
}

// upperFirst is `[upper]+[lower]*`, or i.
func upperFirst(s string, i int, not class) int {
	end := whileNot(s, i, upper, not, unlimited)
	if end == i {
		return i
	}
	return whileNot(s, end, lower, not, unlimited)
}

// numbers is `\p{N}{1,most}`.
type numbers struct{ most int }

func (p numbers) match(s string, i int) int { return while(s, i, number, p.most) }

// hanKana is `[一-龥぀-ゟ゠-ヿ]+` of DeepSeek V3.
type hanKana struct{}

func (hanKana) match(s string, i int) int {
	for i < len(s) && s[i] >= utf8.RuneSelf {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isHanKana(r) {
			break
		}
		i += n
	}
	return i
}

func isHanKana(r rune) bool { return r >= 0x4e00 && r <= 0x9fa5 || r >= 0x3040 && r <= 0x30ff }

// deepseekWords is the third stage of DeepSeek V3:
//
//	[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
type deepseekWords struct {
	bare bool // Spark 2.5: symbols without the line breaks after them, which are pieces one by one
}

func (p deepseekWords) match(s string, i int) int {
	c, n := classOf(s, i)
	if asciiIs(s[i], punct) {
		if end := asciiLetters(s, i+1); end > i+1 {
			return end
		}
	}
	if c&(newline|letter|punct) == 0 {
		if end := while(s, i+n, letter|mark, unlimited); end > i+n {
			return end
		}
	}
	if c&(letter|mark) != 0 {
		return while(s, i, letter|mark, unlimited)
	}
	start := i
	if s[i] == ' ' {
		start++
	}
	if end := while(s, start, punct, unlimited); end > start {
		if p.bare {
			return end
		}
		return while(s, end, newline, unlimited)
	}
	if p.bare {
		if c&newline != 0 {
			return i + n
		}
		return spaces(s, i)
	}
	if end := lineBreaks(s, i); end > i {
		return end
	}
	return spaces(s, i)
}

func asciiLetters(s string, i int) int {
	for i < len(s) && (s[i]|0x20) >= 'a' && (s[i]|0x20) <= 'z' {
		i++
	}
	return i
}
