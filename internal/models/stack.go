package models

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/repack"
	"github.com/spillway/spillway/internal/layout"
)

// experts is the names of experts that most families use: one tensor each in Hugging Face folders, one for all of a
// layer in GGUF files, which had one each in their first form. transformers 5 can also write one for all of a layer, in
// which the rows of gate and up follow each other.
var experts = names{
	"ffn.router":                {"model.layers.%d.mlp.gate", "blk.%d.ffn_gate_inp"},
	"ffn.experts.gate":          {"", "blk.%d.ffn_gate_exps"},
	"ffn.experts.up":            {"", "blk.%d.ffn_up_exps"},
	"ffn.experts.down":          {"model.layers.%d.mlp.experts.down_proj", "blk.%d.ffn_down_exps"},
	"ffn.experts.gate" + first:  {"model.layers.%d.mlp.experts.gate_up_proj", ""},
	"ffn.experts.up" + second:   {"model.layers.%d.mlp.experts.gate_up_proj", ""},
	"ffn.experts.gate" + single: {"model.layers.%d.mlp.experts.%d.gate_proj", "blk.%d.ffn_gate.%d"},
	"ffn.experts.up" + single:   {"model.layers.%d.mlp.experts.%d.up_proj", "blk.%d.ffn_up.%d"},
	"ffn.experts.down" + single: {"model.layers.%d.mlp.experts.%d.down_proj", "blk.%d.ffn_down.%d"},
}

// How the roles of experts end that are not whole tensors of all experts: with tensors of their own, or the first or
// second half of each expert's rows.
const (
	single = ".single"
	first  = ".first"
	second = ".second"
)

// Stack implements nn.Source.
func (s *source) Stack(layer int, role string, experts, rows, cols int) (*layout.Stack, bool, error) {
	if t, ok := s.find(s.names[role], layer, ".weight"); ok {
		st, err := s.together(t, experts, rows, cols)
		return st, err == nil, err
	}
	for half, end := range []string{first, second} {
		if t, ok := s.find(s.names[role+end], layer, ".weight"); ok {
			st, err := s.part(t, experts, 2, half, rows, cols)
			return st, err == nil, err
		}
	}
	if t, ok := s.find(s.names[role], layer, "_blocks"); ok {
		st, err := s.blocks(t, experts, rows, cols)
		return st, err == nil, err
	}
	return s.apart(s.names[role+single], layer, experts, rows, cols)
}

// together is a stack in one tensor.
func (s *source) together(t *checkpoint.Tensor, experts, rows, cols int) (*layout.Stack, error) {
	if s.turned {
		return s.added(t, experts, rows, cols, func(e int) (repack.Matrix, error) { return s.view.AddTurned(t, e, rows, cols) })
	}
	return s.part(t, experts, 1, 0, rows, cols)
}

// part is a stack of one of the parts that each expert's rows are made of.
func (s *source) part(t *checkpoint.Tensor, experts, parts, part, rows, cols int) (*layout.Stack, error) {
	if shape := []int{experts, parts * rows, cols}; !slices.Equal(t.Shape, shape) {
		return nil, fmt.Errorf("tensor %s has shape %v, the configuration asks for %v", t.Name, t.Shape, shape)
	}
	typ, err := computable(t)
	if err != nil {
		return nil, err
	}
	st := &layout.Stack{Name: t.Name, Type: typ, Rows: rows, Cols: cols, At: make([]layout.Place, experts)}
	for e := range st.At {
		at, n := t.At((int64(e)*int64(parts) + int64(part)) * st.Bytes())
		if n < st.Bytes() {
			return nil, fmt.Errorf("tensor %s: a matrix of %d bytes does not fit its slices", t.Name, st.Bytes())
		}
		st.At[e] = layout.Place{File: int32(t.File), Offset: at}
	}
	return st, nil
}

// blocks is a stack of MXFP4: codes in one tensor, scales in another.
func (s *source) blocks(t *checkpoint.Tensor, experts, rows, cols int) (*layout.Stack, error) {
	name := strings.TrimSuffix(t.Name, "_blocks") + "_scales"
	scales, ok := s.cat.Tensor(name)
	if !ok {
		return nil, fmt.Errorf("tensor %s has no scales: %s is missing", t.Name, name)
	}
	return s.added(t, experts, rows, cols, func(e int) (repack.Matrix, error) {
		return s.view.AddMXFP4(repack.MXFP4{Codes: t, Scale: scales, Expert: e}, rows, cols)
	})
}

// added is a stack of the view. The tensor's experts are counted before any is added.
func (s *source) added(t *checkpoint.Tensor, experts, rows, cols int, add func(e int) (repack.Matrix, error)) (*layout.Stack, error) {
	if len(t.Shape) < 3 || t.Shape[0] != experts {
		return nil, fmt.Errorf("tensor %s has shape %v, the configuration asks for %d experts", t.Name, t.Shape, experts)
	}
	s.openView()
	st := &layout.Stack{Name: t.Name, Rows: rows, Cols: cols, At: make([]layout.Place, experts)}
	for e := range st.At {
		at, err := add(e)
		if err != nil {
			return nil, err
		}
		st.Type, st.At[e] = at.Type, layout.Place{File: int32(len(s.cat.Files)), Offset: at.Offset}
	}
	return st, nil
}

// apart is a stack of experts with tensors of their own.
func (s *source) apart(pair [2]string, layer, experts, rows, cols int) (*layout.Stack, bool, error) {
	st := &layout.Stack{Rows: rows, Cols: cols}
	for e := range experts {
		m, ok, err := s.single(s.modulesOf(pair, layer, e), "Linear", rows, cols)
		switch {
		case err != nil || !ok && e == 0:
			return nil, false, err
		case !ok:
			return nil, false, fmt.Errorf("expert %d of layer %d has no tensor beside %s", e, layer, st.Name)
		case m.Order != nil:
			return nil, false, fmt.Errorf("tensor %s: experts whose columns are sorted (desc_act) are not supported", m.Name)
		case e == 0:
			st.Name, st.Type = m.Name, m.Type
		case m.Type != st.Type:
			return nil, false, fmt.Errorf("tensor %s has the type %s, %s has %s: the experts of a layer must have one", m.Name, m.Type, st.Name, st.Type)
		}
		st.At = append(st.At, layout.Place{File: int32(m.File), Offset: m.Offset})
	}
	return st, true, nil
}
