package checkpoint

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/checkpoint/jsonscan"
	"github.com/spillway/spillway/internal/vfs"
)

const (
	// maxShards bounds the files that an index may name.
	maxShards = 4096
	// maxText bounds its names, in bytes.
	maxText = 64 << 10
)

// openIndex opens the files that an index.json names. The index is streamed twice, so that its map
// of a hundred thousand names is never held.
func (c *Catalog) openIndex(name string) (err error) {
	c.Format = Safetensors
	index, err := c.fsys.Open(filepath.Join(c.Dir, name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, index.Close()) }()
	shards, err := indexShards(index)
	if err != nil {
		return err
	}
	for _, shard := range shards {
		f, err := c.openPart(shard)
		if err != nil {
			return err
		}
		if err := c.openSafetensors(f); err != nil {
			return err
		}
	}
	return c.keepNamed(index, shards)
}

// weightMap streams an index: each is called for every name and its file.
func weightMap(index vfs.File, each func(name, shard string) error) error {
	j := jsonscan.New(container.NewReader(index, 0, index.Size()), maxText)
	found := false
	err := j.Object(func(key []byte) error {
		if string(key) != "weight_map" || found {
			return j.Skip()
		}
		found = true
		return j.Object(func(key []byte) error {
			name := string(key)
			shard, err := j.Text()
			if err != nil {
				return err
			}
			return each(name, string(shard))
		})
	})
	if err == nil {
		err = j.End()
	}
	if err == nil && !found {
		err = &FormatError{What: "it has no weight_map"}
	}
	var ours *FormatError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &ours):
		return fmt.Errorf("%s: %w", index.Name(), err)
	case ours.Path == "":
		ours.Path = index.Name()
	}
	return err
}

// indexShards returns the files that an index names, each once, sorted.
func indexShards(index vfs.File) ([]string, error) {
	set := map[string]bool{}
	err := weightMap(index, func(name, shard string) error {
		if set[shard] {
			return nil
		}
		fail := func(what string) error {
			return &FormatError{Path: index.Name(), Where: "tensor " + container.Name(name), What: fmt.Sprintf("its file, %s, %s", container.Name(shard), what)}
		}
		switch {
		case !filepath.IsLocal(shard) || strings.ContainsAny(shard, `/\:`) || shard == "." || strings.ContainsRune(shard, 0):
			return fail("is not the name of a file in the folder")
		case !strings.HasSuffix(shard, ".safetensors"):
			return fail("is no .safetensors file")
		case len(set) == maxShards:
			return &FormatError{Path: index.Name(), What: fmt.Sprintf("it names more than %d files", maxShards)}
		}
		set[shard] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	shards := make([]string, 0, len(set))
	for s := range set {
		shards = append(shards, s)
	}
	slices.Sort(shards)
	return shards, nil
}

// keepNamed checks that every tensor of the index is where it says, and drops tensors that the
// index does not name.
func (c *Catalog) keepNamed(index vfs.File, shards []string) error {
	order := container.ByName(len(c.Tensors), c.tensorName)
	named := make([]bool, len(c.Tensors))
	err := weightMap(index, func(name, shard string) error {
		fail := func(what string) error {
			return &FormatError{Path: index.Name(), Where: "tensor " + container.Name(name), What: what}
		}
		file, _ := slices.BinarySearch(shards, shard)
		at, _ := slices.BinarySearchFunc(order, name, func(i int32, name string) int { return strings.Compare(c.tensorName(int(i)), name) })
		for ; at < len(order) && c.tensorName(int(order[at])) == name; at++ {
			i := order[at]
			if c.Tensors[i].File != file {
				continue
			}
			if named[i] {
				return fail("it is there twice")
			}
			named[i] = true
			return nil
		}
		return fail(fmt.Sprintf("%s does not hold it", container.Name(shard)))
	})
	if err != nil {
		return err
	}
	kept := c.Tensors[:0]
	for i, t := range c.Tensors {
		if named[i] {
			kept = append(kept, t)
		}
	}
	c.Tensors = kept
	return nil
}
