// Package packer lays a model out for streaming: what is needed together lies together in one file of package
// checkpoint/pack.
package packer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/pack"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/vfs"
)

// Plan is what a packed file will hold, and where that comes from.
type Plan struct {
	Manifest pack.Manifest
	Parts    []pack.Part

	cat  *checkpoint.Catalog
	open []vfs.File // by the plan
	end  int64      // of what has a place, from the first group's start
}

// New plans a packed file of a model that was described from the catalog, which must stay open.
func New(ctx context.Context, cat *checkpoint.Catalog, model *layout.Model) (*Plan, error) {
	if cat.Packed != nil {
		return nil, fmt.Errorf("%s is packed already", cat.Path)
	}
	identity, err := cat.Identity(ctx)
	if err != nil {
		return nil, err
	}
	p := &Plan{cat: cat, Manifest: pack.Manifest{Format: cat.Format, Identity: identity}}
	if err := p.carry(cat); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.Manifest.Groups = append(p.Manifest.Groups, pack.Group{Name: "files", Bytes: p.end, Count: 1})
	s := newSorter(cat, model)
	p.trunk("vectors", s.vectors())
	for _, t := range s.trunks() {
		p.trunk(t.name, t.tensors)
	}
	for i := range model.Experts {
		p.experts(s.experts(&model.Experts[i]))
	}
	p.trunk("unused", s.rest())
	p.Manifest.Place()
	start := p.Manifest.DataStart()
	for i := range p.Parts {
		p.Parts[i].At += start
	}
	slices.SortFunc(p.Parts, func(a, b pack.Part) int { return cmp.Compare(a.At, b.At) })
	return p, nil
}

// Close closes the files that the plan opened.
func (p *Plan) Close() (err error) {
	for _, f := range p.open {
		err = errors.Join(err, f.Close())
	}
	p.open = nil
	return err
}

// Align is what reads of the parts need.
func (p *Plan) Align() int {
	n := 1
	for i := range p.Parts {
		n = max(n, p.Parts[i].File.Align())
	}
	return n
}

func align(n, to int64) int64 { return (n + to - 1) / to * to }

func (p *Plan) group(name string, bytes int64, count int) {
	p.Manifest.Groups = append(p.Manifest.Groups, pack.Group{Name: name, Bytes: bytes, Count: count})
	p.end += bytes * int64(count)
}

// trunk adds a bundle of whole tensors, if there are some.
func (p *Plan) trunk(name string, tensors []*checkpoint.Tensor) {
	at := int64(0)
	for _, t := range tensors {
		at = align(at, pack.MatrixAlign)
		p.whole(t, p.end+at)
		at += t.Bytes
	}
	if at > 0 {
		p.group(name, align(at, pack.Align), 1)
	}
}

func (p *Plan) whole(t *checkpoint.Tensor, at int64) {
	p.tensor(t, at, 0, 0)
	if t.Bytes > 0 {
		p.Parts = append(p.Parts, pack.Part{At: at, File: p.cat.Files[t.File].File, Offset: t.Offset, Bytes: t.Bytes})
	}
}

func (p *Plan) tensor(t *checkpoint.Tensor, at, slice, stride int64) {
	packed := *t
	packed.File, packed.Offset, packed.Slice, packed.Stride = 0, at, slice, stride
	p.Manifest.Tensors = append(p.Manifest.Tensors, packed)
}

// experts adds a bundle for each expert of a layer.
func (p *Plan) experts(x expertLayer) {
	switch {
	case len(x.stacks) > 0:
		p.stacks(x)
	case len(x.single) > 0:
		p.singles(x)
	}
}

// stacks gives each bundle one slice of every tensor.
func (p *Plan) stacks(x expertLayer) {
	at := int64(0)
	offsets := make([]int64, len(x.stacks))
	for i, t := range x.stacks {
		offsets[i] = align(at, pack.MatrixAlign)
		at = offsets[i] + t.Bytes/int64(x.count)
	}
	stride := align(at, pack.Align)
	for i, t := range x.stacks {
		slice := t.Bytes / int64(x.count)
		p.tensor(t, p.end+offsets[i], slice, stride)
		for e := range int64(x.count) {
			p.Parts = append(p.Parts, pack.Part{
				At: p.end + offsets[i] + e*stride, File: p.cat.Files[t.File].File, Offset: t.Offset + e*slice, Bytes: slice,
			})
		}
	}
	p.group(x.name, stride, x.count)
}

// singles gives each bundle the tensors of one expert.
func (p *Plan) singles(x expertLayer) {
	most := int64(pack.Align)
	for _, tensors := range x.single {
		at := int64(0)
		for _, t := range tensors {
			at = align(at, pack.MatrixAlign) + t.Bytes
		}
		most = max(most, align(at, pack.Align))
	}
	for e, tensors := range x.single {
		at := int64(e) * most
		for _, t := range tensors {
			at = align(at, pack.MatrixAlign)
			p.whole(t, p.end+at)
			at += t.Bytes
		}
	}
	p.group(x.name, most, len(x.single))
}
