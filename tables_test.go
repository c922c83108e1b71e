package spillway

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/vfs"
)

// TestFailedTokenizerLeasesNothing breaks the last merge: by then the vocabulary has its tables.
func TestFailedTokenizerLeasesNothing(t *testing.T) {
	data, err := os.ReadFile(tinyGGUF)
	if err != nil {
		t.Fatal(err)
	}
	broken := bytes.Replace(data, []byte("th e"), []byte("th!e"), 1)
	if bytes.Equal(broken, data) {
		t.Fatal("the merge is not there")
	}
	rt, err := New(Options{Memory: 256 << 20, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	before := rt.Ledger().Used
	c, err := rt.load(context.Background(), false, func() (*checkpoint.Catalog, error) {
		return checkpoint.OpenFile(vfs.Bytes("broken.gguf", broken))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if tok, err := c.Tokenizer(); err == nil || tok != nil {
		t.Errorf("a tokenizer: %v, %v", tok, err)
	}
	if used := rt.Ledger().Used; used != before {
		t.Errorf("%d bytes are leased, %d were before", used, before)
	}
}
