package tokenizer

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/vfs"
)

// files is a folder in memory.
type files map[string]string

func (f files) open(name string) (vfs.File, error) {
	text, ok := f[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return vfs.Bytes(name, text), nil
}

const bertVocab = "[PAD]\n[UNK]\r\n[CLS]\n[SEP]\nun\n##aff\n##able\nthe\n!\n漢\n"

func TestBERTVocabulary(t *testing.T) {
	tok, err := loadBeside(files{"vocab.txt": bertVocab}.open, heapAlloc)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		want []int32
	}{
		{"The ÚNAFFABLE!", []int32{2, 7, 4, 5, 6, 8, 3}}, {"漢漢", []int32{2, 9, 9, 3}}, {"unx [SEP]", []int32{2, 1, 3, 3}}, {"", []int32{2, 3}},
	} {
		if got := encode(t, tok, c.text, Options{AddSpecial: true, ParseSpecial: true}); !slices.Equal(got, c.want) {
			t.Errorf("%q is %v, want %v", c.text, got, c.want)
		}
	}
	if text, err := tok.DecodeText([]int32{2, 7, 4, 5, 6, 8, 3}, true); err != nil || text != "the unaffable!" {
		t.Errorf("decoded: %q, %v", text, err)
	}
	cased, err := loadBeside(files{"vocab.txt": bertVocab, "tokenizer_config.json": `{"do_lower_case": false}`}.open, heapAlloc)
	if err != nil {
		t.Fatal(err)
	}
	if got := encode(t, cased, "The the", Options{}); !slices.Equal(got, []int32{1, 7}) {
		t.Errorf("cased: %v", got)
	}
}

// smallTekken is a tekken.json of all bytes and a few words.
func smallTekken(special string) string {
	var b strings.Builder
	b.WriteString(`{"config":{"pattern":"` + strings.ReplaceAll(strings.ReplaceAll(patternTekken, `\`, `\\`), `"`, `\"`) +
		`","default_vocab_size":264,"default_num_special_tokens":4},` + special + `"vocab":[`)
	for i := range 256 {
		fmt.Fprintf(&b, `{"rank":%d,"token_bytes":"%s","token_str":null},`, i, base64.StdEncoding.EncodeToString([]byte{byte(i)}))
	}
	for i, word := range []string{"ab", "bc", " a", "abc", "beyond the size"} {
		fmt.Fprintf(&b, `{"rank":%d,"token_bytes":"%s","token_str":"%s"},`, 256+i, base64.StdEncoding.EncodeToString([]byte(word)), word)
	}
	return strings.TrimSuffix(b.String(), ",") + `]}`
}

func TestTekken(t *testing.T) {
	tok, err := loadBeside(files{"tekken.json": smallTekken("")}.open, heapAlloc)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		want []int32
	}{
		{"abc", []int32{263}}, {"abcx", []int32{263, 124}}, {"bcab", []int32{261, 260}}, {" ab", []int32{36, 260}}, {"</s>é", []int32{2, 199, 173}},
		{"x" + strings.Repeat("ab", 40), append([]int32{124}, slices.Repeat([]int32{260}, 40)...)}, // a long piece
	} {
		if got := encode(t, tok, c.text, Options{ParseSpecial: true}); !slices.Equal(got, c.want) {
			t.Errorf("%q is %v, want %v", c.text, got, c.want)
		}
	}
	if bos, ok := tok.BOS(); !ok || bos != 1 || !tok.AddsBOS() || tok.Size() != 264 || tok.Token(3) != "[INST]" {
		t.Errorf("BOS %d, size %d, token 3 %q", bos, tok.Size(), tok.Token(3))
	}
	named, err := loadBeside(files{"tekken.json": smallTekken(`"special_tokens":[{"rank":1,"token_str":"<go>","is_control":true}],`)}.open, heapAlloc)
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := named.ID("<go>"); !ok || id != 1 || named.Token(0) != "<SPECIAL_0>" || !named.IsSpecial(3) {
		t.Errorf("<go> is %d, token 0 %q", id, named.Token(0))
	}
}

// TestSmallAndLargeRanks: the two ways to merge by rank give the same.
func TestSmallAndLargeRanks(t *testing.T) {
	tok, err := loadBeside(files{"tekken.json": smallTekken("")}.open, heapAlloc)
	if err != nil {
		t.Fatal(err)
	}
	m := tok.model.(*rankBPE)
	for n := range 1 << 10 {
		var piece []byte
		for at := n; at > 0; at /= 3 {
			piece = append(piece, "abc "[at%3])
		}
		if small, large := m.small(nil, string(piece)), m.slow.merge(nil, string(piece), &scratch{}); !slices.Equal(small, large) {
			t.Fatalf("%q: %v by scanning, %v by heap", piece, small, large)
		}
	}
}

func TestGPT2Files(t *testing.T) {
	folder := files{"vocab.json": `{"a": 0, "b": 1, "ab": 2, "Ġ": 3, "Ġa": 4, "<|end|>": 5}`, "merges.txt": "#version: 0.2\na b\r\nĠ a\n", // the first line is a comment
		"tokenizer_config.json": `{"eos_token": "<|end|>", "added_tokens_decoder": {"5": {"content": "<|end|>", "special": true}}}`}
	tok, err := loadBeside(folder.open, heapAlloc)
	if err != nil {
		t.Fatal(err)
	}
	if got := encode(t, tok, "ab ab<|end|>", Options{ParseSpecial: true}); !slices.Equal(got, []int32{2, 3, 2, 5}) {
		t.Errorf("got %v", got)
	}
	if text, err := tok.DecodeText([]int32{2, 3, 2, 5}, true); err != nil || text != "ab ab" || !slices.Equal(tok.EOS(), []int32{5}) {
		t.Errorf("%q, %v, EOS %v", text, err, tok.EOS())
	}
}

func TestGPT2FilesRefuseBadIDs(t *testing.T) {
	for _, added := range []string{`{"x": {"content": "<a>"}}`, `{"-1": {"content": "<a>"}}`, `{"1": 5}`, `{"99999999": {"content": "<a>"}}`} {
		folder := files{"vocab.json": `{"a": 0}`, "merges.txt": "", "tokenizer_config.json": `{"added_tokens_decoder": ` + added + `}`}
		if tok, err := loadBeside(folder.open, heapAlloc); err == nil {
			t.Errorf("%s gives %d tokens and no error", added, tok.Size())
		}
	}
}

// TestLoadPath: what counts of several files, and each file by itself.
func TestLoadPath(t *testing.T) {
	spm, err := os.ReadFile("testdata/sentencepiece/bpe.model")
	if err != nil {
		t.Fatal(err)
	}
	order := []struct {
		size  int // of the vocabulary, to tell which one was loaded
		files files
	}{
		{10, files{"vocab.txt": bertVocab}},
		{2, files{"vocab.json": `{"a": 0, "b": 1}`, "merges.txt": ""}},
		{400, files{"tokenizer.model": string(spm)}},
		{264, files{"tekken.json": smallTekken("")}},
		{10, files{"tokenizer.json": fmt.Sprintf(smallJSON, "", "null", "null")}},
	}
	dir := t.TempDir()
	if _, err := LoadPath(vfs.OS(), dir, nil); err == nil || !strings.Contains(err.Error(), "no tokenizer.json") {
		t.Errorf("an empty folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "m.gguf"), smallGGUF("gpt2", "gpt-2"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(path string, size int) {
		t.Helper()
		if tok, err := LoadPath(vfs.OS(), path, nil); err != nil || tok.Size() != size {
			t.Errorf("%s: %v; want %d tokens", path, err, size)
		}
	}
	check(dir, 9)
	check(filepath.Join(dir, "m.gguf"), 9)
	for _, step := range order {
		for name, text := range step.files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		check(dir, step.size)
		for name := range step.files {
			if name != "merges.txt" {
				check(filepath.Join(dir, name), step.size)
			}
		}
	}
	if _, err := LoadPath(vfs.OS(), filepath.Join(dir, "none"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// smallKind is a GGUF file of a kind that is no BPE, with a score of -1 for each character of a token and -2
// for each token.
func smallKind(kind string, tokens []string, types []int32, more func(b *ggufBuilder)) []byte {
	b := &ggufBuilder{}
	b.key(keyModel, 8)
	b.text(kind)
	b.strings(keyTokens, tokens...)
	b.ints(keyTypes, types...)
	b.list(keyScores, 6, len(tokens))
	for _, token := range tokens {
		b.body = binary.LittleEndian.AppendUint32(b.body, math.Float32bits(-2-float32(len([]rune(token)))))
	}
	more(b)
	return b.file()
}

func (b *ggufBuilder) number(key string, n uint32) {
	b.key(key, 4)
	b.body = binary.LittleEndian.AppendUint32(b.body, n)
}

func (b *ggufBuilder) flag(key string, on byte) {
	b.key(key, 7)
	b.body = append(b.body, on)
}

// TestGGUFKinds: the kinds of GGUF that are no BPE.
func TestGGUFKinds(t *testing.T) {
	t5 := smallKind("t5", []string{"<pad>", "</s>", "<unk>", "▁", "a", "▁a", "b", "fi", "<x>"}, []int32{3, 3, 2, 1, 1, 1, 1, 1, 4}, func(b *ggufBuilder) {
		b.flag(keyPrefixSpace, 1)
		b.flag(keySqueeze, 1)
		b.number(keyEOS, 1)
	})
	bert := smallKind("bert", []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁un", "able", "▁the", "▁!"}, []int32{3, 3, 3, 3, 1, 1, 1, 1}, func(b *ggufBuilder) {
		b.number(keyUnknown, 1)
		b.number(keyCLS, 2)
		b.number(keySEP, 3)
	})
	for _, c := range []struct {
		file []byte
		text string
		want []int32
		back string
	}{
		{t5, "  a  ba漢字 ", []int32{5, 3, 6, 4, 2, 1}, "a ba"},
		{t5, "afi<x>a", []int32{5, 7, 8, 5, 1}, "afi<x> a"},
		{bert, "The únable!", []int32{2, 6, 4, 5, 7, 3}, "the unable!"},
		{bert, "able [SEP]", []int32{2, 1, 3, 3}, ""},
	} {
		tok := loadBytes(t, c.file)
		if got := encode(t, tok, c.text, Options{AddSpecial: true, ParseSpecial: true}); !slices.Equal(got, c.want) {
			t.Errorf("%q is %v, want %v", c.text, got, c.want)
		}
		if text, err := tok.DecodeText(c.want, true); err != nil || text != c.back {
			t.Errorf("%v is %q, %v; want %q", c.want, text, err, c.back)
		}
	}
	file, err := checkpoint.OpenFile(vfs.Bytes("small.gguf", smallGGUF("bert", "")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file, nil); err == nil || !strings.Contains(err.Error(), "is 100") {
		t.Errorf("a vocabulary of 9 tokens without a name for the unknown one: %v", err)
	}
}

func loadBytes(t *testing.T, b []byte) *Tokenizer {
	t.Helper()
	c, err := checkpoint.OpenFile(vfs.Bytes("small.gguf", b))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Load(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}
