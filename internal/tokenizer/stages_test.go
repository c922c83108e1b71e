package tokenizer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/vfs"
)

// stageCase is a line of testdata/stages.jsonl: a small tokenizer.json and what Hugging Face's tokenizers
// 0.23.3 makes of texts and ids with it. A vocabulary "bytes" is that of all single bytes.
type stageCase struct {
	Name      string          `json:"name"`
	Tokenizer json.RawMessage `json:"tokenizer"`
	Cases     []vector        `json:"cases"`
}

// byteVocabulary is the vocabulary of all single bytes, by value.
func byteVocabulary(t *testing.T) []byte {
	t.Helper()
	ids := map[string]int{}
	for b := range 256 {
		ids[string(byteToChar(byte(b)))] = b
	}
	if len(ids) != 256 {
		t.Fatalf("%d characters for 256 bytes", len(ids))
	}
	text, err := json.Marshal(ids)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// checkTogether checks vectors in two tests at once, which share the tokenizer as requests do.
func checkTogether(t *testing.T, tok *Tokenizer, vectors []vector) {
	t.Helper()
	for _, name := range []string{"one", "other"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, v := range vectors {
				checkVector(t, tok, v)
			}
		})
	}
}

func TestStages(t *testing.T) {
	f, err := os.Open("testdata/stages.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := byteVocabulary(t)
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	count := 0
	for ; lines.Scan(); count++ {
		var c stageCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.Name, func(t *testing.T) {
			tok, err := fromJSON(string(bytes.ReplaceAll(c.Tokenizer, []byte(`"vocab":"bytes"`), append([]byte(`"vocab":`), all...))), "")
			if err != nil {
				t.Fatal(err)
			}
			checkTogether(t, tok, c.Cases)
		})
	}
	if lines.Err() != nil || count < 60 {
		t.Errorf("%d tokenizers, %v", count, lines.Err())
	}
}

// TestSentencePiece runs small models that SentencePiece 0.2.3 made, and what it makes of texts and ids.
func TestSentencePiece(t *testing.T) {
	models, err := filepath.Glob("testdata/sentencepiece/*.model")
	if err != nil || len(models) != 4 {
		t.Fatal(models, err)
	}
	for _, path := range models {
		t.Run(filepath.Base(path), func(t *testing.T) {
			tok, err := LoadPath(vfs.OS(), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			checkTogether(t, tok, readVectors(t, strings.TrimSuffix(path, ".model")+".jsonl"))
			if id, ok := tok.ID("<c1>"); !ok || !tok.IsSpecial(id) {
				t.Errorf("<c1> is %d, %v", id, ok)
			}
			if bos, ok := tok.BOS(); !ok || !tok.AddsBOS() || bos != 1 {
				t.Errorf("BOS is %d, %v", bos, ok)
			}
		})
	}
}
