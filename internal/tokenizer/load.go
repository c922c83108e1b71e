package tokenizer

import (
	"fmt"

	"github.com/spillway/spillway/internal/checkpoint"
)

// Load reads the tokenizer of a model: from a GGUF file's metadata, or from the tokenizer.json beside
// safetensors files. A nil alloc puts the tables on the Go heap. When Load fails, nothing refers to what
// alloc gave: the caller may free it.
func Load(c *checkpoint.Catalog, alloc Alloc) (*Tokenizer, error) {
	if alloc == nil {
		alloc = heapAlloc
	}
	t, err := load(c, alloc)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func load(c *checkpoint.Catalog, alloc Alloc) (*Tokenizer, error) {
	if c.Format != checkpoint.GGUF {
		return loadHF(c.OpenBeside, alloc)
	}
	t, err := loadGGUF(c.Meta, alloc)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Path, err)
	}
	return t, nil
}
