package models

import (
	"maps"
	"slices"
	"strings"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/repack"
)

// compressed is compressed-tensors, as LLM Compressor writes it: groups of modules, each with a scheme.
type compressed struct {
	groups []compressedGroup
	plain  exceptions
}

type compressedGroup struct {
	targets     []pattern
	format      string
	float       bool
	bits, group int
	ordered     bool // columns belong to the groups that g_idx says
	zeros       bool // there are zero points
	block       [2]int
}

func newCompressed(c *config, q jsonValues) scheme {
	s := &compressed{plain: c.patterns(q, "ignore")}
	format, _ := q.text("format", "")
	groups, ok := q.object("config_groups")
	if !ok {
		c.fail("quantization_config has no config_groups")
		return s
	}
	for _, name := range slices.Sorted(maps.Keys(groups.(jsonValues))) {
		g, ok := groups.object(name)
		if !ok {
			c.fail("quantization_config.config_groups.%s is no object", name)
			return s
		}
		if w, ok := g.object("weights"); ok {
			s.groups = append(s.groups, c.compressedGroup(g, w, format))
		}
	}
	if sparse, ok := q.object("sparsity_config"); ok {
		if f, ok := sparse.text("format", ""); ok && f != "dense" {
			c.fail("quantization_config.sparsity_config: the format %q is not supported", f)
		}
	}
	if t, ok := q.object("transform_config"); ok && len(t.(jsonValues)) > 0 {
		c.fail("quantization_config.transform_config, which rotates activations, is not supported")
	}
	return s
}

func (c *config) compressedGroup(g, w values, format string) compressedGroup {
	x := compressedGroup{targets: c.patterns(g, "targets"), format: format, bits: c.whole(w, "num_bits", 1), block: c.block(w, "block_structure")}
	if own, ok := g.text("format", ""); ok {
		x.format = own
	}
	kind, _ := w.text("type", "")
	x.float = kind == "float"
	if strategy, _ := w.text("strategy", ""); strategy == "group" || strategy == "tensor_group" {
		x.group = c.whole(w, "group_size", 1)
	}
	x.ordered = c.reordered(w)
	symmetric, ok := w.flag("symmetric", "")
	x.zeros = ok && !symmetric
	switch {
	case x.supported() == nil:
		c.fail("quantization_config: the format %q of compressed-tensors is not supported for %d-bit %s weights", x.format, x.bits, kind)
	case x.zeros && x.float:
		c.fail("quantization_config: zero points of float weights are not supported")
	case x.ordered && x.float:
		c.fail("quantization_config: float weights with reordered columns (actorder) are not supported")
	}
	return x
}

// reordered reads actorder: whether columns belong to groups out of their order. By "weight" they were only
// quantized in another order, and are stored in their own.
func (c *config) reordered(w values) bool {
	if flag, ok := w.flag("actorder", ""); ok {
		return flag
	}
	switch order, _ := w.text("actorder", ""); order {
	case "group", "dynamic":
		return true
	case "", "weight", "static":
	default:
		c.fail("quantization_config: the actorder %q of compressed-tensors is not supported: group and weight are", order)
	}
	return false
}

// adder adds the weights of a module in one of the formats.
type adder func(g *compressedGroup, m module) (repack.Matrix, *checkpoint.Tensor, error)

// supported returns what adds weights in the group's format, or nil.
func (g *compressedGroup) supported() adder {
	switch {
	case g.format == "pack-quantized" && !g.float:
		return (*compressedGroup).packed
	case (g.format == "int-quantized" || g.format == "naive-quantized") && !g.float && g.bits == 8:
		return (*compressedGroup).int8s
	case (g.format == "float-quantized" || g.format == "naive-quantized" || g.format == "mxfp8-quantized") && g.float && g.bits == 8:
		return (*compressedGroup).floats
	case g.format == "nvfp4-pack-quantized" && g.float && g.bits == 4:
		return (*compressedGroup).nvfp4
	case g.format == "mxfp4-pack-quantized" && g.float && g.bits == 4:
		return (*compressedGroup).mxfp4
	}
	return nil
}

// add implements scheme.
func (s *compressed) add(m module) (repack.Matrix, *checkpoint.Tensor, error) {
	if s.plain.has(m.name) {
		return repack.Matrix{}, nil, nil
	}
	g := s.group(m)
	if g == nil {
		return repack.Matrix{}, nil, nil
	}
	return g.supported()(g, m)
}

// group is the group that names the module; before one that has an expression for it, before one that
// has its class.
func (s *compressed) group(m module) *compressedGroup {
	for _, fits := range []func(p pattern) bool{
		func(p pattern) bool { return p.expression == nil && p.text == m.name },
		func(p pattern) bool { return p.expression != nil && p.expression.MatchString(m.name) },
		func(p pattern) bool { return p.expression == nil && p.text == m.class },
	} {
		for i := range s.groups {
			if slices.ContainsFunc(s.groups[i].targets, fits) {
				return &s.groups[i]
			}
		}
	}
	return nil
}

func (g *compressedGroup) packed(m module) (repack.Matrix, *checkpoint.Tensor, error) {
	x := repack.Ints{Codes: m.tensor(".weight_packed"), Bits: g.bits, Group: g.group, Ordered: g.ordered}
	if x.Codes == nil {
		return repack.Matrix{}, nil, nil
	}
	scale, err := g.scales(m)
	if err != nil {
		return repack.Matrix{}, nil, err
	}
	x.Scales, x.Zeros, x.Order = scale, m.tensor(".weight_zero_point"), m.tensor(".weight_g_idx")
	at, err := m.src.view.AddPacked(x, m.rows, m.cols)
	return at, x.Codes, err
}

// scales returns the scales of a module, after it has looked whether zero points are there that must be.
func (g *compressedGroup) scales(m module) (scale *checkpoint.Tensor, err error) {
	suffixes := []string{".weight_scale", ".weight_zero_point"}
	if !g.zeros {
		suffixes = suffixes[:1]
	}
	all, err := m.need(suffixes...)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func (g *compressedGroup) int8s(m module) (repack.Matrix, *checkpoint.Tensor, error) {
	t, scale, err := g.eight(m, "I8")
	if t == nil || err != nil {
		return repack.Matrix{}, nil, err
	}
	x := repack.Ints{Codes: t, Scales: scale, Zeros: m.tensor(".weight_zero_point"), Group: g.group, Ordered: g.ordered, Order: m.tensor(".weight_g_idx")}
	at, err := m.src.view.AddInt8(x, m.rows, m.cols)
	return at, t, err
}

// eight finds weights of eight bits with their scale.
func (g *compressedGroup) eight(m module, dtype string) (t, scale *checkpoint.Tensor, err error) {
	t = m.tensor(".weight")
	if t == nil || !strings.HasPrefix(t.DType, dtype) {
		return nil, nil, nil
	}
	if scale, err = g.scales(m); err != nil {
		return nil, nil, err
	}
	return t, scale, nil
}

func (g *compressedGroup) floats(m module) (repack.Matrix, *checkpoint.Tensor, error) {
	t, scale, err := g.eight(m, "F8_")
	if t == nil || err != nil {
		return repack.Matrix{}, nil, err
	}
	block := g.block
	if g.group > 0 {
		block = [2]int{1, g.group}
	}
	at, err := m.src.view.AddFP8(repack.FP8{Codes: t, Scale: scale, Block: block}, m.rows, m.cols)
	return at, t, err
}

func (g *compressedGroup) nvfp4(m module) (repack.Matrix, *checkpoint.Tensor, error) {
	t := m.tensor(".weight_packed")
	if t == nil {
		return repack.Matrix{}, nil, nil
	}
	rest, err := m.need(".weight_scale", ".weight_global_scale")
	if err != nil {
		return repack.Matrix{}, nil, err
	}
	at, err := m.src.view.AddNVFP4(repack.NVFP4{Codes: t, Scale: rest[0], Tensor: rest[1]}, m.rows, m.cols)
	return at, t, err
}

func (g *compressedGroup) mxfp4(m module) (repack.Matrix, *checkpoint.Tensor, error) {
	t := m.tensor(".weight_packed")
	if t == nil {
		return repack.Matrix{}, nil, nil
	}
	rest, err := m.need(".weight_scale")
	if err != nil {
		return repack.Matrix{}, nil, err
	}
	at, err := m.src.view.AddMXFP4(repack.MXFP4{Codes: t, Scale: rest[0], Expert: -1}, m.rows, m.cols)
	return at, t, err
}
