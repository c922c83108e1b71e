package tokenizer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/testutil"
)

// speedSets are the tokenizers whose speed bench/tokenize.sh compares.
var speedSets = []string{"qwen3", "llama3", "deepseek_v3", "gptoss", "gemma3", "llama2", "bert_minilm", "xlmr_unigram"}

// hfFolder unpacks a tokenizer of the shared material and returns its folder.
func hfFolder(t testing.TB, name string) string {
	t.Helper()
	from, dir := testutil.Shared(t, "tokenizers/"+name), t.TempDir()
	for _, file := range []string{"tokenizer.json", "tokenizer_config.json"} {
		unpack(t, filepath.Join(from, file), filepath.Join(dir, file))
	}
	return dir
}

// BenchmarkTokenize is our half of bench/tokenize.sh: encode and decode of the texts in the folder
// SPILLWAY_BENCH_TEXT. Bytes are those of the text, for decode too.
func BenchmarkTokenize(b *testing.B) {
	dir := os.Getenv("SPILLWAY_BENCH_TEXT")
	if dir == "" {
		b.Skip("skipped: SPILLWAY_BENCH_TEXT names no folder of texts")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		b.Fatalf("no texts in %s: %v", dir, err)
	}
	for _, name := range speedSets {
		b.Run(name, func(b *testing.B) {
			tok, err := loadFolder(hfFolder(b, name), heapAlloc)
			if err != nil {
				b.Skip(err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					b.Fatal(err)
				}
				b.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(b *testing.B) { benchmarkText(b, tok, string(text)) })
			}
		})
	}
}

func benchmarkText(b *testing.B, tok *Tokenizer, text string) {
	ids := encode(b, tok, text, Options{ParseSpecial: true})
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			ids, _ = tok.Encode(ids[:0], text, Options{ParseSpecial: true})
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := tok.DecodeText(ids, true); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkLoad reads each tokenizer.json.
func BenchmarkLoad(b *testing.B) {
	for _, name := range speedSets {
		b.Run(name, func(b *testing.B) {
			dir := hfFolder(b, name)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := loadFolder(dir, heapAlloc); err != nil {
					b.Skip(err)
				}
			}
		})
	}
}
