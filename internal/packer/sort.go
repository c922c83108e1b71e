package packer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/layout"
)

// sorter finds out which tensors belong together. Each is given out once.
type sorter struct {
	cat    *checkpoint.Catalog
	model  *layout.Model
	byFile []*checkpoint.Tensor // by file, then offset
	byName []*checkpoint.Tensor
	taken  map[*checkpoint.Tensor]bool
}

func newSorter(cat *checkpoint.Catalog, model *layout.Model) *sorter {
	s := &sorter{cat: cat, model: model, taken: map[*checkpoint.Tensor]bool{}}
	for i := range cat.Tensors {
		s.byFile = append(s.byFile, &cat.Tensors[i])
	}
	s.byName = slices.Clone(s.byFile)
	slices.SortStableFunc(s.byFile, func(a, b *checkpoint.Tensor) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Offset, b.Offset))
	})
	slices.SortStableFunc(s.byName, func(a, b *checkpoint.Tensor) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// take returns those of the tensors that nobody has, and marks them.
func (s *sorter) take(tensors ...*checkpoint.Tensor) (taken []*checkpoint.Tensor) {
	for _, t := range tensors {
		if t != nil && !s.taken[t] {
			s.taken[t] = true
			taken = append(taken, t)
		}
	}
	return taken
}

// at is the tensor that holds a byte of a file; nil if none does, as in files that are put together when they
// are read.
func (s *sorter) at(file int, offset int64) *checkpoint.Tensor {
	i, found := slices.BinarySearchFunc(s.byFile, offset, func(t *checkpoint.Tensor, offset int64) int {
		return cmp.Or(cmp.Compare(t.File, file), cmp.Compare(t.Offset, offset))
	})
	if !found {
		i--
	}
	for ; i >= 0 && s.byFile[i].File == file; i-- { // empty tensors begin where another one does
		if t := s.byFile[i]; offset >= t.Offset && offset < t.Offset+t.Bytes {
			return t
		} else if t.Bytes > 0 {
			break
		}
	}
	return nil
}

// module is the tensors whose names begin alike.
func (s *sorter) module(prefix string) []*checkpoint.Tensor {
	i, _ := slices.BinarySearchFunc(s.byName, prefix, func(t *checkpoint.Tensor, p string) int { return strings.Compare(t.Name, p) })
	n := i
	for n < len(s.byName) && strings.HasPrefix(s.byName[n].Name, prefix) {
		n++
	}
	return s.byName[i:n]
}

// of is the tensors that a matrix is made of.
func (s *sorter) of(m *layout.Matrix) []*checkpoint.Tensor {
	if m.File < len(s.cat.Files) {
		return []*checkpoint.Tensor{s.at(m.File, m.Offset)}
	}
	return s.module(m.Name[:strings.LastIndexByte(m.Name, '.')+1])
}

func (s *sorter) vectors() (all []*checkpoint.Tensor) {
	for _, v := range s.model.Vectors {
		if v.File < len(s.cat.Files) {
			all = append(all, s.take(s.at(v.File, v.Offset))...)
		}
	}
	return all
}

// trunk is what a layer needs for every row.
type trunk struct {
	name    string
	tensors []*checkpoint.Tensor
}

// trunks are in the order of a sweep: bundles of one layer are one.
func (s *sorter) trunks() (all []trunk) {
	layer := -1
	for i := range s.model.Bundles {
		b := &s.model.Bundles[i]
		if b.Layer < 0 || b.Layer != layer {
			name := b.Name
			if b.Layer >= 0 {
				name = "layer." + strconv.Itoa(b.Layer)
			}
			all = append(all, trunk{name: name})
		}
		layer = b.Layer
		last := &all[len(all)-1]
		for _, m := range b.Matrices {
			last.tensors = append(last.tensors, s.take(s.of(m)...)...)
		}
	}
	return all
}

// expertLayer is the tensors of a layer's experts: stacks, or those of each expert.
type expertLayer struct {
	name   string
	count  int
	stacks []*checkpoint.Tensor
	single [][]*checkpoint.Tensor
}

func (s *sorter) experts(l *layout.ExpertLayer) expertLayer {
	x := expertLayer{name: fmt.Sprintf("layer.%d.experts", l.Layer), count: l.Count()}
	for i := range l.Stacks {
		for _, t := range s.stack(&l.Stacks[i]) {
			if len(t.Shape) > 2 && t.Shape[0] == x.count && t.Bytes > 0 {
				x.stacks = append(x.stacks, s.take(t)...)
			}
		}
	}
	if len(x.stacks) > 0 {
		return x
	}
	x.single = make([][]*checkpoint.Tensor, x.count)
	for e := range x.single {
		for i := range l.Stacks {
			x.single[e] = append(x.single[e], s.take(s.expert(&l.Stacks[i], e)...)...)
		}
	}
	return x
}

// stack is the tensors that hold a matrix of every expert.
func (s *sorter) stack(st *layout.Stack) []*checkpoint.Tensor {
	at := st.At[0]
	if int(at.File) < len(s.cat.Files) {
		return []*checkpoint.Tensor{s.at(int(at.File), at.Offset)}
	}
	return s.module(strings.TrimSuffix(st.Name, "_blocks")) // and _scales
}

// expert is the tensors of one expert's matrix.
func (s *sorter) expert(st *layout.Stack, e int) []*checkpoint.Tensor {
	at := st.At[e]
	if int(at.File) < len(s.cat.Files) {
		return []*checkpoint.Tensor{s.at(int(at.File), at.Offset)}
	}
	name := st.Name[:strings.LastIndexByte(st.Name, '.')+1] // of expert 0
	i := strings.LastIndex(name, ".0.")
	if i < 0 {
		return nil
	}
	return s.module(name[:i+1] + strconv.Itoa(e) + name[i+2:])
}

// rest is what the model does not use.
func (s *sorter) rest() []*checkpoint.Tensor { return s.take(s.byFile...) }
