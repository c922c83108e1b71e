package tokenizer

import (
	"runtime"
	"testing"
)

// TestVocabularyIsCompact holds vocabularies of 128,000 to 152,000 tokens with their merges below 12 MiB in
// the caller's hands, and what they keep on the Go heap, when they have been used, below 1 MiB.
func TestVocabularyIsCompact(t *testing.T) {
	for _, name := range []string{"qwen3", "llama3", "deepseek_v3"} {
		t.Run(name, func(t *testing.T) {
			dir := hfFolder(t, name)
			before := heapInUse()
			total := 0
			var tables [][]byte
			tok, err := loadFolder(dir, func(n int) ([]byte, error) {
				total += n
				tables = append(tables, make([]byte, n))
				return tables[len(tables)-1], nil
			})
			if err != nil {
				t.Fatal(err)
			}
			encode(t, tok, "Hello, world! Unhellowörldly\n\n  12345", Options{})
			heap := int64(heapInUse()) - int64(before) - int64(total)
			t.Logf("%d tokens, %d merges: tables of %d bytes, %d on the Go heap", tok.Size(), tok.model.(*bpe).merges.count, total, heap)
			if total > 12<<20 {
				t.Errorf("%d tokens take %d bytes", tok.Size(), total)
			}
			if heap > 1<<20 {
				t.Errorf("%d bytes are on the Go heap besides the tables", heap)
			}
			runtime.KeepAlive(tables)
		})
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
