package tokenizer

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A splitter is a pre-tokenizer: it cuts text into the pieces that the model sees, in order. An error
// means that a pattern from the file took too long.
type splitter interface {
	split(text string, emit func(piece string) error) error
}

// whole gives the text as it is.
type whole struct{}

func (whole) split(text string, emit func(string) error) error {
	if text == "" {
		return nil
	}
	return emit(text)
}

// splitters cut the pieces of one by the next.
type splitters []splitter

func (s splitters) split(text string, emit func(string) error) error {
	if len(s) == 0 {
		return whole{}.split(text, emit)
	}
	for _, each := range slices.Backward(s[1:]) {
		next := emit
		emit = func(piece string) error { return each.split(piece, next) }
	}
	return s[0].split(text, emit)
}

// A scanner is a hand-written pattern: match returns the end of the match that begins exactly at i, or
// i if there is none.
type scanner interface {
	match(s string, i int) int
}

// isolate cuts text into the matches of a scanner and the gaps between them.
type isolate struct{ scanner }

func (p isolate) split(text string, emit func(string) error) error {
	for gap := 0; gap < len(text); {
		start, end := nextMatch(p.scanner, text, gap)
		if gap < start {
			if err := emit(text[gap:start]); err != nil {
				return err
			}
		}
		if start < end {
			if err := emit(text[start:end]); err != nil {
				return err
			}
		}
		gap = end
	}
	return nil
}

// nextMatch returns the first match from i on; both are the text's length if there is none.
func nextMatch(p scanner, text string, i int) (start, end int) {
	for i < len(text) {
		if end := p.match(text, i); end > i {
			return i, end
		}
		_, n := utf8.DecodeRuneInString(text[i:])
		i += n
	}
	return i, i
}

// behaviour says what becomes of the matches of a pattern. The order is that of behaviourOf.
type behaviour int

const (
	isolated behaviour = iota
	removed
	mergedWithPrevious
	mergedWithNext
	contiguous
)

// behaviourOf returns the behaviour that tokenizer.json calls so.
func behaviourOf(name string) (behaviour, bool) {
	names := [...]string{"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"}
	i := slices.Index(names[:], name)
	return behaviour(i), i >= 0
}

// A finder gives the spans of text, in order and without gaps, and says which of them match.
type finder interface {
	find(text string, span func(start, end int, match bool)) error
}

// separate cuts text by any pattern with any behaviour.
type separate struct {
	finder
	behaviour behaviour
	invert    bool
}

func (p separate) split(text string, emit func(string) error) error {
	start, end, last := 0, 0, false // the piece that grows
	var failed error
	flush := func() {
		if end > start && failed == nil {
			failed = emit(text[start:end])
		}
		start = end
	}
	err := p.find(text, func(from, to int, match bool) {
		if from == to {
			return
		}
		match = match != p.invert
		if p.behaviour.breaks(match, last) {
			flush()
		}
		end, last = to, match
		if p.behaviour == removed && match {
			start = to
		}
	})
	if err != nil {
		return err
	}
	flush()
	return failed
}

// breaks reports whether a span, which matches or not, begins a new piece after one that did or did not.
func (b behaviour) breaks(match, last bool) bool {
	switch b {
	case mergedWithPrevious:
		return !match || last
	case mergedWithNext:
		return match || !last
	case contiguous:
		return match != last
	}
	return true
}

// literal finds a fixed string.
type literal struct{ text string }

func (p literal) find(text string, span func(int, int, bool)) error {
	if p.text == "" {
		span(0, len(text), false)
		return nil
	}
	start := 0
	for {
		i := strings.Index(text[start:], p.text)
		if i < 0 {
			break
		}
		span(start, start+i, false)
		span(start+i, start+i+len(p.text), true)
		start += i + len(p.text)
	}
	span(start, len(text), false)
	return nil
}

// scan makes a finder of a scanner.
type scan struct{ scanner }

func (p scan) find(text string, span func(int, int, bool)) error {
	for gap := 0; ; {
		start, end := nextMatch(p.scanner, text, gap)
		span(gap, start, false)
		if start == end {
			return nil
		}
		span(start, end, true)
		gap = end
	}
}

// prefixSpace puts a space before a text that does not begin with one.
type prefixSpace struct{}

func (prefixSpace) split(text string, emit func(string) error) error {
	if text == "" {
		return nil
	}
	if text[0] != ' ' {
		text = " " + text
	}
	return emit(text)
}

// metaspace puts a mark in the place of spaces, and before the text if it does not begin with one.
type metaspace struct {
	mark    string
	prepend bool
}

func (m metaspace) split(text string, emit func(string) error) error {
	text = strings.ReplaceAll(text, " ", m.mark)
	if m.prepend && !strings.HasPrefix(text, m.mark) {
		text = m.mark + text
	}
	return whole{}.split(text, emit)
}
