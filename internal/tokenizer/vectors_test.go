package tokenizer

import (
	"bufio"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/testutil"
	"github.com/spillway/spillway/internal/vfs"
)

// vector is a line of ../shared/tokenizers/*/vectors.jsonl; its README explains the fields.
type vector struct {
	ID           string          `json:"id"`
	Kind         string          `json:"kind"`
	Text         string          `json:"text"`
	IDs          []int32         `json:"ids"`
	IDsSpecial   []int32         `json:"ids_special"`
	IDsPlain     []int32         `json:"ids_plain"`
	ParseSpecial *bool           `json:"parse_special"`
	Decode       json.RawMessage `json:"decode"`
	DecodeSkip   json.RawMessage `json:"decode_skip"`
	Bytes        *string         `json:"bytes"`
	Pieces       []string        `json:"pieces"`
	End          string          `json:"end"`
}

// unpack copies a file, or its .gz, into a folder; it reports whether there is one.
func unpack(t testing.TB, from, to string) bool {
	t.Helper()
	in, err := os.Open(from)
	var r io.Reader = in
	if err != nil {
		if in, err = os.Open(from + ".gz"); err != nil {
			return false
		}
		if r, err = gzip.NewReader(in); err != nil {
			t.Fatal(err)
		}
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, r); err != nil {
		t.Fatal(err)
	}
	return true
}

func readVectors(t *testing.T, path string) []vector {
	t.Helper()
	dir := t.TempDir()
	if !unpack(t, path, filepath.Join(dir, "v")) {
		t.Fatalf("no %s", path)
	}
	file, err := os.Open(filepath.Join(dir, "v"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []vector
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	if err := lines.Err(); err != nil || len(all) == 0 {
		t.Fatalf("%s: %d vectors, %v", path, len(all), err)
	}
	return all
}

// checkVector compares everything that a vector says.
func checkVector(t *testing.T, tok *Tokenizer, v vector) {
	t.Helper()
	if v.Kind == "stream" {
		checkStream(t, tok, v)
		return
	}
	if v.Kind != "decode" {
		parse := v.ParseSpecial == nil || *v.ParseSpecial
		checkEncode(t, tok, v, v.IDs, Options{ParseSpecial: parse})
		if v.IDsSpecial != nil {
			checkEncode(t, tok, v, v.IDsSpecial, Options{AddSpecial: true, ParseSpecial: parse})
		}
		if v.IDsPlain != nil {
			checkEncode(t, tok, v, v.IDsPlain, Options{})
		}
	}
	skipIDs := v.IDs
	if v.IDsSpecial != nil {
		skipIDs = v.IDsSpecial
	}
	checkDecode(t, tok, v, v.Decode, v.IDs, false)
	checkDecode(t, tok, v, v.DecodeSkip, skipIDs, true)
}

func checkEncode(t *testing.T, tok *Tokenizer, v vector, want []int32, o Options) {
	t.Helper()
	got, err := tok.Encode(nil, v.Text, o)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s: Encode(%q, %+v) = %v, %v; want %v", v.ID, v.Text, o, got, err, want)
	}
}

func checkDecode(t *testing.T, tok *Tokenizer, v vector, field json.RawMessage, ids []int32, skip bool) {
	t.Helper()
	if field == nil {
		return
	}
	want := v.Text
	if string(field) != "true" {
		if err := json.Unmarshal(field, &want); err != nil {
			t.Fatal(err)
		}
	}
	if v.Kind == "decode" && v.Bytes != nil {
		raw, err := tok.Decode(ids, skip)
		if err != nil || hex.EncodeToString(raw) != *v.Bytes {
			t.Errorf("%s: Decode(%v) = %x, %v; want %s", v.ID, ids, raw, err, *v.Bytes)
		}
	}
	got, err := tok.DecodeText(ids, skip)
	if err != nil || got != want {
		t.Errorf("%s: DecodeText(%v, %v) = %q, %v; want %q", v.ID, ids, skip, got, err, want)
	}
	if !tok.lenientRuns && slices.Contains(tok.decoder, stageKind(byteFallback{})) && strings.Contains(want, "\ufffd") {
		return // a stream cannot take back what it has shown, see DecodeText
	}
	d := tok.NewDecoder(skip)
	var b strings.Builder
	for _, id := range ids {
		piece, err := d.Push(id)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(piece)
	}
	b.WriteString(d.Flush())
	if b.String() != want {
		t.Errorf("%s: streaming %v gives %q, want %q", v.ID, ids, b.String(), want)
	}
}

func checkStream(t *testing.T, tok *Tokenizer, v vector) {
	t.Helper()
	d := tok.NewDecoder(false)
	for i, id := range v.IDs {
		piece, err := d.Push(id)
		if err != nil || piece != v.Pieces[i] {
			t.Errorf("%s: piece %d (id %d) is %q, %v; want %q", v.ID, i, id, piece, err, v.Pieces[i])
		}
	}
	if end := d.Flush(); end != v.End {
		t.Errorf("%s: the end is %q, want %q", v.ID, end, v.End)
	}
}

// folderSets are the folders of ../shared/tokenizers, by the file that the tokenizer is in.
var folderSets = map[string]string{
	"qwen3": "tokenizer.json", "llama3": "tokenizer.json", "deepseek_v3": "tokenizer.json", "gptoss": "tokenizer.json", "llama2": "tokenizer.json",
	"mistral_v1": "tokenizer.json", "gemma3": "tokenizer.json", "bert_minilm": "tokenizer.json", "xlmr_unigram": "tokenizer.json",
	"mistral_spm_v3": "tokenizer.model", "mistral_tekken": "tekken.json",
}

func TestFolderVectors(t *testing.T) {
	for name, file := range folderSets {
		t.Run(name, func(t *testing.T) {
			from, dir := testutil.Shared(t, "tokenizers/"+name), t.TempDir()
			if !unpack(t, filepath.Join(from, file), filepath.Join(dir, file)) {
				t.Fatalf("no %s", file)
			}
			unpack(t, filepath.Join(from, "tokenizer_config.json"), filepath.Join(dir, "tokenizer_config.json"))
			tok, err := LoadPath(vfs.OS(), dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range readVectors(t, filepath.Join(from, "vectors.jsonl")) {
				checkVector(t, tok, v)
			}
		})
	}
}

// ggufSets are the vocabularies of ../shared/tokenizers/gguf that are supported.
var ggufSets = []string{"deepseek-coder", "falcon", "gpt-2", "qwen35", "starcoder", "llama-spm", "phi-3", "bert-bge"}

func loadGGUFFile(t testing.TB, path string) *Tokenizer {
	t.Helper()
	c, err := checkpoint.Open(vfs.OS(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tok, err := Load(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestGGUFVectors(t *testing.T) {
	for _, name := range ggufSets {
		t.Run(name, func(t *testing.T) {
			from := testutil.Shared(t, "tokenizers/gguf")
			path := filepath.Join(t.TempDir(), name+".gguf")
			unpack(t, filepath.Join(from, name+".gguf"), path)
			tok := loadGGUFFile(t, path)
			for _, v := range readVectors(t, filepath.Join(from, name+".jsonl")) {
				checkVector(t, tok, v)
			}
		})
	}
}

// tokenCase is a case of ../shared/oracle-gguf.
type tokenCase struct {
	Name     string   `json:"name"`
	Text     string   `json:"text"`
	IDs      []int32  `json:"ids"`
	IDsPlain []int32  `json:"ids_plain"`
	Bytes    *string  `json:"bytes_hex"`
	Pieces   []string `json:"piece_hex"`
	Lossy    string   `json:"text_lossy"`
}

func readJSONFile(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

func (c tokenCase) vector() vector {
	return vector{ID: c.Name, Text: c.Text, IDs: c.IDs, IDsPlain: c.IDsPlain}
}

func TestSmolLM2(t *testing.T) {
	path := testutil.SmolLM2(t)
	var cases struct{ Encode, Decode []tokenCase }
	readJSONFile(t, testutil.Shared(t, "oracle-gguf/smollm2-tokenizer.json"), &cases)
	tok := loadGGUFFile(t, path)
	if len(cases.Encode) == 0 || len(cases.Decode) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range cases.Encode {
		checkVector(t, tok, c.vector())
	}
	for _, c := range cases.Decode {
		checkDecode(t, tok, vector{ID: c.Name, Kind: "decode", Text: c.Lossy, Bytes: c.Bytes}, json.RawMessage("true"), c.IDs, false)
		for i, id := range c.IDs {
			if b, err := tok.Bytes(id); err != nil || hex.EncodeToString(b) != c.Pieces[i] {
				t.Errorf("%s: Bytes(%d) = %x, %v; want %s", c.Name, id, b, err, c.Pieces[i])
			}
		}
	}
}

// TestTinyModels runs the cases of the tiny GGUF models.
func TestTinyModels(t *testing.T) {
	dir := testutil.Shared(t, "oracle-gguf/models")
	files, err := filepath.Glob(filepath.Join(dir, "*.gguf"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	ran := 0
	for _, path := range files {
		c, err := checkpoint.Open(vfs.OS(), path)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := Load(c, nil)
		c.Close()
		if err != nil {
			t.Fatal(err)
		}
		var reference struct {
			Cases []tokenCase `json:"tokenizer_cases"`
		}
		readJSONFile(t, strings.TrimSuffix(path, ".gguf")+".json", &reference)
		for _, c := range reference.Cases {
			v := c.vector()
			v.ID = filepath.Base(path)
			checkVector(t, tok, v)
			ran++
		}
	}
	if ran < 300 {
		t.Errorf("only %d cases ran", ran)
	}
}

// storyCase is a prompt of Storyteller's reference.json.
type storyCase struct {
	Text      string  `json:"text"`
	PromptIDs []int32 `json:"prompt_ids"`
}

func TestStoryteller(t *testing.T) {
	var reference struct {
		Cases []storyCase `json:"safetensors"`
	}
	readJSONFile(t, testutil.Shared(t, "models/storyteller/reference.json"), &reference)
	for _, name := range []string{"models/storyteller/storyteller-Q8_0.gguf", "models/storyteller/hf"} {
		tok := loadGGUFFile(t, testutil.Shared(t, name))
		if len(reference.Cases) == 0 {
			t.Fatal("no cases")
		}
		for _, c := range reference.Cases {
			checkVector(t, tok, vector{ID: name, Text: c.Text, IDs: c.PromptIDs, IDsSpecial: c.PromptIDs, Decode: json.RawMessage("true")})
		}
	}
}
