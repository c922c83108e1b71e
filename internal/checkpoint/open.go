package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/checkpoint/gguf"
	"github.com/spillway/spillway/internal/checkpoint/pack"
	"github.com/spillway/spillway/internal/checkpoint/safetensors"
	"github.com/spillway/spillway/internal/vfs"
)

// Open opens a checkpoint: a GGUF file (any shard of a split set), a safetensors file or its
// index.json, a packed file, or a folder that holds one of them.
func Open(fsys vfs.FS, path string) (*Catalog, error) {
	info, err := fsys.Stat(path)
	if err != nil {
		return nil, err
	}
	c := &Catalog{Path: path, Dir: filepath.Dir(path), fsys: fsys}
	if info.IsDir() {
		c.Dir = path
		if path, err = Find(fsys, path); err != nil {
			return nil, err
		}
	}
	return c.opened(c.open(path))
}

// OpenFile opens a single GGUF file, such as an embedded one. Closing the Catalog closes f.
func OpenFile(f vfs.File) (*Catalog, error) {
	c := &Catalog{Path: f.Name()}
	return c.opened(c.openGGUF(f))
}

// opened finishes opening, and closes everything where it failed.
func (c *Catalog) opened(err error) (*Catalog, error) {
	if err == nil {
		err = c.finish()
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Catalog) open(path string) error {
	if strings.HasSuffix(path, indexSuffix) {
		return c.openIndex(filepath.Base(path))
	}
	f, err := c.fsys.Open(path)
	if err != nil {
		return err
	}
	if strings.HasSuffix(path, ".safetensors") && !gguf.Is(f) {
		return c.openSafetensors(f)
	}
	switch packed, err := pack.Is(f); {
	case err != nil:
		return errors.Join(err, f.Close())
	case packed:
		return c.openPacked(f)
	}
	return c.openGGUF(f)
}

// openPacked opens a packed file and compares some of it with its digests.
func (c *Catalog) openPacked(f vfs.File) error {
	p, h, err := pack.Read(f)
	if err == nil {
		err = p.Sample()
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	c.Format, c.Packed = p.Format, p
	c.add(f, h)
	return nil
}

const (
	plainName   = "model.safetensors"
	indexSuffix = ".safetensors.index.json"
)

// Find returns the file that Open opens for a folder: model.safetensors or its index, else the one
// other index, safetensors file, GGUF file (of a split set the first) or packed file that it holds.
func Find(fsys vfs.FS, dir string) (string, error) {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var index, weights, ggufs, packed []string
	for _, e := range entries {
		switch name := e.Name(); {
		case name == plainName:
			return filepath.Join(dir, name), nil
		case strings.HasSuffix(name, indexSuffix):
			index = append(index, name)
		case strings.HasSuffix(name, ".safetensors"):
			weights = append(weights, name)
		case isGGUF(name) && firstShard(name) && !strings.Contains(strings.ToLower(name), "mmproj"): // a part for images
			ggufs = append(ggufs, name)
		case strings.EqualFold(filepath.Ext(name), pack.Extension):
			packed = append(packed, name)
		}
	}
	if i := "model" + indexSuffix; slices.Contains(index, i) {
		return filepath.Join(dir, i), nil
	}
	for _, found := range [][]string{index, weights, ggufs, packed} {
		switch len(found) {
		case 0:
		case 1:
			return filepath.Join(dir, found[0]), nil
		default:
			return "", &FormatError{Path: dir, What: fmt.Sprintf("the folder holds several models: %s", strings.Join(found, ", ")), Hint: "name one of the files"}
		}
	}
	return "", &FormatError{Path: dir, What: "no model in this folder", Hint: "a .gguf file, model.safetensors or model.safetensors.index.json is looked for"}
}

func isGGUF(name string) bool { return strings.EqualFold(filepath.Ext(name), ".gguf") }

// shardName is how the files of a split GGUF set are called.
var shardName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// firstShard reports whether a GGUF file is not a later file of a set.
func firstShard(name string) bool {
	m := shardName.FindStringSubmatch(name)
	return m == nil || m[2] == "00001"
}

func (c *Catalog) openSafetensors(f vfs.File) error {
	c.Format = Safetensors
	h, err := safetensors.Read(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	c.add(f, h)
	return nil
}

func (c *Catalog) openGGUF(f vfs.File) error {
	c.Format = GGUF
	h, err := gguf.Read(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	count, split := h.Meta.Int("split.count")
	if !split || count == 1 {
		c.add(f, h)
		return nil
	}
	return c.openSet(f, h, count)
}

// openSet opens all files of a split set, of which f is one.
func (c *Catalog) openSet(f vfs.File, h *container.Header, count int64) error {
	unused := f
	defer func() {
		if unused != nil {
			unused.Close()
		}
	}()
	m := shardName.FindStringSubmatch(filepath.Base(f.Name()))
	fail := func(path, format string, args ...any) error {
		return &FormatError{Path: path, What: fmt.Sprintf(format, args...)}
	}
	no, ok := h.Meta.Int("split.no")
	if !ok || count < 1 || no < 0 || no >= count {
		return fail(f.Name(), "split.no %d and split.count %d do not go together", no, count)
	}
	if want := fmt.Sprintf("-%05d-of-%05d.gguf", no+1, count); m == nil || c.fsys == nil || !strings.HasSuffix(f.Name(), want) {
		return fail(f.Name(), "it is file %d of %d, so its name should end in %s", no+1, count, want)
	}
	total, hasTotal := h.Meta.Int("split.tensors.count")
	for i := range count {
		shard, header := f, h
		if i == no {
			unused = nil
		} else {
			var err error
			name := fmt.Sprintf("%s-%05d-of-%05d.gguf", m[1], i+1, count)
			if shard, header, err = c.openShard(name, i, count); err != nil {
				return err
			}
		}
		c.add(shard, header)
	}
	if hasTotal && total != int64(len(c.Tensors)) {
		return fail(f.Name(), "split.tensors.count is %d, but the %d files hold %d tensors", total, count, len(c.Tensors))
	}
	return nil
}

// openShard opens file number no (from 0) of a split set.
func (c *Catalog) openShard(name string, no, count int64) (vfs.File, *container.Header, error) {
	f, err := c.openPart(name)
	if err != nil {
		return nil, nil, err
	}
	h, err := gguf.Read(f)
	if err == nil {
		n, ok1 := h.Meta.Int("split.no")
		of, ok2 := h.Meta.Int("split.count")
		if !ok1 || !ok2 || n != no || of != count {
			err = &FormatError{Path: f.Name(), What: "split.no and split.count say that it is another file than its name says, or none of a set",
				Hint: "file " + strconv.FormatInt(no+1, 10) + " of " + strconv.FormatInt(count, 10) + " was looked for"}
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, h, nil
}

// openPart opens a file that the set needs.
func (c *Catalog) openPart(name string) (vfs.File, error) {
	f, err := c.fsys.Open(filepath.Join(c.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &FormatError{Path: c.Path, What: fmt.Sprintf("the set is not complete: %s is missing", name), Hint: "all files of the set belong in one folder"}
	}
	return f, err
}
