package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Pre-tokenizers whose patterns look far ahead: done from one place of the text to the next they would
// take quadratic time, so that these cut whole runs at once.

// trailingSpace is `\s+$`: white space at the end of a line is a piece of its own.
type trailingSpace struct{}

func (trailingSpace) split(text string, emit func(string) error) error {
	done := 0
	for start := 0; start < len(text); {
		end := while(text, start, space, unlimited)
		if end == start {
			start += runeLen(text[start:])
			continue
		}
		last := end // of the match: the end of the text, or of the run's last line
		if end < len(text) {
			last = max(start, start+strings.LastIndexByte(text[start:end], '\n'))
		}
		if last > start {
			for _, piece := range []string{text[done:start], text[start:last]} {
				if err := (whole{}).split(piece, emit); err != nil {
					return err
				}
			}
			done = last
		}
		start = end
	}
	return whole{}.split(text[done:], emit)
}

// spaceRuns cuts pieces of white space without line breaks, which Llama 3's pattern leaves whole, as
// Jais 2 does: `\s{512}(?!\S)|\s{256}(?!\S)|…|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}`.
type spaceRuns struct{}

func (spaceRuns) split(text string, emit func(string) error) error {
	if while(text, 0, space, unlimited) < len(text) || lineBreaks(text, 0) > 0 {
		return whole{}.split(text, emit)
	}
	left := utf8.RuneCountInString(text)
	for most := 512; left > 0; most /= 2 {
		for ; left >= most; left -= most {
			end := while(text, 0, space, most)
			if err := emit(text[:end]); err != nil {
				return err
			}
			text = text[end:]
		}
	}
	return nil
}

// digitGroups cuts runs of digits into groups of three from the right.
type digitGroups struct {
	in     func(rune) bool
	join   bool // what is left of the first group stays with the text before the run
	atWord bool // only runs that no word character follows
}

func (p digitGroups) split(text string, emit func(string) error) error {
	start := 0
	cut := func(end int) error {
		piece := text[start:end]
		start = end
		return whole{}.split(piece, emit)
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if !p.in(r) {
			i += n
			continue
		}
		end, digits := p.run(text, i)
		if p.atWord && wordAfter(text[end:]) {
			i = end
			continue
		}
		if !p.join {
			if err := cut(i); err != nil {
				return err
			}
		}
		for ; i < end; digits-- {
			if digits%3 == 0 {
				if err := cut(i); err != nil {
					return err
				}
			}
			_, n := utf8.DecodeRuneInString(text[i:])
			i += n
		}
		if !p.join {
			if err := cut(end); err != nil {
				return err
			}
		}
	}
	return cut(len(text))
}

// run returns the end of the run of digits at i and their number.
func (p digitGroups) run(text string, i int) (end, digits int) {
	end = i
	for end < len(text) {
		r, n := utf8.DecodeRuneInString(text[end:])
		if !p.in(r) {
			break
		}
		end += n
		digits++
	}
	count(end - i)
	return end, digits
}

func isDecimal(r rune) bool { return unicode.Is(unicode.Nd, r) || lateClass(r)&number != 0 }
