package regular

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// must gives the language, if there is no error.
func must(t testing.TB) func(*DFA, error) *DFA {
	return func(d *DFA, err error) *DFA {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

// Operations mean what they mean for sets of texts.
func TestOperations(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	ok := must(t)
	for range 300 {
		b := NewBuilder(Limits{})
		d, err := b.Regexp(randomPattern(r, r.IntN(4), false), r.IntN(2) == 0)
		if err != nil {
			continue // a quantifier of an anchor
		}
		e, err := b.Regexp(randomPattern(r, r.IntN(4), false), r.IntN(2) == 0)
		if err != nil {
			continue
		}
		union, both, not, only := ok(b.Union(d, e)), ok(b.Intersect(d, e)), ok(b.Complement(d)), ok(b.Difference(d, e))
		two, twice, star := ok(b.Repeat(d, 2, 2)), ok(b.Repeat(d, 2, 3)), ok(b.Repeat(d, 0, -1))
		for range 40 {
			x, y := randomText(r), randomText(r)
			inD, inE := d.Match(x), e.Match(x)
			if union.Match(x) != (inD || inE) || both.Match(x) != (inD && inE) || not.Match(x) == inD || only.Match(x) != (inD && !inE) {
				t.Fatalf("%q: %v %v", x, inD, inE)
			}
			if inD && d.Match(y) && (!twice.Match(x+y) || !star.Match(x+y)) {
				t.Fatalf("%q %q: a repetition is missing", x, y)
			}
			if got, want := two.Match(x), splits(x, d); got != want {
				t.Fatalf("%q as two: %v, want %v", x, got, want)
			}
		}
		laws(t, b, d, e)
	}
}

// splits says whether x is two texts of d.
func splits(x string, d *DFA) bool {
	for i := range len(x) + 1 {
		if d.Match(x[:i]) && d.Match(x[i:]) {
			return true
		}
	}
	return false
}

// laws of sets, where equal languages are equal automata.
func laws(t *testing.T, b *Builder, d, e *DFA) {
	t.Helper()
	ok := must(t)
	twice := ok(b.Complement(ok(b.Complement(d))))
	morgan := ok(b.Complement(ok(b.Union(ok(b.Complement(d)), ok(b.Complement(e))))))
	if !twice.Equal(d) || !morgan.Equal(ok(b.Intersect(d, e))) || !ok(b.Union(d, e)).Equal(ok(b.Union(e, d))) {
		t.Fatal("a law of sets does not hold")
	}
	if !ok(b.Difference(ok(b.Intersect(d, e)), d)).Empty() {
		t.Fatal("an intersection is no subset")
	}
}

func TestMinimal(t *testing.T) {
	for pattern, states := range map[string]int{`[]`: 1, `a*`: 1, `(a|b)*abb`: 4, `a{3}|a{3}`: 4, `(aa)*|(aaa)*`: 6, `(?:a|ab|abc)(?:c|)`: 5} {
		d := build(t, pattern, false)
		if d.States() != states {
			t.Errorf("%s: %d states, want %d", pattern, d.States(), states)
		}
	}
}

func TestStrings(t *testing.T) {
	b := NewBuilder(Limits{})
	ok := must(t)
	texts := []string{"", "a", "ab", "b", "\u00e9"}
	got, all := ok(b.Literal(texts...)).Strings(5)
	if !all || !slices.Equal(got, texts) {
		t.Error(got, all)
	}
	if _, all := ok(b.Literal(texts...)).Strings(4); all {
		t.Error("there are more than 4")
	}
	if _, all := build(t, `a*`, false).Strings(1000); all || build(t, `a*`, false).Finite() {
		t.Error("a* has no end")
	}
	if s, ok := build(t, `aaa|bb|cccc`, false).Shortest(); !ok || s != "bb" {
		t.Error(s, ok)
	}
	if _, ok := build(t, `[]`, false).Shortest(); ok {
		t.Error("nothing has a shortest text")
	}
}

func TestLength(t *testing.T) {
	d := must(t)(NewBuilder(Limits{}).Length(1, 3))
	for text, want := range map[string]bool{"": false, "a": true, "\u00e9\u20ac\U0001f600": true, "abcd": false, "\n": true, "\xc3": false} {
		if d.Match(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	if !must(t)(NewBuilder(Limits{}).Length(0, -1)).Equal(must(t)(NewBuilder(Limits{}).Text())) {
		t.Error("any length is any text")
	}
}

func FuzzRegexp(f *testing.F) {
	for _, seed := range []string{`^(?:a|[b-d\p{L}]){2,}?$`, `(?=x)(?!y)\bz\B`, `\u{1F600}\x41\cA\0[^\]]`, `(?i-s:a.)`, `(?<n>a)\k<n>`} {
		f.Add(seed, "ab")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		b := NewBuilder(Limits{States: 300, Steps: 300_000})
		d, err := b.Regexp(pattern, true)
		if err != nil {
			return
		}
		not, err := b.Complement(d)
		if err != nil {
			return
		}
		valid := text == string([]rune(text))
		if d.Match(text) && not.Match(text) || valid != (d.Match(text) || not.Match(text)) {
			t.Fatalf("%q on %q: %v and %v", pattern, text, d.Match(text), not.Match(text))
		}
	})
}
