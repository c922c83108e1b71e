package tokenizer

import (
	"slices"
	"strings"
)

// Span is a range of bytes of a text.
type Span struct{ Start, End int }

// maxGrowth bounds how many times longer a text may become by normalization.
const maxGrowth = 64

// trust says where control tokens count.
type trust struct {
	parse bool
	plain []Span // where they do not
}

// reach returns how far a control token that begins at start may reach, at most end; start if none may
// begin there.
func (t trust) reach(start, end int) int {
	if !t.parse {
		return start
	}
	i := t.after(start)
	if i == len(t.plain) {
		return end
	}
	return min(end, max(start, t.plain[i].Start))
}

// after returns the first plain span that ends after a place.
func (t trust) after(at int) int {
	i, _ := slices.BinarySearchFunc(t.plain, at, func(s Span, at int) int {
		if s.End <= at {
			return -1
		}
		return 1
	})
	return i
}

// within returns the trust of a part of the text, counted from its beginning.
func (t trust) within(start, end int) trust {
	if len(t.plain) == 0 {
		return t
	}
	var plain []Span
	for _, s := range t.plain[t.after(start):] {
		if s.Start >= end {
			break
		}
		s.Start, s.End = max(s.Start, start)-start, min(s.End, end)-start
		if s.Start < s.End {
			plain = append(plain, s)
		}
	}
	return trust{t.parse, plain}
}

// moved returns the trust of a text after normalization, by normalizing what is before each border.
func (t trust) moved(text, after string, n normalizer) trust {
	plain := make([]Span, len(t.plain))
	for i, s := range t.plain {
		plain[i] = Span{borderAfter(text[:s.Start], after, n), borderAfter(text[:s.End], after, n)}
		if s.End == len(text) {
			plain[i].End = len(after)
		}
	}
	return trust{t.parse, plain}
}

// borderAfter returns where the end of a text's beginning is after normalization.
func borderAfter(before, after string, n normalizer) int {
	s := n.normalize(before)
	if strings.HasPrefix(after, s) {
		return len(s)
	}
	return commonPrefix(s, after)
}
