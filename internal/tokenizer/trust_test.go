package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestEncodeSpans: control tokens count outside of plain spans only, also where one reaches across a border.
func TestEncodeSpans(t *testing.T) {
	added := `{"id": 4, "content": "<x>", "special": true}, {"id": 5, "content": "<x>b", "special": true}, {"id": 6, "content": "AA", "special": true, "normalized": true}`
	for _, normalizer := range []string{"null", `{"type": "Lowercase"}`, `{"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "a"}, {"type": "Lowercase"}]}`} {
		tok, err := fromJSON(fmt.Sprintf(smallJSON, added, normalizer, "null"), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			text  string
			plain []Span
			want  int // control tokens
		}{
			{"<x>a<x>", nil, 2}, {"<x>a<x>", []Span{{0, 7}}, 0}, {"<x>a<x>", []Span{{3, 4}}, 2}, {"<x>a<x>", []Span{{3, 7}}, 1},
			{"<x>b", []Span{{3, 4}}, 1}, // the longer one reaches into plain text, the shorter one does not
			{"<x>b", []Span{{0, 1}}, 0}, {"<x>b", []Span{{2, 3}}, 0}, {"<x>", []Span{{3, 3}}, 1}, {"a<x>a<x>a", []Span{{0, 1}, {4, 5}, {8, 9}}, 2},
		} {
			ids, err := tok.EncodeSpans(nil, c.text, Options{ParseSpecial: true}, c.plain)
			if err != nil {
				t.Fatal(err)
			}
			if got := countSpecial(tok, ids); got != c.want {
				t.Errorf("%s: %q with %v has %d control tokens, want %d: %v", normalizer, c.text, c.plain, got, c.want, ids)
			}
		}
	}
}

func countSpecial(tok *Tokenizer, ids []int32) (n int) {
	for _, id := range ids {
		if tok.IsSpecial(id) {
			n++
		}
	}
	return n
}

// TestEncodeSpansNormalized: tokens that are looked for in normalized text.
func TestEncodeSpansNormalized(t *testing.T) {
	added := `{"id": 6, "content": "AA", "special": true, "normalized": true}`
	for normalizer, texts := range map[string][2]string{"null": {"AAbAA", "AA"}, `{"type": "Lowercase"}`: {"AaİaA", "Aa"}} {
		tok, err := fromJSON(fmt.Sprintf(smallJSON, added, normalizer, "null"), "")
		if err != nil {
			t.Fatal(err)
		}
		text, token := texts[0], texts[1]
		for plain, want := range map[Span]int{{0, 0}: 2, {0, 2}: 1, {0, len(text)}: 0, {2, len(text) - 2}: 2, {len(text) - len(token), len(text)}: 1, {1, 3}: 1} {
			ids, err := tok.EncodeSpans(nil, text, Options{ParseSpecial: true}, []Span{plain})
			if got := countSpecial(tok, ids); err != nil || got != want {
				t.Errorf("%s: %q with %v has %d control tokens, want %d: %v", normalizer, text, plain, got, want, err)
			}
		}
	}
}

// TestEncodeSpansSame: spans without control tokens change nothing, and a span over all is as if nothing
// were parsed.
func TestEncodeSpansSame(t *testing.T) {
	tok := storyteller(t)
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"<|im_start|>", "<|im_end|>\n", "user\n", "Hello ", "  ", "e\u0301", "story", "\xff"}), 0, 12)
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		var plain []Span
		for _, part := range parts.Draw(t, "parts") {
			if !strings.HasPrefix(part, "<|") && rapid.Bool().Draw(t, "plain") {
				plain = append(plain, Span{text.Len(), text.Len() + len(part)})
			}
			text.WriteString(part)
		}
		o := Options{ParseSpecial: true}
		want, err := tok.Encode(nil, text.String(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tok.EncodeSpans(nil, text.String(), o, plain); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q with %v: %v, %v; want %v", text.String(), plain, got, err, want)
		}
		want, _ = tok.Encode(nil, text.String(), Options{})
		if got, err := tok.EncodeSpans(nil, text.String(), o, []Span{{0, text.Len()}}); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q, all plain: %v, %v; want %v", text.String(), got, err, want)
		}
	})
}

// TestBorders: the borders of spans that are found in one pass are those that normalizing each beginning gives.
func TestBorders(t *testing.T) {
	all := []normalizer{
		prepend{spaceMark}, replace{" ", spaceMark}, replace{"b", "bb"}, // what they rewrite cannot be cut
		replace{"aab", "b"}, replace{"aa", ""}, lowercase{}, replace{"", "x"}, strip{left: true},
	}
	rapid.Check(t, func(t *rapid.T) {
		var chosen normalizers
		exact := true
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(all)-1), 1, 3).Draw(t, "normalizers") {
			chosen = append(chosen, all[i])
			exact = exact && i < 3
		}
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", " ", "A", "aab", spaceMark}), 1, 12).Draw(t, "text"), "")
		at := rapid.SliceOfN(rapid.IntRange(0, len(text)), 0, 6).Draw(t, "places")
		slices.Sort(at)
		n := normalizer(chosen)
		if len(chosen) == 1 {
			n = chosen[0]
		}
		after := n.normalize(text)
		got := bordersAfter(at, text, after, n)
		last := 0
		for i, place := range at {
			// A place within what one of several stages rewrites has no border of its own: any near it will do.
			if last = max(last, borderAfter(text[:place], after, n)); got[i] != last && (exact || len(chosen) == 1) {
				t.Errorf("%+v: %q is %q, and place %d is at %d, want %d", chosen, text, after, place, got[i], last)
			}
			if i > 0 && got[i] < got[i-1] || got[i] < 0 || got[i] > len(after) {
				t.Errorf("%+v: %q is %q, and places %v are at %v", chosen, text, after, at, got)
			}
		}
	})
}
