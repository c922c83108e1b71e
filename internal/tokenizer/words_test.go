package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// crossing has a token in which a space follows a letter, so that text may be cut before spaces only where
// another letter is before them.
const crossing = `{"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"},
	"decoder":{"type":"Replace","pattern":{"String":"▁"},"content":" "},
	"model":{"type":"BPE","unk_token":"u","fuse_unk":FUSE,"vocab":{"u":0,"a":1,"b":2,"▁":3,"a▁":4,"a▁b":5,"▁b":6,"▁a":7,"ab":8},
	"merges":[["a","▁"],["▁","b"],["a▁","b"],["▁","a"],["a","b"]]}}`

func TestWordsAreCutWhereNothingCrosses(t *testing.T) {
	for _, fuse := range []string{"true", "false"} {
		tok, err := fromJSON(strings.Replace(crossing, "FUSE", fuse, 1), "")
		if err != nil {
			t.Fatal(err)
		}
		if got := encode(t, tok, "a b", Options{}); !slices.Equal(got, []int32{5}) {
			t.Errorf("a b is %v", got)
		}
		m := tok.model.(*charBPE)
		if fuse == "false" {
			m.words.init(tok.vocab)
			if got := m.words.next("aab▁b▁a"); got != len("aab") {
				t.Errorf("the first word ends at %d", got)
			}
			if got := m.words.next("a▁▁a"); got != len("a▁") {
				t.Errorf("the first word ends at %d", got)
			}
		}
		r := rand.New(rand.NewPCG(9, 10))
		s := new(scratch)
		for range 5000 {
			var b strings.Builder
			for range r.IntN(12) {
				b.WriteString([]string{"a", "b", "▁", "x", "\xff"}[r.IntN(5)])
			}
			if got, want := m.encode(nil, b.String(), s), m.merge(nil, b.String(), new(scratch)); !slices.Equal(got, want) {
				t.Fatalf("fuse %s: %q is %v, by merges alone %v", fuse, b.String(), got, want)
			}
		}
	}
}

// TestTokenThatMergesMiss has a token that its own bytes never become.
func TestTokenThatMergesMiss(t *testing.T) {
	const file = `{"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"decoder":{"type":"ByteLevel"},
		"model":{"type":"BPE","vocab":{"a":0,"b":1,"c":2,"ab":3,"bc":4,"abc":5},"ignore_merges":IGNORE,"merges":["b c","a b","ab c"]}}`
	for ignore, want := range map[string][]int32{"false": {0, 4}, "true": {5}} {
		tok, err := fromJSON(strings.Replace(file, "IGNORE", ignore, 1), "")
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if got := encode(t, tok, "abc", Options{}); !slices.Equal(got, want) {
				t.Errorf("ignore_merges %s: abc is %v, want %v", ignore, got, want)
			}
		}
	}
}

// TestEncodeIsConcurrent lets several texts at once fill what a tokenizer remembers.
func TestEncodeIsConcurrent(t *testing.T) {
	tok := storyteller(t)
	want := encode(t, storyteller(t), manyWords, Options{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				if got, err := tok.Encode(nil, manyWords, Options{}); err != nil || !slices.Equal(got, want) {
					t.Errorf("got %v, %v; want %v", got, err, want)
					return
				}
			}
		})
	}
	all.Wait()
}

var manyWords = strings.Repeat("Once upon a time there was a fox. It's 12345 unwordly wörds\n\n  long; ", 20)
