package jinja

import (
	"slices"
	"testing"
)

// TestCut: every part of a text knows of each of its bytes where it came from.
func TestCut(t *testing.T) {
	text := Text{s: "0123456789", user: []Span{{1, 3}, {4, 5}, {6, 9}}}
	ofUser := func(t Text) []bool {
		out := make([]bool, len(t.s))
		for i := range out {
			out[i] = t.whole || slices.ContainsFunc(t.user, func(s Span) bool { return s.Start <= i && i < s.End })
		}
		return out
	}
	all := ofUser(text)
	for from := range len(text.s) + 1 {
		for to := from; to <= len(text.s); to++ {
			part := text.cut(from, to)
			if got := ofUser(part); part.s != text.s[from:to] || !slices.Equal(got, all[from:to]) {
				t.Errorf("%d to %d: %q with %v", from, to, part.s, part.user)
			}
			for _, s := range part.user {
				if s.Start >= s.End || s.End > to-from {
					t.Errorf("%d to %d has the span %v", from, to, s)
				}
			}
		}
	}
}
