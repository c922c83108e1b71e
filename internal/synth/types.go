package synth

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spillway/spillway/internal/quant"
)

// A mix gives each matrix its type. The rules are llama.cpp's, as published files follow them.
type mix struct {
	name     string
	fileType uint32 // general.file_type: llama.cpp's number of the mix
	output   quant.Type
	base     quant.Type
	more     quant.Type // attn_v and ffn_down of the layers that moreBits names
}

var mixes = []mix{
	{"q4_k_m", 15, quant.Q6_K, quant.Q4_K, quant.Q6_K},
	{"q5_k_m", 17, quant.Q6_K, quant.Q5_K, quant.Q6_K},
}

// fileTypes are llama.cpp's numbers of files with one block type.
var fileTypes = map[quant.Type]uint32{
	quant.F32: 0, quant.F16: 1, quant.Q4_0: 2, quant.Q4_1: 3, quant.Q8_0: 7, quant.Q5_0: 8, quant.Q5_1: 9,
	quant.Q2_K: 10, quant.Q3_K: 12, quant.Q4_K: 14, quant.Q5_K: 16, quant.Q6_K: 18, quant.IQ4NL: 25, quant.IQ4XS: 30,
	quant.BF16: 32, quant.TQ1_0: 36, quant.TQ2_0: 37, quant.MXFP4: 38,
}

// TypeNames returns what LookupType knows, sorted.
func TypeNames() []string {
	var names []string
	for t := range quant.Type(64) {
		if _, ok := quant.Lookup(t); ok && quant.CanEncode(t) {
			names = append(names, strings.ToLower(t.String()))
		}
	}
	for _, m := range mixes {
		names = append(names, m.name)
	}
	slices.Sort(names)
	return names
}

// lookupType returns the mix of that name: a block type is a mix of one.
func lookupType(name string) (mix, error) {
	for _, m := range mixes {
		if strings.EqualFold(m.name, name) {
			return m, nil
		}
	}
	for t := range quant.Type(64) {
		if _, ok := quant.Lookup(t); !ok || !strings.EqualFold(t.String(), name) {
			continue
		}
		if !quant.CanEncode(t) {
			return mix{}, fmt.Errorf("type %s cannot be written; there are %s", name, strings.Join(TypeNames(), ", "))
		}
		ft, ok := fileTypes[t]
		if !ok {
			ft = 1024 // llama.cpp's "guessed"
		}
		return mix{name: strings.ToLower(t.String()), fileType: ft, output: t, base: t, more: t}, nil
	}
	return mix{}, fmt.Errorf("unknown type %q; there are %s", name, strings.Join(TypeNames(), ", "))
}

// assign sets the types of the tensors. Vectors and routers are F32 in GGUF files, whatever the mix; in
// float-only Hugging Face files they have the type of the matrices.
func (m mix) assign(s *Shape, list []tensor, gguf bool) error {
	for i := range list {
		t := &list[i]
		t.typ = m.base
		switch {
		case (t.vector() || t.role == router) && gguf:
			t.typ = quant.F32
			continue
		case m.base == quant.MXFP4 && s.Mixture != nil && t.experts == 0: // for experts alone
			t.typ = quant.Q8_0
		case t.role == output, t.role == embedding && s.Tied:
			t.typ = m.output
		case (t.role == attnV || t.role == ffnDown) && moreBits(t.layer, s.Layers):
			t.typ = m.more
		}
		if err := t.fit(); err != nil {
			return err
		}
	}
	return nil
}

// moreBits reports whether a layer is among those that the _M mixes keep finer: the first and the
// last eighth and every third between (use_more_bits in llama.cpp).
func moreBits(layer, layers int) bool {
	return layer < layers/8 || layer >= 7*layers/8 || (layer-layers/8)%3 == 2
}

// fit replaces a type whose blocks do not divide the row by the one that llama.cpp takes then.
func (t *tensor) fit() error {
	if t.cols%t.typ.BlockValues() == 0 {
		return nil
	}
	was := t.typ
	t.replaced = true
	switch t.typ {
	case quant.Q4_K:
		t.typ = quant.Q5_0
	case quant.Q5_K:
		t.typ = quant.Q5_1
	case quant.Q6_K:
		t.typ = quant.Q8_0
	case quant.Q2_K, quant.Q3_K, quant.IQ4XS:
		t.typ = quant.IQ4NL
	default:
		t.typ = quant.F16
	}
	if t.cols%t.typ.BlockValues() != 0 || !quant.CanEncode(t.typ) {
		return fmt.Errorf("rows of %d values (%s) are not whole blocks of %v (%d values)", t.cols, t.gguf, was, was.BlockValues())
	}
	return nil
}
