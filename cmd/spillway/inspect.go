package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/models"
)

type inspectCommand struct {
	withoutModel
	Model   string `arg:"" help:"GGUF file, folder in Hugging Face layout, or known name."`
	Tensors bool   `help:"List all tensors."`
	Bundles bool   `help:"List the bundles: what is needed together, in the order of a sweep."`
}

func (*inspectCommand) Help() string {
	return "Reads headers only. --json has everything: metadata, tensors, bundles and the model's identity, a digest of its " +
		"headers, sizes and samples (verify digests all bytes).\n\nExample:\n\n  spillway inspect model.gguf --tensors"
}

// inspection is what `spillway inspect --json` prints.
type inspection struct {
	Path     string            `json:"path"`
	Format   string            `json:"format"`
	Version  int               `json:"version"`
	Identity string            `json:"identity"`
	Files    []inspectedFile   `json:"files"`
	Bytes    int64             `json:"bytes"` // of all tensors
	Model    *inspectedModel   `json:"model"` // null if it is not of a known family
	Problem  string            `json:"problem,omitempty"`
	Shares   []share           `json:"shares"`
	Types    []share           `json:"types"`
	Metadata []inspectedEntry  `json:"metadata"`
	Tensors  []inspectedTensor `json:"tensors"`
	Bundles  []inspectedBundle `json:"bundles"`
	Packed   *inspectedPack    `json:"packed,omitempty"`
}

// inspectedPack is about a packed file.
type inspectedPack struct {
	Original string           `json:"original"` // identity
	Files    []string         `json:"files"`    // that are carried inside
	Groups   []inspectedGroup `json:"groups"`
}

// inspectedGroup is bundles of the same size, one after the other.
type inspectedGroup struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"` // of each
	Count  int    `json:"count"`
}

type inspectedFile struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

type inspectedModel struct {
	Family     string `json:"family"`
	Parameters int64  `json:"parameters"`
	Layers     int    `json:"layers"`
	Hidden     int    `json:"hidden"`
	Vocab      int    `json:"vocab"`
	Context    int    `json:"context"`
	KVPerToken int64  `json:"kv_values_per_token"`
}

// share is one bar of the picture.
type share struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

type inspectedEntry struct {
	Key   string `json:"key"`
	Kind  string `json:"kind"`
	Value string `json:"value"` // lists by their size
}

type inspectedTensor struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Shape  []int  `json:"shape"`
	File   int    `json:"file"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	Slice  int64  `json:"slice,omitempty"`  // bytes of parts that lie apart in a packed file,
	Stride int64  `json:"stride,omitempty"` // from one's start to the next one's
}

type inspectedBundle struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Layer    int      `json:"layer"`
	Bytes    int64    `json:"bytes"`
	Matrices []string `json:"matrices"`
	Experts  int      `json:"experts,omitempty"` // so many bundles like this one: the experts of a layer
	Used     int      `json:"used,omitempty"`    // of them by each token
}

func (c *inspectCommand) run(s *session) error {
	ctx, stop := s.interruptible()
	defer stop()
	cat, err := s.catalog(c.Model)
	if err != nil {
		return err
	}
	i, err := inspect(ctx, cat)
	if err == nil && s.flags.JSON {
		err = s.printJSON(i)
	} else if err == nil {
		err = c.print(s.stdout, i)
	}
	return s.interrupted(ctx, errors.Join(err, cat.Close()))
}

func inspect(ctx context.Context, cat *checkpoint.Catalog) (*inspection, error) {
	i := &inspection{Path: cat.Path, Format: cat.Format, Version: cat.Version, Bytes: cat.Bytes()}
	var err error
	if i.Identity, err = cat.Identity(ctx); err != nil {
		return nil, err
	}
	for _, f := range cat.Files {
		i.Files = append(i.Files, inspectedFile{f.Path, f.Size})
	}
	for _, e := range cat.Meta.Entries() {
		i.Metadata = append(i.Metadata, inspectedEntry{e.Key, e.Kind.String(), e.Value.String()})
	}
	types := map[string]int64{}
	for _, t := range cat.Tensors {
		i.Tensors = append(i.Tensors, inspectedTensor{t.Name, t.DType, t.Shape, t.File, t.Offset, t.Bytes, t.Slice, t.Stride})
		types[t.DType] += t.Bytes
	}
	i.Types = shares(types)
	i.packed(cat)
	m, err := models.Describe(cat)
	if err != nil {
		i.Problem = oneLine(err.Error())
		return i, nil
	}
	i.describe(m.Layout)
	return i, nil
}

// packed adds what a packed file says of its layout.
func (i *inspection) packed(cat *checkpoint.Catalog) {
	p := cat.Packed
	if p == nil {
		return
	}
	i.Packed = &inspectedPack{Original: p.Identity}
	for _, f := range p.Inner {
		i.Packed.Files = append(i.Packed.Files, f.Name)
	}
	for _, g := range p.Groups {
		i.Packed.Groups = append(i.Packed.Groups, inspectedGroup{g.Name, g.Offset, g.Bytes, g.Count})
	}
}

// describe adds what the family's description says.
func (i *inspection) describe(l *layout.Model) {
	i.Model = &inspectedModel{
		Family: l.Family, Parameters: l.Parameters, Layers: l.Layers, Hidden: l.Hidden, Vocab: l.Vocab,
		Context: l.Context, KVPerToken: l.KVValuesPerToken,
	}
	kinds := map[*layout.Matrix]string{} // a tied head has the embedding's bytes
	sums := map[string]int64{}
	for _, b := range l.Bundles {
		out := inspectedBundle{Name: b.Name, Kind: b.Kind.String(), Layer: b.Layer}
		for _, m := range b.Matrices {
			out.Bytes += m.Bytes()
			out.Matrices = append(out.Matrices, m.Name)
			if kind, ok := kinds[m]; ok && kind != b.Kind.String() {
				kinds[m] = kind + " and " + b.Kind.String()
			} else {
				kinds[m] = b.Kind.String()
			}
		}
		i.Bundles = append(i.Bundles, out)
	}
	used := l.ExpertBytes()
	if used > 0 {
		sums["experts"] = used
	}
	i.experts(l)
	for m, kind := range kinds {
		sums[kind] += m.Bytes()
		used += m.Bytes()
	}
	for _, v := range l.Vectors {
		n := int64(v.Type.RowBytes(v.Len))
		sums["norms and biases"] += n
		used += n
	}
	if i.Bytes > used {
		sums["not used"] = i.Bytes - used
	}
	i.Shares = shares(sums)
}

// experts adds the bundles of each layer's experts, which are all alike.
func (i *inspection) experts(l *layout.Model) {
	for k := range l.Experts {
		x := &l.Experts[k]
		out := inspectedBundle{
			Name: fmt.Sprintf("layer.%d.experts", x.Layer), Kind: "expert", Layer: x.Layer, Bytes: x.Bytes(), Experts: x.Count(), Used: x.Used,
		}
		for j := range x.Stacks {
			out.Matrices = append(out.Matrices, x.Stacks[j].Name)
		}
		i.Bundles = append(i.Bundles, out)
	}
}

// shares sorts sums, the largest first.
func shares(sums map[string]int64) []share {
	out := make([]share, 0, len(sums))
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, share{name, sums[name]})
	}
	slices.SortStableFunc(out, func(a, b share) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}
