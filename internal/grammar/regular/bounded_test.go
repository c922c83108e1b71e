package regular

import "testing"

// TestBounded compares counting beside an automaton with cutting by the language of all texts of such lengths.
func TestBounded(t *testing.T) {
	for _, pattern := range []string{`[^]*`, `a*b`, `(é|€|😀|x)*`, `https?://[a-z.]+(/[^ ]*)?`, `a{3}|b{9}`, ``} {
		for _, bounds := range [][2]int{{0, 0}, {0, 5}, {2, 5}, {3, 3}, {4, -1}, {9, 40}} {
			b := NewBuilder(Limits{})
			d := must(t)(b.Regexp(pattern, false))
			want := must(t)(b.Intersect(d, must(t)(b.Length(bounds[0], bounds[1]))))
			if got := must(t)(b.Bounded(d, bounds[0], bounds[1])); !got.Equal(want) {
				t.Errorf("%q of %d to %d characters: %d states, want %d", pattern, bounds[0], bounds[1], got.States(), want.States())
			}
		}
	}
}
