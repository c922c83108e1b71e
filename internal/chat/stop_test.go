package chat

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestStopScanner(t *testing.T) {
	for _, c := range []struct {
		stops  string // separated by |
		pieces string // separated by |
		want   string // what is shown, piece by piece and at the end
	}{
		{"END", "ab|c", "ab|c|"},
		{"END", "abE|Nx", "ab|ENx|"},
		{"END", "abE|N|D and more|x", "ab||||"},
		{"END", "E|N", "||EN"},
		{"aab", "aaab", "a|"},
		{"aab", "a|a|a|b", "||a||"},
		{"abcd|bc", "abcd", "a|"},
		{"abcd|bc", "a|b|c|d", "||a||"},
		{"bc|abc", "xabc", "x|"},
		{"", "ab", "ab|"},
	} {
		s := NewStopScanner(strings.Split(c.stops, "|"))
		var got []string
		for piece := range strings.SplitSeq(c.pieces, "|") {
			show, _ := s.Push(piece)
			got = append(got, show)
		}
		got = append(got, s.Flush())
		if strings.Join(got, "|") != c.want {
			t.Errorf("stops %s, pieces %s: %q, want %q", c.stops, c.pieces, strings.Join(got, "|"), c.want)
		}
	}
}

// TestStopScannerCuts: where the pieces are cut changes nothing, and no stop string is shown.
func TestStopScannerCuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringOf(rapid.RuneFrom([]rune("abc")))
		stops := rapid.SliceOfN(letters, 1, 3).Draw(t, "stops")
		text := letters.Draw(t, "text")
		show := func(pieces []string) (string, string) {
			s := NewStopScanner(stops)
			var b strings.Builder
			for _, p := range pieces {
				shown, _ := s.Push(p)
				b.WriteString(shown)
			}
			b.WriteString(s.Flush())
			return b.String(), s.Found()
		}
		var pieces []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		whole, found := show([]string{text})
		cut, foundCut := show(pieces)
		if whole != cut || found != foundCut {
			t.Fatalf("%q at once %q (%s), in pieces %q (%s)", text, whole, found, cut, foundCut)
		}
		for _, stop := range stops {
			if stop != "" && strings.Contains(whole, stop) {
				t.Fatalf("%q shows %q", whole, stop)
			}
		}
	})
}
