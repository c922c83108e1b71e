package grammar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// runTokens are all bytes, and random words of some alphabets, also longer than runs.
func runTokens(rng *rand.Rand) wordTokens {
	w := byteTokens()
	const letters = "abcdefghijklmnopqrstuvwxyz"
	for range 300 {
		alphabet := []string{letters, "ab", letters + "0123456789", letters + "-.", "a.", letters + `":,@/ é`}[rng.IntN(6)]
		text := ""
		for n := 1 + rng.IntN(1+rng.IntN(runLength+6)); len(text) < n; {
			i := rng.IntN(len(alphabet))
			text += alphabet[i : i+1]
		}
		w = append(w, text)
	}
	return w
}

// wideGrammar is a random one over wide classes of bytes, some of which go on where others end.
func wideGrammar(rng *rand.Rand) string {
	class := func() string { return []string{"[a-z]", "[a-z0-9]", "[0-z]", "[^\"]", "[b-z.-]"}[rng.IntN(5)] }
	part := func() string {
		lo := rng.IntN(4)
		return class() + []string{"+", "*", "", fmt.Sprintf("{%d,%d}", lo, lo+1+rng.IntN(40)), fmt.Sprintf("{%d,}", lo)}[rng.IntN(5)]
	}
	text := "root ::= w s w\n"
	for _, rule := range []string{"w", "s"} {
		text += rule + " ::= " + []string{part(), part() + ` "a" ` + class(), `"` + string("-.:a"[rng.IntN(4)]) + `"`, part() + " | " + class()}[rng.IntN(4)] + "\n"
	}
	return text
}

// TestRunsChangeNoMask compares masks with what can be accepted where most of a mask comes from runs.
func TestRunsChangeNoMask(t *testing.T) {
	sources := []Source{
		{Kind: Regex, Text: `[a-z0-9]{1,40}([.][a-z]{2,30})*`},
		{Kind: Regex, Text: `([a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?[.]){1,3}`},
		{Kind: Regex, Text: `[a-z]{18,20}|[a-y0-9]{30}`},
		{Kind: JSONSchema, Text: `{"type":"array","items":{"type":"string","format":"uri","maxLength":60}}`},
		{Kind: JSONSchema, Text: `{"type":"string","format":"email"}`},
		{Kind: JSONSchema, Text: `{"type":"object","additionalProperties":{"type":"string","format":"hostname"}}`},
	}
	for seed := range uint64(100) {
		sources = append(sources, Source{Kind: GBNF, Text: wideGrammar(rand.New(rand.NewPCG(seed, 4)))})
	}
	words := runTokens(rand.New(rand.NewPCG(1, 5)))
	v := mustVocabulary(t, words)
	steps := 0
	for i, source := range sources {
		c, err := Compile(source, v, cfg.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", source.Text, err)
		}
		for round := range uint64(2) {
			steps += randomAnswer(t, rand.New(rand.NewPCG(uint64(i), round)), c, words, source.Text)
		}
	}
	if steps < 1000 || len(v.shared.runs) < manyRuns {
		t.Errorf("%d steps, %d runs", steps, len(v.shared.runs))
	}
}

func TestRunsAreTheirTokens(t *testing.T) {
	words := runTokens(rand.New(rand.NewPCG(2, 5)))
	v := mustVocabulary(t, words)
	var set byteSet
	for b := 'a'; b <= 'z'; b++ {
		set[b/64] |= 1 << (b % 64)
	}
	r := newRuns(v, &set)
	in := func(text string) bool {
		return len(text) <= runLength && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz") == ""
	}
	for id, text := range words {
		twin := slices.Index(words, text)
		if got := r.mask[twin/64]>>(twin%64)&1 != 0; got != in(text) {
			t.Errorf("token %q: %v", text, got)
		}
		if set.has(text[0]) != (text[0] >= 'a' && text[0] <= 'z') {
			t.Errorf("byte %q of token %d", text[0], id)
		}
	}
	var path [maxDepth + 1]byte
	for i, n := range v.nodes {
		path[nodeDepth(n)-1] = uint8(n)
		begin := string(path[:nodeDepth(n)])
		want := true
		for _, text := range words {
			want = want && (in(text) || !strings.HasPrefix(text, begin))
		}
		if got := r.whole[i/64]>>(i%64)&1 != 0; got != want {
			t.Errorf("below %q are other tokens: %v", begin, want)
		}
	}
}

func TestNextZero(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	for range 200 {
		set := make([]uint64, 1+rng.IntN(4))
		for i := range set {
			set[i] = ^(1 << rng.Uint64N(64) * rng.Uint64N(2))
		}
		for i := range uint32(64 * len(set)) {
			want := i
			for int(want) < 64*len(set) && set[want/64]>>(want%64)&1 != 0 {
				want++
			}
			if got := nextZero(set, i); got != want {
				t.Fatalf("from %d on %x: %d, want %d", i, set, got, want)
			}
		}
	}
}

// TestRunsAreBounded asks for many sets: what is kept of them, and of masks, stays within the limit.
func TestRunsAreBounded(t *testing.T) {
	v := mustVocabulary(t, runTokens(rand.New(rand.NewPCG(3, 5))))
	one := v.runBytes()
	for _, limit := range []int{one, 3 * one, 10 * one, 100 * one} {
		v.LimitShared(limit)
		for i := range uint64(200) {
			set := byteSet{i % 50, 1}
			first, again := v.runs(&set), v.runs(&set)
			if room := 2*one <= limit; i == 0 && (first != nil || room != (again != nil)) {
				t.Errorf("asked once %v, twice %v", first != nil, again != nil)
			}
			if i%7 == 0 {
				v.shared.put(fmt.Sprint(i), &partMask{bytes: one})
			}
		}
		total := 0
		for _, k := range v.shared.runs {
			total += k.bytes
		}
		if total > limit/2 || len(v.shared.runs) > manyRuns || len(v.shared.asked) > manyAsked {
			t.Errorf("%d runs of %d bytes, %d sets; the limit is %d", len(v.shared.runs), total, len(v.shared.asked), limit)
		}
		for key, m := range v.shared.masks {
			total += m.bytes + len(key)
		}
		if total != v.shared.bytes || total > max(limit, 2*one) {
			t.Errorf("%d bytes are counted, %d are there; the limit is %d", v.shared.bytes, total, limit)
		}
	}
}
