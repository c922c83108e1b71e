package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// families are the pre-tokenizers of all names, made once.
func families(t testing.TB) map[string]splitters {
	t.Helper()
	all := map[string]splitters{}
	for _, name := range preNames {
		how, ok := preFor(name)
		if !ok {
			t.Fatalf("%q is not known", name)
		}
		for _, pattern := range how.patterns {
			s, err := splitterFor(pattern)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = append(all[name], s)
		}
	}
	return all
}

// checkPieces sees that the pieces are the text, and none is empty.
func checkPieces(t *testing.T, name string, s splitter, text string) {
	t.Helper()
	pieces := piecesOf(t, s, text)
	if strings.Join(pieces, "") != text {
		t.Fatalf("%s: %q becomes %q", name, text, pieces)
	}
	for _, piece := range pieces {
		if piece == "" {
			t.Fatalf("%s: %q has an empty piece: %q", name, text, pieces)
		}
	}
}

// checkRoundTrip is what byte-level BPE promises: the ids of any text stand for its bytes, after the
// normalizer if there is one.
func checkRoundTrip(t *testing.T, tok *Tokenizer, text string) {
	t.Helper()
	if tok.normalizer != nil {
		text = tok.normalizer.normalize(text)
	}
	ids := encode(t, tok, text, Options{})
	got, err := tok.Decode(ids, false)
	if err != nil || string(got) != text {
		t.Fatalf("%q is %v, which is %q, %v", text, ids, got, err)
	}
}

func FuzzEncode(f *testing.F) {
	for _, seed := range []string{"Hello, wörld! it's 12345\n\n  x", "\xff\xc3 ſ'ſ", "<sentinel:1>IMGIMGABZ", "中文かな한글 e\u0301", strings.Repeat(" ", 600) + "x"} {
		f.Add(seed)
	}
	all, tok := families(f), storyteller(f)
	f.Fuzz(func(t *testing.T, text string) {
		for name, s := range all {
			checkPieces(t, name, s, text)
		}
		checkRoundTrip(t, tok, text)
	})
}

func TestRoundTrips(t *testing.T) {
	all := families(t)
	toks := map[string]*Tokenizer{"storyteller": storyteller(t)}
	if !testing.Short() {
		for _, name := range []string{"gpt-2", "falcon", "deepseek-coder", "starcoder", "qwen35"} {
			toks[name] = loadGGUFFile(t, unpackGGUF(t, name))
		}
	}
	for name, tok := range toks {
		if m := tok.model.(*bpe); slices.Contains(m.start[:], noToken) {
			t.Logf("%s has no token for some bytes, and drops them", name)
			delete(toks, name)
		}
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		text := randomText(r)
		for name, s := range all {
			checkPieces(t, name, s, text)
		}
		for _, tok := range toks {
			checkRoundTrip(t, tok, text)
		}
	}
}

// TestDecodeEncode: what ids stand for, encoded again, stands for the same, for tokenizers that promise it.
func TestDecodeEncode(t *testing.T) {
	tok := storyteller(t)
	r := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		var ids []int32
		for range r.IntN(20) {
			ids = append(ids, int32(r.IntN(tok.Size())))
		}
		text, err := tok.Decode(ids, true)
		if err != nil {
			t.Fatal(err)
		}
		checkRoundTrip(t, tok, string(text))
	}
}
