package pack

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/quant"
)

func quantType(kind uint32) quant.Type { return quant.Type(kind) }

// check reports a manifest whose parts do not fit together or do not fill the file.
func (p *File) check() error {
	if err := p.checkGroups(); err != nil {
		return err
	}
	if err := p.checkInner(); err != nil {
		return err
	}
	return p.checkTensors()
}

func (p *File) checkGroups() error {
	at, count := p.head.dataStart(), int64(0)
	for i := range p.Groups {
		g := &p.Groups[i]
		switch {
		case g.Offset != at:
			return fmt.Errorf("group %s begins at %d, not at %d", container.Name(g.Name), g.Offset, at)
		case g.Bytes < Align || g.Bytes%Align != 0 || g.Count < 1 || g.Bytes > (p.head.size-at)/int64(g.Count):
			return fmt.Errorf("group %s has %d bundles of %d bytes", container.Name(g.Name), g.Count, g.Bytes)
		}
		at, count = g.End(), count+g.Pieces()
	}
	switch {
	case at != p.head.size || len(p.Groups) == 0:
		return fmt.Errorf("its groups end at %d, the file at %d", at, p.head.size)
	case count != p.head.pieces:
		return fmt.Errorf("its groups have %d pieces, there are %d digests", count, p.head.pieces)
	}
	return nil
}

// checkInner wants the files one after the other in the first group.
func (p *File) checkInner() error {
	g := &p.Groups[0]
	at := g.Offset
	for i, f := range p.Inner {
		if f.Offset < at || f.Offset%Align != 0 || f.Offset > g.End() || f.Bytes > g.End()-f.Offset {
			return fmt.Errorf("file %s: %d bytes at %d are not possible", container.Name(f.Name), f.Bytes, f.Offset)
		}
		at = f.Offset + f.Bytes
		if slices.ContainsFunc(p.Inner[:i], func(e Inner) bool { return e.Name == f.Name }) {
			return fmt.Errorf("file %s is there twice", container.Name(f.Name))
		}
	}
	if len(p.Inner) == 0 {
		return fmt.Errorf("the metadata is missing")
	}
	return nil
}

// checkTensors wants each in one bundle, or one slice of it in each bundle of a group, without overlaps.
func (p *File) checkTensors() error {
	all := make([]int32, len(p.Tensors))
	for i := range all {
		all[i] = int32(i)
	}
	slices.SortFunc(all, func(a, b int32) int { return cmp.Compare(p.Tensors[a].Offset, p.Tensors[b].Offset) })
	group, end, sliced := 1, int64(0), false // the group that we are in, and what its first tensor is
	for _, i := range all {
		t := &p.Tensors[i]
		before := group
		for group < len(p.Groups) && t.Offset >= p.Groups[group].End() {
			group++
		}
		if group == len(p.Groups) || t.Offset < p.Groups[group].Offset {
			return misplaced(t, "it lies in no group")
		}
		if group != before || end == 0 {
			end, sliced = p.Groups[group].Offset, t.Slice > 0
		}
		if t.Offset < end {
			return misplaced(t, "it overlaps another one")
		}
		if (t.Slice > 0) != sliced {
			return misplaced(t, "whole tensors and slices are in one group")
		}
		n, err := p.Groups[group].holds(t)
		if err != nil {
			return err
		}
		end = t.Offset + n
	}
	return nil
}

func misplaced(t *container.Tensor, what string) error {
	return fmt.Errorf("tensor %s: %s", container.Name(t.Name), what)
}

// holds checks that a tensor that begins in the group fits there, and returns the bytes that lie at its start.
func (g *Group) holds(t *container.Tensor) (int64, error) {
	n, in := t.Bytes, (t.Offset-g.Offset)%g.Bytes
	if t.Slice > 0 || t.Stride != 0 {
		n = t.Slice
		if n < 1 || t.Stride != g.Bytes || t.Offset >= g.Offset+g.Bytes || t.Bytes%n != 0 || t.Bytes/n != int64(g.Count) {
			return 0, misplaced(t, fmt.Sprintf("slices of %d bytes, %d apart, are not possible in %d bundles of %d bytes", n, t.Stride, g.Count, g.Bytes))
		}
	}
	if n > g.Bytes-in {
		return 0, misplaced(t, fmt.Sprintf("its %d bytes at %d pass the end of their bundle", n, t.Offset))
	}
	return n, nil
}
