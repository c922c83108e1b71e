package tokenizer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/testutil"
	"github.com/spillway/spillway/internal/vfs"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// loadFolder loads the tokenizer.json of a folder that may hold nothing else.
func loadFolder(dir string, alloc Alloc) (*Tokenizer, error) {
	return loadHF(func(name string) (vfs.File, error) { return vfs.OS().Open(filepath.Join(dir, name)) }, alloc)
}

// storyteller loads the small tokenizer of testdata.
func storyteller(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := loadFolder("testdata/storyteller", heapAlloc)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// fromJSON loads a tokenizer.json that is given as text, and a tokenizer_config.json if that is not empty.
func fromJSON(text, config string) (*Tokenizer, error) {
	return loadHF(func(name string) (vfs.File, error) {
		switch {
		case name == "tokenizer.json":
			return vfs.Bytes(name, text), nil
		case config != "":
			return vfs.Bytes(name, config), nil
		}
		return nil, os.ErrNotExist
	}, heapAlloc)
}

func encode(t testing.TB, tok *Tokenizer, text string, o Options) []int32 {
	t.Helper()
	ids, err := tok.Encode(nil, text, o)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestStorytellerPrompt is a case of the model's reference, made by an independent implementation.
func TestStorytellerPrompt(t *testing.T) {
	tok := storyteller(t)
	text := "<|im_start|>user\nTell me a story about a fox<|im_end|>\n<|im_start|>assistant\n"
	want := []int32{2046, 448, 266, 198, 540, 351, 258, 361, 364, 258, 1380, 2047, 198, 2046, 469, 1344, 600, 198}
	if got := encode(t, tok, text, Options{AddSpecial: true, ParseSpecial: true}); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if plain := encode(t, tok, text, Options{}); slices.Contains(plain, 2046) || len(plain) <= len(want) {
		t.Errorf("without ParseSpecial: %v", plain)
	}
	skipped, err := tok.DecodeText(want, true)
	if err != nil || skipped != "user\nTell me a story about a fox\nassistant\n" {
		t.Errorf("skipping: %q, %v", skipped, err)
	}
}

func TestSpecialIDs(t *testing.T) {
	tok := storyteller(t)
	if _, ok := tok.BOS(); ok || tok.AddsBOS() {
		t.Error("Storyteller has no BOS")
	}
	if eot, ok := tok.EOT(); !ok || eot != 2047 || !slices.Equal(tok.EOS(), []int32{2047}) {
		t.Errorf("EOT %d, EOS %v; want 2047", eot, tok.EOS())
	}
	if id, ok := tok.ID("<|im_start|>"); !ok || id != 2046 || !tok.IsSpecial(id) || tok.Token(id) != "<|im_start|>" {
		t.Errorf("ID(<|im_start|>) = %d", id)
	}
	if id, ok := tok.ID(" a"); !ok || tok.IsSpecial(id) {
		t.Errorf("ID(\" a\") = %d, %v", id, ok)
	}
	if _, ok := tok.ID("no such token"); ok {
		t.Error("a token that is not there was found")
	}
	if tok.Size() != 2048 {
		t.Errorf("Size() = %d", tok.Size())
	}
}

func TestUnknownIDs(t *testing.T) {
	tok := storyteller(t)
	for _, id := range []int32{-1, 2048, 1 << 30} {
		var unknown *UnknownIDError
		if _, err := tok.Decode([]int32{id}, false); !errors.As(err, &unknown) || unknown.ID != id {
			t.Errorf("Decode(%d): %v", id, err)
		}
		if _, err := tok.NewDecoder(true).Push(id); !errors.As(err, &unknown) {
			t.Errorf("Push(%d): %v", id, err)
		}
		if _, err := tok.Bytes(id); !errors.As(err, &unknown) {
			t.Errorf("Bytes(%d): %v", id, err)
		}
		if tok.IsSpecial(id) || tok.Token(id) != "" {
			t.Errorf("id %d is known", id)
		}
	}
}

// TestRoundTrip: any bytes come back, and a stream gives the same text as decoding at once.
func TestRoundTrip(t *testing.T) {
	tok := storyteller(t)
	tok.normalizer = nil
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		ids, err := tok.Encode(nil, text, Options{})
		if err != nil {
			t.Fatal(err)
		}
		back, err := tok.Decode(ids, false)
		if err != nil || string(back) != text {
			t.Fatalf("%q came back as %q, %v", text, back, err)
		}
		d := tok.NewDecoder(false)
		var got strings.Builder
		for _, id := range ids {
			piece, err := d.Push(id)
			if err != nil {
				t.Fatal(err)
			}
			got.WriteString(piece)
		}
		got.WriteString(d.Flush())
		if want := strings.ToValidUTF8(got.String(), "!"); got.String() != want {
			t.Fatalf("a piece is not UTF-8: %q", got.String())
		}
		if want, _ := tok.DecodeText(ids, false); got.String() != want {
			t.Fatalf("the stream gives %q, want %q", got.String(), want)
		}
	})
}

// TestSmallAndLargeMerge: the two ways to merge give the same.
func TestSmallAndLargeMerge(t *testing.T) {
	table := storyteller(t).model.(*bpe).merges
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		a, b := &scratch{}, &scratch{}
		for range 1 + r.IntN(200) {
			a.ids = append(a.ids, uint32(r.IntN(300)))
		}
		b.ids = slices.Clone(a.ids)
		text := slices.Clone(a.ids)
		small, large := mergeSmall(nil, a, table), mergeLarge(nil, b, table)
		if !slices.Equal(small, large) {
			t.Fatalf("%v: %v by scanning, %v by heap", text, small, large)
		}
	}
}

// TestLongPiece would not end in a day if merging were quadratic.
func TestLongPiece(t *testing.T) {
	tok := storyteller(t)
	text := strings.Repeat("e", 1<<20)
	ids := encode(t, tok, text, Options{})
	if back, err := tok.Decode(ids, false); err != nil || string(back) != text {
		t.Errorf("%d ids do not give the text back: %v", len(ids), err)
	}
}

// TestTableSizes holds the memory of a vocabulary of the usual size below 12 MiB and all of it in the
// caller's hands.
func TestTableSizes(t *testing.T) {
	from, dir := testutil.Shared(t, "tokenizers/qwen3"), t.TempDir()
	unpack(t, filepath.Join(from, "tokenizer.json"), filepath.Join(dir, "tokenizer.json"))
	total := 0
	tok, err := loadFolder(dir, func(n int) ([]byte, error) { total += n; return make([]byte, n), nil })
	if err != nil {
		t.Fatal(err)
	}
	if total == 0 || total > 12<<20 {
		t.Errorf("%d tokens take %d bytes", tok.Size(), total)
	}
}

func TestAllocFails(t *testing.T) {
	refused := errors.New("refused")
	calls := 0
	if _, err := loadFolder("testdata/storyteller", func(size int) ([]byte, error) { calls++; return make([]byte, size), nil }); err != nil || calls == 0 {
		t.Fatalf("%d tables, %v", calls, err)
	}
	for n := range calls {
		_, err := loadFolder("testdata/storyteller", func(size int) ([]byte, error) {
			if n--; n < 0 {
				return nil, refused
			}
			return make([]byte, size), nil
		})
		if !errors.Is(err, refused) {
			t.Errorf("got %v", err)
		}
	}
}

// TestNormalization compares with x/text where that is right, and looks at a run of marks, where it is not.
func TestNormalization(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("aeoAé가각각\u0301\u0323\u0307\u0345ﬁ①\u0f73\u1100"))).Draw(t, "text")
		if longMarks(text) {
			t.Skip("x/text would break the run")
		}
		for _, form := range []norm.Form{norm.NFC, norm.NFD, norm.NFKC, norm.NFKD} {
			want := form.String(text)
			if got := canonical(text, form == norm.NFC || form == norm.NFKC, form == norm.NFKC || form == norm.NFKD); got != want {
				t.Fatalf("form %d of %+q is %+q, want %+q", form, text, got, want)
			}
		}
	})
	long := "e" + strings.Repeat("\u0301", 100)
	if got, want := (composer{norm.NFC}).normalize(long), "é"+strings.Repeat("\u0301", 99); got != want {
		t.Errorf("a long run of marks becomes %+q", got)
	}
}

const smallJSON = `{"added_tokens": [%s], "normalizer": %s, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
"post_processor": %s, "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3, "A": 9}, "merges": ["a b"]}}`

func TestAddedTokens(t *testing.T) {
	added := `{"id": 4, "content": "<x>", "special": true, "lstrip": true, "rstrip": true},
		{"id": 5, "content": "<x>y", "special": false}, {"id": 6, "content": "w", "single_word": true},
		{"id": 7, "content": "AB", "normalized": true}, {"id": 8, "content": "a<", "special": true}`
	tok, err := fromJSON(fmt.Sprintf(smallJSON, added, `{"type": "Lowercase"}`, "null"), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text  string
		plain bool
		want  []int32
	}{
		{"a <x> b", false, []int32{0, 4, 1}},       // takes the spaces around it
		{"a <x>y", false, []int32{0, 3, 5}},        // the longest one
		{"aw w wb", false, []int32{0, 3, 6, 3, 1}}, // a whole word only; w itself is not in the vocabulary
		{"abaB", false, []int32{7, 7}},             // found in the normalized text
		{"a<x>y", false, []int32{8}},               // the leftmost one; what is left is not in the vocabulary
		{"a<x>b", true, []int32{0, 1}},             // control tokens are text, which has no tokens for < x >
		{"a <x>y", true, []int32{0, 3, 5}},         // no control token: found all the same
		{"<x><x>", false, []int32{4, 4}}, {"", false, nil}, {" ", false, []int32{3}},
	} {
		if got := encode(t, tok, c.text, Options{ParseSpecial: !c.plain}); !slices.Equal(got, c.want) {
			t.Errorf("%q (plain %v) = %v, want %v", c.text, c.plain, got, c.want)
		}
	}
}

func TestPostProcessors(t *testing.T) {
	const template = `{"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "TemplateProcessing",
		"single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
		"special_tokens": {"<s>": {"id": "<s>", "ids": [4]}, "</s>": {"id": "</s>", "ids": [5]}}}]}`
	added := `{"id": 4, "content": "<s>", "special": true}, {"id": 5, "content": "</s>", "special": true}`
	config := `{"add_bos_token": true, "add_eos_token": false, "bos_token": {"content": "<s>"}, "eos_token": "</s>"}`
	for _, c := range []struct {
		post, config string
		want         []int32
	}{
		{"null", "", []int32{2}}, {"null", config, []int32{4, 2}}, {template, "", []int32{4, 2, 5}}, {template, config, []int32{4, 2, 5}},
	} {
		tok, err := fromJSON(fmt.Sprintf(smallJSON, added, "null", c.post), c.config)
		if err != nil {
			t.Fatal(err)
		}
		if got := encode(t, tok, "ab", Options{AddSpecial: true}); !slices.Equal(got, c.want) {
			t.Errorf("%s %s: %v, want %v", c.post, c.config, got, c.want)
		}
	}
}

// TestRefusals: what is wrong with a file is said, and has a type.
func TestRefusals(t *testing.T) {
	good := fmt.Sprintf(smallJSON, "", "null", "null")
	swap := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("%q is not in the file", old)
		}
		return strings.ReplaceAll(good, old, new)
	}
	for text, want := range map[string]string{
		swap(`"type": "BPE"`, `"type": "WordPieces"`):                                                                     "WordPieces",
		swap(`"type": "BPE"`, `"type": "Unigram"`):                                                                        "another kind",
		swap(`"normalizer": null`, `"normalizer": {"type": "Bert"}`):                                                      "Bert",
		swap(`"normalizer": null`, `"normalizer": {"type": "Replace"}`):                                                   "no pattern",
		swap(`"normalizer": null`, `"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAA"}`):                "base64",
		swap(`"normalizer": null`, `"normalizer": {"type": "Precompiled", "precompiled_charsmap": "//8AAA=="}`):           "character map",
		swap(`"decoder": {"type": "ByteLevel"}`, `"decoder": {"type": "WordPieces"}`):                                     "decoder",
		swap(`"decoder": {"type": "ByteLevel"}`, `"decoder": {"type": "Strip"}`):                                          "Strip",
		swap(`"post_processor": null`, `"post_processor": {"type": "BertProcessing", "cls": ["a", 0], "sep": ["b", 77]}`): "77",
		swap(`["a b"]`, `["a c"]`):        `"c" is not in the vocabulary`,
		swap(`["a b"]`, `["a b c"]`):      "not two tokens",
		swap(`["a b"]`, `[["a"]]`):        "1 parts",
		swap(`["a b"]`, `["b a"]`):        `"b" + "a"`,
		swap(`"b": 1`, `"b": 0`):          "given twice",
		swap(`"b": 1`, `"b": 4000000000`): "far above",
		swap(`"b": 1`, `"b": 1.5`):        "natural number",
		swap(`"b": 1`, `"b": "1"`):        "natural number",
		swap(`"b": 1`, `"\ud800": 1`):     "surrogate",
		swap(`"b": 1`, "\"\x01\": 1"):     "control character",
		swap(`"b": 1`, "\"\xff\": 1"):     "UTF-8",
		good + "x":                        "after its end",
		good[:len(good)-20]:               "ends too early",
		"":                                "ends too early",
		strings.Repeat(`{"a":`, 100):      "nests too deep",
	} {
		_, err := fromJSON(text, "")
		var format *FormatError
		if !errors.As(err, &format) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.80q: error %v, want a FormatError with %q", text, err, want)
		}
	}
	var unsupported *UnsupportedError
	if _, err := fromJSON(swap(`"type": "BPE"`, `"type": "Trigram"`), ""); !errors.As(err, &unsupported) || unsupported.Kind != "Trigram" {
		t.Errorf("Trigram: %v", err)
	}
}

// TestSlowPattern: a pattern that backtracks for ever is an error of the text, not a hang.
func TestSlowPattern(t *testing.T) {
	if testing.Short() {
		t.Skip("takes the pattern's time limit")
	}
	f, err := compile(`(?:a|aa)+$`)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.find(strings.Repeat("a", 200)+"b", func(int, int, bool) {}); err == nil {
		t.Error("no error")
	}
}
