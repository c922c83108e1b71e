package tokenizer

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// The published patterns that have a hand-written scanner.
const (
	contractionsFold = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	modernTail       = `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	modernHead       = `[^\r\n\p{L}\p{N}]?\p{L}+|`
	casedHead        = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
	casedSecond      = `|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`
	casedTail        = `| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	deepseekHead = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|" + `[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+`
	kimiHead     = `[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+` + contractionsFold +
		`?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*` + contractionsFold + `?|`

	patternGPT2       = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	patternLlama3     = contractionsFold + `|` + modernHead + `\p{N}{1,3}` + modernTail
	patternQwen2      = contractionsFold + `|` + modernHead + `\p{N}` + modernTail
	patternQwen35     = contractionsFold + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternPlain      = modernHead + `\p{N}` + modernTail
	patternMiniCPM    = contractionsFold + `|` + modernHead + `\p{N}+` + modernTail
	patternO200k      = casedHead + contractionsFold + `?` + casedSecond + contractionsFold + `?|\p{N}{1,3}` + casedTail
	patternO200kDigit = casedHead + contractionsFold + `?` + casedSecond + contractionsFold + `?|\p{N}` + casedTail
	patternTekken     = casedHead + casedSecond + `|\p{N}` + casedTail
	patternDeepSeek   = deepseekHead + `[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternHanKana    = `[一-龥぀-ゟ゠-ヿ]+`
	patternSpark      = deepseekHead + `|[\r\n]|\s+(?!\S)|\s+`
	patternKimi       = kimiHead + `\p{N}{1,3}` + modernTail
	patternDigit      = `\p{N}`
	patternDigits3    = `\p{N}{1,3}`
	patternDigits     = `\p{N}+`
)

// scannerFor returns the hand-written scanner of a published pattern, or nil.
func scannerFor(pattern string) scanner {
	switch pattern = escapeBreaks(pattern); pattern {
	case patternGPT2, patternGPT2Short:
		return gpt2Words{}
	case patternLlama3:
		return modernWords{digits: 3, word: letter, contractions: true}
	case patternQwen2, patternBailing, patternBailingPossessive:
		return modernWords{digits: 1, word: letter, contractions: true}
	case patternQwen35:
		return modernWords{digits: 1, word: letter | mark, contractions: true}
	case patternPlain:
		return modernWords{digits: 1, word: letter}
	case patternMiniCPM:
		return modernWords{digits: unlimited, word: letter, contractions: true}
	case patternSeedCoder, patternSeedOSS:
		return modernWords{digits: 1, word: letter, contractions: true, bare: true}
	case patternO200k:
		return casedWords{digits: 3, contractions: true}
	case patternO200kDigit:
		return casedWords{digits: 1, contractions: true}
	case patternTekken:
		return casedWords{digits: 1}
	case patternKimi:
		return casedWords{digits: 3, contractions: true, noHan: true}
	case patternDeepSeek:
		return deepseekWords{}
	case patternSpark:
		return deepseekWords{bare: true}
	case patternHanKana:
		return hanKana{}
	case patternExaoneMoE:
		return exaoneWords{}
	}
	return partFor(pattern)
}

// partFor returns the scanner of one stage of a pre-tokenizer with several, or nil.
func partFor(pattern string) scanner {
	switch pattern {
	case patternDigit:
		return numbers{1}
	case patternDigits3:
		return numbers{3}
	case patternDigits:
		return numbers{unlimited}
	case patternThreeDigits:
		return threeDigits{}
	case patternFalconPunct:
		return runOf{in: isPunctOrASCII}
	case patternDefaultPunct:
		return runOf{in: isPunctButTick}
	case patternChameleonPunct:
		return oneOf(isPunctOrASCII)
	case patternBreak:
		return oneOf(isBreak)
	case patternLine:
		return firstOf{runOf{in: func(r rune) bool { return r != '\n' }}, runOf{in: isNewline}}
	case patternSpacedLetters:
		return runOf{in: func(r rune) bool { return category(r)&letter != 0 }, lead: unicode.IsSpace}
	case patternSpacedPunct:
		return runOf{in: unicode.IsPunct, lead: unicode.IsSpace}
	case patternSentinel, patternImage:
		return sentinels{image: pattern == patternImage}
	case patternIndent:
		return indents{}
	}
	return setFor(pattern)
}

// setFor returns the scanner of a pattern that lists its characters, or nil.
func setFor(pattern string) scanner {
	switch pattern {
	case patternDeepSeekLLM:
		return runOf{in: newRuneSet(deepseekCased).has, lead: unicode.IsSpace}
	case patternDeepSeekLLMPunct:
		return runOf{in: newRuneSet(deepseekPunct).has, lead: unicode.IsSpace}
	case patternCJK:
		return runOf{in: newRuneSet(cjk).has}
	case patternAFMoECJK:
		return runOf{in: newRuneSet(afmoeCJK).has}
	case patternBloom:
		stops := newRuneSet(bloomStops)
		return runOf{in: func(r rune) bool { return !unicode.IsSpace(r) && !stops.has(r) }, lead: isSpaceChar}
	case patternYoutuCJK:
		return firstOf{runOf{in: newRuneSet(hangul).has}, runOf{in: newRuneSet(cjkPunct).has}, runOf{in: newRuneSet(bopomofo).has}, hanKana{}}
	}
	return nil
}

// cutterFor returns the splitter of a pattern that no scanner can do in linear time, or nil.
func cutterFor(pattern string) splitter {
	switch escapeBreaks(pattern) {
	case patternTrailing:
		return trailingSpace{}
	case patternJais2:
		return splitters{isolate{modernWords{digits: 3, word: letter, contractions: true}}, spaceRuns{}}
	case patternAyaDigits:
		return digitGroups{in: isDecimal, atWord: true}
	case patternNumberGroups:
		return digitGroups{in: func(r rune) bool { return category(r)&number != 0 }}
	case patternSuperGroups:
		return digitGroups{in: isDecimal, join: true}
	}
	return nil
}

// escapeBreaks writes line breaks in a pattern as escapes: files have both.
func escapeBreaks(pattern string) string {
	return strings.ReplaceAll(strings.ReplaceAll(pattern, "\r", `\r`), "\n", `\n`)
}

// finderFor returns a finder for any pattern.
func finderFor(pattern string) (finder, error) {
	if s := scannerFor(pattern); s != nil {
		return scan{s}, nil
	}
	return compile(pattern)
}

// splitterFor returns a splitter that isolates the matches of any pattern.
func splitterFor(pattern string) (splitter, error) {
	if s := scannerFor(pattern); s != nil {
		return isolate{s}, nil
	}
	if s := cutterFor(pattern); s != nil {
		return s, nil
	}
	f, err := compile(pattern)
	if err != nil {
		return nil, err
	}
	return separate{finder: f}, nil
}

// patternTimeout bounds the time of a pattern from a file, which may be made to backtrack for ever.
const patternTimeout = 5 * time.Second

// maxBacktracking bounds the memory of a pattern from a file: places to go back to, of 8 bytes.
const maxBacktracking = 1 << 20

// maxPattern bounds the length of a pattern from a file; the longest published one has about 600 bytes.
const maxPattern = 16 << 10

// backtracking finds a pattern that has no scanner.
type backtracking struct{ re *regexp2.Regexp }

func compile(pattern string) (finder, error) {
	if len(pattern) > maxPattern {
		return nil, formatError("a pre-tokenizer's pattern has %d bytes; at most %d are possible", len(pattern), maxPattern)
	}
	// Oniguruma, which the files' patterns are for, always takes ^ and $ for the ends of a line.
	re, err := regexp2.Compile(fromOniguruma(pattern), regexp2.Multiline, regexp2.OptionMaxBacktrackingStackSize(maxBacktracking))
	if err != nil {
		return nil, &UnsupportedError{Part: "pre-tokenizer", Kind: pattern}
	}
	re.MatchTimeout = patternTimeout
	return backtracking{re}, nil
}

func (p backtracking) find(text string, span func(int, int, bool)) error {
	runes := []rune(text)
	at, offset := 0, 0 // rune and byte index
	advance := func(to int) int {
		for ; at < to; at++ {
			_, n := utf8.DecodeRuneInString(text[offset:])
			offset += n
		}
		return offset
	}
	deadline := time.Now().Add(patternTimeout)
	slow := false
	err := p.re.FindRunesMatches(runes, 0, func(m regexp2.MatchView) bool {
		from := offset
		index, length, _ := m.GroupRange(0)
		start := advance(index)
		end := advance(index + length)
		span(from, start, false)
		span(start, end, true)
		slow = time.Now().After(deadline)
		return !slow
	})
	if slow {
		err = fmt.Errorf("it took more than %v", patternTimeout)
	}
	if err != nil {
		return fmt.Errorf("the tokenizer's pre-tokenizer pattern failed on %d bytes of text (shorter text may work): %w", len(text), err)
	}
	span(offset, len(text), false)
	return nil
}
