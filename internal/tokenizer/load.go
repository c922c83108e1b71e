package tokenizer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/vfs"
)

// Load reads the tokenizer of a model: from a GGUF file's metadata, or from the tokenizer.json beside
// safetensors files. A nil alloc puts the tables on the Go heap.
func Load(c *checkpoint.Catalog, alloc Alloc) (*Tokenizer, error) {
	if c.Format == checkpoint.GGUF {
		t, err := loadGGUF(c.Meta, alloc)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Path, err)
		}
		return t, nil
	}
	return loadHF(c.OpenBeside, alloc)
}

// LoadFolder reads the tokenizer.json of a folder, which may hold nothing else.
func LoadFolder(fsys vfs.FS, dir string, alloc Alloc) (*Tokenizer, error) {
	return loadHF(func(name string) (vfs.File, error) { return fsys.Open(filepath.Join(dir, name)) }, alloc)
}

// opener opens a file of the model's folder.
type opener func(name string) (vfs.File, error)

// stream calls read with the content of a file. It reports whether the file is there.
func (open opener) stream(name string, read func(io.Reader) error) (bool, error) {
	file, err := open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	buf := mem.AlignUp(make([]byte, fileBuffer+file.Align()), file.Align())
	r, err := vfs.NewReader(file, 0, file.Size(), buf)
	if err != nil {
		return false, err
	}
	if err := read(r); err != nil {
		return false, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return true, nil
}

const fileBuffer = 48 << 10
