package tokenizer

import (
	"fmt"
	"time"
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

	patternGPT2     = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	patternLlama3   = contractionsFold + `|` + modernHead + `\p{N}{1,3}` + modernTail
	patternQwen2    = contractionsFold + `|` + modernHead + `\p{N}` + modernTail
	patternQwen35   = contractionsFold + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternPlain    = modernHead + `\p{N}` + modernTail
	patternMiniCPM  = contractionsFold + `|` + modernHead + `\p{N}+` + modernTail
	patternO200k    = casedHead + contractionsFold + `?` + casedSecond + contractionsFold + `?|\p{N}{1,3}` + casedTail
	patternTekken   = casedHead + casedSecond + `|\p{N}` + casedTail
	patternDeepSeek = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
	patternHanKana  = `[一-龥぀-ゟ゠-ヿ]+`
	patternDigit    = `\p{N}`
	patternDigits3  = `\p{N}{1,3}`
	patternDigits   = `\p{N}+`
)

// scannerFor returns the hand-written scanner of a published pattern, or nil.
func scannerFor(pattern string) scanner {
	switch pattern {
	case patternGPT2:
		return gpt2Words{}
	case patternLlama3:
		return modernWords{digits: 3, word: letter, contractions: true}
	case patternQwen2:
		return modernWords{digits: 1, word: letter, contractions: true}
	case patternQwen35:
		return modernWords{digits: 1, word: letter | mark, contractions: true}
	case patternPlain:
		return modernWords{digits: 1, word: letter}
	case patternMiniCPM:
		return modernWords{digits: unlimited, word: letter, contractions: true}
	case patternO200k:
		return casedWords{digits: 3, contractions: true}
	case patternTekken:
		return casedWords{digits: 1}
	case patternDeepSeek:
		return deepseekWords{}
	case patternHanKana:
		return hanKana{}
	case patternDigit:
		return numbers{1}
	case patternDigits3:
		return numbers{3}
	case patternDigits:
		return numbers{unlimited}
	}
	return nil
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
	re, err := regexp2.Compile(pattern, regexp2.OptionMaxBacktrackingStackSize(maxBacktracking))
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
