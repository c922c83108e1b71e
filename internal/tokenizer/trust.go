package tokenizer

import (
	"math"
	"slices"
	"strings"
)

// Span is a range of bytes of a text.
type Span struct{ Start, End int }

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

// moved returns the trust of a text after normalization.
func (t trust) moved(text, after string, n normalizer) trust {
	at := make([]int, 0, 2*len(t.plain))
	for _, s := range t.plain {
		at = append(at, s.Start, s.End)
	}
	at = bordersAfter(at, text, after, n)
	plain := make([]Span, len(t.plain))
	for i, s := range t.plain {
		plain[i] = Span{at[2*i], at[2*i+1]}
		if s.End == len(text) {
			plain[i].End = len(after)
		}
	}
	return trust{t.parse, plain}
}

// bordersAfter is borderAfter for many places in a text, in order, as the results are. Where spaces are written as marks, as in most
// tokenizers that need it, all are found in one pass.
func bordersAfter(at []int, text, after string, n normalizer) []int {
	switch n := n.(type) {
	case normalizers:
		for _, each := range n {
			next, err := normalizedTo(each, text, math.MaxInt)
			if err != nil {
				next = text
			}
			at, text = bordersAfter(at, text, next, each), next
		}
		return at
	case prepend:
		return n.borders(at)
	case replace:
		if n.old != "" {
			return n.borders(at, text, after)
		}
	}
	out := make([]int, len(at))
	last := 0
	for i, place := range at {
		last = max(last, borderAfter(text[:place], after, n))
		out[i] = last
	}
	return out
}

func (p prepend) borders(at []int) []int {
	out := make([]int, len(at))
	for i, place := range at {
		if out[i] = place; place > 0 {
			out[i] += len(p.prefix)
		}
	}
	return out
}

func (r replace) borders(at []int, text, after string) []int {
	out := make([]int, len(at))
	match, moved, last := indexFrom(text, r.old, 0), 0, 0 // the next match, and by how much what is before it has moved
	for i, place := range at {
		for match+len(r.old) <= place {
			moved += len(r.new) - len(r.old)
			match = indexFrom(text, r.old, match+len(r.old))
		}
		border := place + moved
		if match < place { // which cuts it
			border = match + moved + commonPrefix(text[match:place], after[match+moved:])
		}
		last = max(last, border)
		out[i] = last
	}
	return out
}

// indexFrom returns the first place of a part from a place on, the text's length if there is none.
func indexFrom(text, part string, from int) int {
	if i := strings.Index(text[from:], part); i >= 0 {
		return from + i
	}
	return len(text)
}

// borderAfter returns where the end of a text's beginning is after normalization.
func borderAfter(before, after string, n normalizer) int {
	s := n.normalize(before)
	if strings.HasPrefix(after, s) {
		return len(s)
	}
	return commonPrefix(s, after)
}
