package tokenizer

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/testutil"
	"github.com/spillway/spillway/internal/vfs"
)

// unpackGGUF returns the path of an unpacked vocabulary of the shared material.
func unpackGGUF(t testing.TB, name string) string {
	path := filepath.Join(t.TempDir(), name+".gguf")
	unpack(t, filepath.Join(testutil.Shared(t, "tokenizers/gguf"), name+".gguf"), path)
	return path
}

func BenchmarkLoadGGUF(b *testing.B) {
	c, err := checkpoint.Open(vfs.OS(), unpackGGUF(b, "qwen35"))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(c, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoadJSON(b *testing.B) {
	from, dir := testutil.Shared(b, "tokenizers/llama3"), b.TempDir()
	unpack(b, filepath.Join(from, "tokenizer.json"), filepath.Join(dir, "tokenizer.json"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := loadFolder(dir, heapAlloc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	tok := loadGGUFFile(b, unpackGGUF(b, "qwen35"))
	for name, text := range map[string]string{
		"english": strings.Repeat("The quick brown fox jumps over the lazy dog, and runs away in 1984.\n", 1000),
		"code":    strings.Repeat("\tfor i := 0; i < len(text); i++ {\n\t\tif text[i] != '\\n' { count++ }\n\t}\n", 1000),
		"chinese": strings.Repeat("敏捷的棕色狐狸跳过了那只懒狗，然后跑掉了。", 1000),
		"letters": strings.Repeat("a", 1<<16),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			var ids []int32
			for b.Loop() {
				var err error
				if ids, err = tok.Encode(ids[:0], text, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
