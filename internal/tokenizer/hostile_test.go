package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// hostile are units of texts that make careless tokenizers slow.
var hostile = map[string]string{
	"letter": "a", "capital": "A", "two": "ab", "spaces": " ", "tabs": "\t", "breaks": "\n", "returns": "\r\n", "digits": "7",
	"words": "a ", "late break": " \n", "marks": "\u0301", "letter and mark": "e\u0301", "han": "中", "kana": "か", "han and capital": "中A",
	"quotes": "'", "contractions": "'s", "punctuation": "!", "punctuation and letter": "!a", "spaced punctuation": " !", "broken": "\xff",
	"cut": "\xe2\x96", "mark for a space": spaceMark, "sentinels": "<sentinel:1", "images": "IMGIMGA", "thai": "ก", "emoji": "\U0001f600",
	"wide spaces": "\u3000", "joiners": "\u200d", "nul": "\x00", "title": "ǅ", "half": "½", "ideographic zero": "〇", "control": "<|im_",
}

// countSteps returns the work that f does.
func countSteps(f func()) int64 {
	var n atomic.Int64
	steps = &n
	defer func() { steps = nil }()
	f()
	return n.Load()
}

// TestScannersAreLinear sees that no pre-tokenizer looks at a character more often than a few times,
// whatever the text; one that looks again from each place needs thousands of times as much.
func TestScannersAreLinear(t *testing.T) {
	const size = 20_000
	for _, name := range preNames {
		how, _ := preFor(name)
		var all splitters
		for _, pattern := range how.patterns {
			s, err := splitterFor(pattern)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, s)
		}
		for what, unit := range hostile {
			text := strings.Repeat(unit, size/len(unit)) + "x"
			pieces := 0
			n := countSteps(func() {
				if err := all.split(text, func(string) error { pieces++; return nil }); err != nil {
					t.Fatal(err)
				}
			})
			if n > 16*size {
				t.Errorf("%s, %s: %d steps for %d bytes", name, what, n, size)
			}
			if pieces == 0 {
				t.Errorf("%s, %s: no pieces", name, what)
			}
		}
	}
}

// checkHostile encodes a megabyte of one letter and 32 KiB of each other unit.
func checkHostile(t *testing.T, tok *Tokenizer) {
	t.Helper()
	for what, unit := range hostile {
		size := 32 << 10
		if what == "letter" {
			size = 1 << 20
		}
		text := strings.Repeat(unit, size/len(unit))
		n := countSteps(func() { encode(t, tok, text, Options{ParseSpecial: true}) })
		if n > int64(64*size) {
			t.Errorf("%s: %d steps for %d bytes", what, n, size)
		}
	}
}

// TestHostileTexts counts the merges tried and the characters passed.
func TestHostileTexts(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: a few seconds")
	}
	t.Run("storyteller", func(t *testing.T) { checkHostile(t, storyteller(t)) })
	for _, name := range speedSets {
		t.Run(name, func(t *testing.T) {
			tok, err := loadFolder(hfFolder(t, name), heapAlloc)
			if err != nil {
				t.Fatal(err)
			}
			checkHostile(t, tok)
		})
	}
	for _, name := range []string{"llama-spm", "deepseek-coder", "falcon"} {
		t.Run(name, func(t *testing.T) { checkHostile(t, loadGGUFFile(t, unpackGGUF(t, name))) })
	}
}

// TestCacheNeverChangesAnAnswer encodes random words with a tokenizer that has met many, and with one
// that begins anew each time.
func TestCacheNeverChangesAnAnswer(t *testing.T) {
	sets := map[string]*Tokenizer{"storyteller": storyteller(t)}
	for _, name := range []string{"qwen3", "llama2"} {
		if testing.Short() {
			break
		}
		tok, err := loadFolder(hfFolder(t, name), heapAlloc)
		if err != nil {
			t.Fatal(err)
		}
		sets[name] = tok
	}
	for name, tok := range sets {
		r := rand.New(rand.NewPCG(3, 4))
		for range 20_000 {
			word := randomWord(r, tok)
			warm := tok.model.encode(nil, word, warmScratch(tok))
			cold := mergesOf(t, tok, word)
			if !slices.Equal(warm, cold) {
				t.Fatalf("%s: %q is %v, by merges alone %v", name, word, warm, cold)
			}
		}
	}
}

// randomWord joins a few tokens, or parts of them, so that words and parts of words come up again.
func randomWord(r *rand.Rand, tok *Tokenizer) string {
	var b strings.Builder
	for range 1 + r.IntN(3) {
		token := tok.vocab.bytes(uint32(r.IntN(min(tok.Size(), 3000))))
		b.Write(token)
	}
	return b.String()
}

var warm = map[*Tokenizer]*scratch{}

func warmScratch(tok *Tokenizer) *scratch {
	if warm[tok] == nil {
		warm[tok] = new(scratch)
	}
	return warm[tok]
}

// mergesOf encodes a piece by merges alone.
func mergesOf(t *testing.T, tok *Tokenizer, piece string) []int32 {
	t.Helper()
	m, ok := tok.model.(merger)
	if !ok {
		t.Fatalf("%T has no merges", tok.model)
	}
	if b, ok := m.(*bpe); ok && b.ignoreMerges {
		t.Fatal("the merges are ignored")
	}
	return m.merge(nil, piece, new(scratch))
}

// TestGrowthIsBounded: stages that make much of little are refused, before there is much of it.
func TestGrowthIsBounded(t *testing.T) {
	long := strings.Repeat("a", maxContent)
	stage := `{"type":"Replace","pattern":{"String":"a"},"content":"` + long + `"}`
	pattern := `{"type":"Replace","pattern":{"Regex":"a"},"content":"` + long + `"}`
	const model = `"model":{"type":"WordLevel","vocab":{"a":0}}`
	for name, stages := range map[string]string{
		"strings": strings.Repeat(stage+",", 7) + stage, "patterns": strings.Repeat(pattern+",", 7) + pattern,
	} {
		tok, err := fromJSON(`{"normalizer":{"type":"Sequence","normalizers":[`+stages+`]},`+model+`}`, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tok.Encode(nil, strings.Repeat("a", 1000), Options{}); err == nil || !strings.Contains(err.Error(), "64 times") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := fromJSON(`{"decoder":{"type":"Sequence","decoders":[`+stages+`]},`+model+`}`, ""); err == nil || !strings.Contains(err.Error(), "longer") {
			t.Errorf("decoder of %s: %v", name, err)
		}
		added := `"added_tokens":[{"id":1,"content":"` + long + `","normalized":true}],`
		if _, err := fromJSON(`{`+added+`"normalizer":{"type":"Sequence","normalizers":[`+stages+`]},`+model+`}`, ""); err == nil || !strings.Contains(err.Error(), "added token") {
			t.Errorf("added token, %s: %v", name, err)
		}
	}
	if _, err := (spmNormalizer{}).try("abcdef", 2); err == nil {
		t.Error("a character map may make more than it is allowed")
	}
}
