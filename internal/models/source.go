package models

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/repack"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

// source resolves roles to the tensors of a catalog. It implements nn.Source.
type source struct {
	cat    *checkpoint.Catalog
	names  names
	scheme scheme       // nil: no weights are quantized
	view   *repack.File // of the quantized ones; nil before the first
	turned bool         // stacks of experts are inputs × outputs
}

// tensor finds the tensor of a role such as "attn.q.weight".
func (s *source) tensor(layer int, role string) (*checkpoint.Tensor, bool) {
	cut := strings.LastIndexByte(role, '.')
	return s.find(s.names[role[:cut]], layer, role[cut:])
}

// find looks a name up.
func (s *source) find(pair [2]string, layer int, suffix string) (*checkpoint.Tensor, bool) {
	for _, name := range s.modules(pair, layer) {
		for _, end := range endings(suffix) {
			if t, ok := s.cat.Tensor(name + end); ok {
				return t, true
			}
		}
	}
	return nil, false
}

// endings is how names of tensors end: parameters that are no module's have their own names.
func endings(suffix string) []string {
	switch suffix {
	case ".weight":
		return []string{suffix, ""}
	case ".bias":
		return []string{suffix, "_bias"}
	}
	return []string{suffix}
}

// modules is the names that a module may have: in Hugging Face folders the prefix "model." may be
// missing, where only the base model was saved.
func (s *source) modules(pair [2]string, layer int) []string { return s.modulesOf(pair, layer) }

// modulesOf is modules where numbers fill in the name: the layer, and the expert.
func (s *source) modulesOf(pair [2]string, numbers ...int) []string {
	name := pair[0]
	if s.cat.Format == checkpoint.GGUF {
		name = pair[1]
	}
	if name == "" {
		return nil
	}
	for _, n := range numbers {
		name = strings.Replace(name, "%d", strconv.Itoa(n), 1)
	}
	if short, ok := strings.CutPrefix(name, "model."); ok {
		return []string{name, short}
	}
	return []string{name}
}

// has reports whether a module has weights, in whatever form.
func (s *source) has(pair [2]string) bool {
	for _, suffix := range []string{".weight", ".qweight", ".weight_packed"} {
		if _, ok := s.find(pair, -1, suffix); ok {
			return true
		}
	}
	return false
}

// embeddingRows is the vocabulary's size where the configuration does not say it; 0 if there is no
// embedding, which Bind reports.
func (s *source) embeddingRows() int {
	t, ok := s.find(standard["embed"], -1, ".weight")
	if !ok || len(t.Shape) != 2 || t.Shape[0] > maxDim {
		return 0
	}
	return t.Shape[0]
}

// alike compares two tensors at places all over them, so that equal ones need not be read whole.
func (s *source) alike(a, b *checkpoint.Tensor) (bool, error) {
	if a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) || a.Bytes != b.Bytes {
		return false, nil
	}
	const pieces, piece = 64, 1 << 10
	n := min(piece, a.Bytes)
	both, step := make([]byte, 2*n), (a.Bytes-n)/(pieces-1)
	for i := range int64(pieces) {
		at := step * i
		if i == pieces-1 {
			at = a.Bytes - n
		}
		x, y := both[:n], both[n:]
		if err := cmp.Or(s.read(a, at, x), s.read(b, at, y)); err != nil {
			return false, err
		}
		if !bytes.Equal(x, y) {
			return false, nil
		}
	}
	return true, nil
}

// read fills p with a tensor's bytes from the given one on.
func (s *source) read(t *checkpoint.Tensor, at int64, p []byte) error {
	f, align := s.cat.Files[t.File].File, s.cat.Files[t.File].Align()
	pos, _ := t.At(at)
	r, err := vfs.NewReader(f, pos, int64(len(p)), mem.AlignUp(make([]byte, vfs.SpanSize(len(p), align)+align), align))
	if err == nil {
		_, err = io.ReadFull(r, p)
	}
	if err != nil {
		return fmt.Errorf("tensor %s: %w", t.Name, err)
	}
	return nil
}

// Matrix implements nn.Source.
func (s *source) Matrix(layer int, role string, rows, cols int) (*layout.Matrix, bool, error) {
	base, ok := strings.CutSuffix(role, ".weight")
	if !ok {
		return nil, false, fmt.Errorf("internal error: %s is no matrix", role)
	}
	class := "Linear"
	if base == "embed" {
		class = "Embedding"
	}
	return s.single(s.modules(s.names[base], layer), class, rows, cols)
}

// single is the matrix of a module, which may have several names.
func (s *source) single(modules []string, class string, rows, cols int) (*layout.Matrix, bool, error) {
	if s.scheme != nil {
		if m, ok, err := s.quantized(modules, class, rows, cols); ok || err != nil {
			return m, ok, err
		}
	}
	for _, name := range modules {
		if t, ok := s.cat.Tensor(name + ".weight"); ok {
			m, err := plain(t, rows, cols)
			return m, err == nil, err
		}
	}
	return nil, false, nil
}

// plain is a tensor as a matrix; one row may be a vector.
func plain(t *checkpoint.Tensor, rows, cols int) (*layout.Matrix, error) {
	if !slices.Equal(t.Shape, []int{rows, cols}) && (rows != 1 || !slices.Equal(t.Shape, []int{cols})) {
		return nil, fmt.Errorf("tensor %s has shape %v, the configuration asks for %v", t.Name, t.Shape, []int{rows, cols})
	}
	typ, err := computable(t)
	if err != nil {
		return nil, err
	}
	return &layout.Matrix{Name: t.Name, Type: typ, Rows: rows, Cols: cols, File: t.File, Offset: t.Offset}, nil
}

// Vector implements nn.Source.
func (s *source) Vector(layer int, role string, n int) (*layout.Vector, bool, error) {
	t, ok := s.tensor(layer, role)
	if !ok {
		return nil, false, nil
	}
	stacked := strings.HasPrefix(role, "ffn.experts.") && t.Elements() == int64(n) // experts × outputs
	if !stacked && !slices.Equal(t.Shape, []int{n}) {
		return nil, false, fmt.Errorf("tensor %s has shape %v, the configuration asks for %v", t.Name, t.Shape, []int{n})
	}
	typ, err := computable(t)
	if err != nil {
		return nil, false, err
	}
	return &layout.Vector{Name: t.Name, Type: typ, Len: n, File: t.File, Offset: t.Offset}, true, nil
}

// computable returns the tensor's format if its values can be decoded.
func computable(t *checkpoint.Tensor) (quant.Type, error) {
	if t.Type == checkpoint.NoType || !quant.CanDecode(t.Type) {
		return 0, fmt.Errorf("tensor %s has the type %s, which cannot be computed with", t.Name, t.DType)
	}
	return t.Type, nil
}
