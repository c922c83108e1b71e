// Package checkpoint turns the files of a model into one validated Catalog: names, types, shapes and
// where the bytes lie. It never reads weights, and allocates nothing on the word of a file.
package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/checkpoint/pack"
	"github.com/spillway/spillway/internal/vfs"
)

// FormatError says that a file is damaged or not supported. Errors of the drive are not of this
// type.
type FormatError = container.Error

// Tensor describes a tensor of a Catalog.
type Tensor = container.Tensor

// Kind is the type of a metadata value.
type Kind = container.Kind

// Entry is a metadata key with its value.
type Entry = container.Entry

// NoType is the Type of a tensor whose dtype is none of quant's formats; its DType names it.
const NoType = container.NoType

// Formats of checkpoints.
const (
	GGUF        = "gguf"
	Safetensors = "safetensors"
)

// Meta is the metadata of a checkpoint: GGUF's keys, or the __metadata__ of safetensors. Scalars and
// strings up to 1 MiB are in memory; lists are read from the file when they are iterated. It is
// safe for concurrent use while the Catalog is open.
type Meta interface {
	// Entries returns all entries in the order of the file, for those who show them.
	Entries() []Entry
	// Keys yields keys and their kinds in the order of the file.
	Keys() iter.Seq2[string, Kind]
	// String returns a string's bytes as they are; they need not be UTF-8.
	String(key string) (string, bool)
	// Int returns an integer of any width that fits.
	Int(key string) (int64, bool)
	// Float returns a float of any width, or an integer.
	Float(key string) (float64, bool)
	Bool(key string) (value, ok bool)
	// Count returns the length of a list.
	Count(key string) (int, bool)
	// Strings yields the elements of a list of strings, each valid until the next. An absent key
	// yields nothing; a value of another type and a failed read yield an error and end.
	Strings(key string) iter.Seq2[[]byte, error]
	Ints(key string) iter.Seq2[int64, error]
	Floats(key string) iter.Seq2[float64, error]
	Bools(key string) iter.Seq2[bool, error]
}

var _ Meta = (*container.Table)(nil)

// File is an open file of a Catalog.
type File struct {
	Path      string
	Size      int64 // bytes
	DataStart int64 // offset of the first byte after the header
	vfs.File
}

// Catalog is a checkpoint that was found sound: every tensor lies in its file and overlaps no
// other, and names are unique.
type Catalog struct {
	Format    string // GGUF or Safetensors
	Version   int    // of the format; 0 for safetensors
	Alignment int64  // of tensor data
	Path      string // as it was given
	Dir       string // folder of the files; "" for a file without one
	Files     []File
	Tensors   []Tensor // in the order of the files
	Meta      Meta     // of the first file

	// Packed is the file if the checkpoint is a packed one. Format is that of the original then.
	Packed *pack.File

	// Views are files that put their content together from Files, whose indices they continue (see
	// package repack). Who describes the model adds them.
	Views []vfs.File

	fsys  vfs.FS
	order []int32 // of tensors, by name
}

// Tensor returns the tensor with that name.
func (c *Catalog) Tensor(name string) (*Tensor, bool) {
	i := container.Search(c.order, c.tensorName, name)
	if i < 0 {
		return nil, false
	}
	return &c.Tensors[i], true
}

func (c *Catalog) tensorName(i int) string { return c.Tensors[i].Name }

// Bytes is the size of all tensors.
func (c *Catalog) Bytes() int64 {
	var n int64
	for i := range c.Tensors {
		n += c.Tensors[i].Bytes
	}
	return n
}

// Close closes all files.
func (c *Catalog) Close() error {
	var all []error
	for _, f := range c.Files {
		all = append(all, f.Close())
	}
	c.Files = nil
	return errors.Join(all...)
}

// add appends a file with its tensors.
func (c *Catalog) add(f vfs.File, h *container.Header) {
	if len(c.Files) == 0 {
		c.Version, c.Alignment, c.Meta = h.Version, h.Alignment, h.Meta
	}
	for i := range h.Tensors {
		h.Tensors[i].File = len(c.Files)
	}
	c.Files = append(c.Files, File{Path: f.Name(), Size: f.Size(), DataStart: h.DataStart, File: f})
	if c.Tensors == nil {
		c.Tensors = h.Tensors
	} else {
		c.Tensors = append(c.Tensors, h.Tensors...)
	}
}

// finish builds the index of names; each must be there once.
func (c *Catalog) finish() error {
	c.order = container.ByName(len(c.Tensors), c.tensorName)
	if i := container.Duplicate(c.order, c.tensorName); i >= 0 {
		t := &c.Tensors[i]
		return &FormatError{Path: c.Files[t.File].Path, Where: "tensor " + container.Name(t.Name), What: "another file of the set has it too"}
	}
	return nil
}

// OpenBeside opens a file in the checkpoint's folder, such as tokenizer.json. The caller closes it.
// An absent file is an error that wraps fs.ErrNotExist.
func (c *Catalog) OpenBeside(name string) (vfs.File, error) {
	if c.Packed != nil {
		return c.Packed.OpenInner(name)
	}
	if c.fsys == nil {
		return nil, fmt.Errorf("%s is not beside an embedded model: %w", name, fs.ErrNotExist)
	}
	if !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%s is not a name within the model's folder", container.Name(name))
	}
	return c.fsys.Open(filepath.Join(c.Dir, name))
}

// ListBeside returns the names of the files in a folder of the checkpoint's folder; none if it is not there.
func (c *Catalog) ListBeside(dir string) ([]string, error) {
	if c.Packed != nil || c.fsys == nil || !filepath.IsLocal(dir) {
		return nil, nil
	}
	entries, err := c.fsys.ReadDir(filepath.Join(c.Dir, dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// ReadFile reads a file of at most limit bytes in the checkpoint's folder.
func (c *Catalog) ReadFile(name string, limit int64) ([]byte, error) {
	f, err := c.OpenBeside(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Size() > limit {
		return nil, &FormatError{Path: f.Name(), What: fmt.Sprintf("it has %d bytes; at most %d are read", f.Size(), limit)}
	}
	b, err := container.NewReader(f, 0, f.Size()).Append(nil, int(f.Size()))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return b, nil
}

// maxConfig bounds config.json and its like.
const maxConfig = 1 << 20

// Config returns config.json.
func (c *Catalog) Config() (json.RawMessage, error) { return c.ReadJSON("config.json") }

// ReadJSON returns a small JSON file of the folder, known to be well-formed.
func (c *Catalog) ReadJSON(name string) (json.RawMessage, error) {
	b, err := c.ReadFile(name, maxConfig)
	if err != nil {
		return nil, err
	}
	var any json.RawMessage
	if err := json.Unmarshal(b, &any); err != nil {
		return nil, &FormatError{Path: filepath.Join(c.Dir, name), What: err.Error()}
	}
	return any, nil
}
