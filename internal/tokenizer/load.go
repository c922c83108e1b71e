package tokenizer

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/vfs"
)

// Load reads the tokenizer of a model: from a GGUF file's metadata, or from the files beside safetensors
// files, as LoadPath does. A nil alloc puts the tables on the Go heap. When Load fails, nothing refers to
// what alloc gave: the caller may free it.
func Load(c *checkpoint.Catalog, alloc Alloc) (*Tokenizer, error) {
	if alloc == nil {
		alloc = heapAlloc
	}
	if c.Format != checkpoint.GGUF {
		return loadBeside(c.OpenBeside, alloc)
	}
	t, err := loadGGUF(c.Meta, alloc)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Path, err)
	}
	return t, nil
}

// LoadPath reads a tokenizer without a model: from a folder, or from one of the files that Load knows, by its
// name. Of several in a folder the first of tokenizer.json, tekken.json, a SentencePiece model
// (tokenizer.model, spiece.model, sentencepiece.bpe.model), vocab.json with merges.txt, vocab.txt and a GGUF
// file counts. A nil alloc puts the tables on the Go heap.
func LoadPath(fsys vfs.FS, path string, alloc Alloc) (*Tokenizer, error) {
	if alloc == nil {
		alloc = heapAlloc
	}
	info, err := fsys.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return loadFolderPath(fsys, path, alloc)
	}
	dir, name := filepath.Dir(path), filepath.Base(path)
	open := opener(fsys, dir)
	switch lower := strings.ToLower(name); {
	case strings.HasSuffix(lower, ".gguf"):
		return loadGGUFPath(fsys, path, alloc)
	case strings.HasSuffix(lower, ".model"):
		return loadSentencePiece(open, name, alloc)
	case strings.HasSuffix(lower, ".txt"):
		return loadBERT(open, name, alloc)
	case lower == "vocab.json":
		return loadGPT2(open, alloc)
	case strings.HasSuffix(lower, ".json") && strings.Contains(lower, "tekken"):
		return loadTekken(open, name, alloc)
	case strings.HasSuffix(lower, ".json"):
		return loadHF(renamed(open, "tokenizer.json", name), alloc)
	}
	return loadGGUFPath(fsys, path, alloc)
}

// opener opens files of a folder.
func opener(fsys vfs.FS, dir string) vfs.Opener {
	return func(name string) (vfs.File, error) { return fsys.Open(filepath.Join(dir, name)) }
}

// renamed opens a file by another name.
func renamed(open vfs.Opener, asked, real string) vfs.Opener {
	return func(name string) (vfs.File, error) {
		if name == asked {
			name = real
		}
		return open(name)
	}
}

func loadFolderPath(fsys vfs.FS, dir string, alloc Alloc) (*Tokenizer, error) {
	t, err := loadBeside(opener(fsys, dir), alloc)
	var none *noTokenizerError
	if !errors.As(err, &none) {
		return t, err
	}
	path, findErr := checkpoint.Find(fsys, dir)
	if findErr != nil || !strings.EqualFold(filepath.Ext(path), ".gguf") {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return loadGGUFPath(fsys, path, alloc)
}

func loadGGUFPath(fsys vfs.FS, path string, alloc Alloc) (*Tokenizer, error) {
	c, err := checkpoint.Open(fsys, path)
	if err != nil {
		return nil, err
	}
	t, err := Load(c, alloc)
	return t, errors.Join(err, c.Close())
}

// noTokenizerError says that a folder has no tokenizer.
type noTokenizerError struct{ *FormatError }

func (e *noTokenizerError) Unwrap() error { return e.FormatError }

// loadBeside reads the first tokenizer of a folder that is there.
func loadBeside(open vfs.Opener, alloc Alloc) (*Tokenizer, error) {
	for _, kind := range []struct {
		needs []string
		load  func(name string) (*Tokenizer, error)
	}{
		{[]string{"tokenizer.json"}, func(string) (*Tokenizer, error) { return loadHF(open, alloc) }},
		{[]string{"tekken.json"}, func(name string) (*Tokenizer, error) { return loadTekken(open, name, alloc) }},
		{[]string{"tokenizer.model"}, func(name string) (*Tokenizer, error) { return loadSentencePiece(open, name, alloc) }},
		{[]string{"spiece.model"}, func(name string) (*Tokenizer, error) { return loadSentencePiece(open, name, alloc) }},
		{[]string{"sentencepiece.bpe.model"}, func(name string) (*Tokenizer, error) { return loadSentencePiece(open, name, alloc) }},
		{[]string{"vocab.json", "merges.txt"}, func(string) (*Tokenizer, error) { return loadGPT2(open, alloc) }},
		{[]string{"vocab.txt"}, func(name string) (*Tokenizer, error) { return loadBERT(open, name, alloc) }},
	} {
		there, err := allThere(open, kind.needs)
		if err != nil {
			return nil, err
		}
		if there {
			return kind.load(kind.needs[0])
		}
	}
	return nil, &noTokenizerError{&FormatError{What: "the folder has no tokenizer.json, nor another file of a tokenizer",
		Hint: "it belongs beside the weights; tekken.json, tokenizer.model, vocab.json with merges.txt, and vocab.txt do too"}}
}

// allThere reports whether a folder has all files of a list.
func allThere(open vfs.Opener, names []string) (bool, error) {
	for _, name := range names {
		f, err := open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if err := f.Close(); err != nil {
			return false, err
		}
	}
	return true, nil
}
