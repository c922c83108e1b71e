package models

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/layout"
)

// Where all experts of a layer are in one tensor of gate and up, each expert's gate is the first half of its rows.
func TestExpertHalves(t *testing.T) {
	const layer = "model.layers.0."
	shapes := map[string][]int{
		"model.embed_tokens.weight": {100, 64}, "model.norm.weight": {64}, "lm_head.weight": {100, 64},
		layer + "input_layernorm.weight": {64}, layer + "post_attention_layernorm.weight": {64},
		layer + "self_attn.q_norm.weight": {16}, layer + "self_attn.k_norm.weight": {16},
		layer + "self_attn.q_proj.weight": {64, 64}, layer + "self_attn.k_proj.weight": {32, 64},
		layer + "self_attn.v_proj.weight": {32, 64}, layer + "self_attn.o_proj.weight": {64, 64},
		layer + "mlp.gate.weight": {8, 64}, layer + "mlp.experts.gate_up_proj": {8, 48, 64}, layer + "mlp.experts.down_proj": {8, 64, 24},
	}
	open := func(shapes map[string][]int) (*layout.Model, *checkpoint.Catalog, error) {
		config := with(t, "qwen3_moe", `{"num_hidden_layers": 1, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 24}`)
		m := memFS{fstest.MapFS{"m/config.json": {Data: []byte(config)}, "m/model.safetensors": {Data: zeros(t, shapes)}}}
		cat, err := checkpoint.Open(m, "m")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cat.Close() })
		model, err := Describe(cat)
		if err != nil {
			return nil, nil, err
		}
		return model.Layout, cat, nil
	}
	model, cat, err := open(shapes)
	if err != nil {
		t.Fatal(err)
	}
	both, _ := cat.Tensor(layer + "mlp.experts.gate_up_proj")
	down, _ := cat.Tensor(layer + "mlp.experts.down_proj")
	const size = 2 * 24 * 64 // of one matrix
	for i, s := range model.Experts[0].Stacks {
		for e, at := range s.At {
			want := []int64{both.Offset + int64(2*e*size), both.Offset + int64((2*e+1)*size), down.Offset + int64(e*size)}[i]
			if at.Offset != want || s.Bytes() != size {
				t.Errorf("matrix %d of expert %d has %d bytes at %d, expected %d at %d", i, e, s.Bytes(), at.Offset, size, want)
			}
		}
	}
	shapes[layer+"mlp.experts.gate_up_proj"] = []int{8, 24, 64}
	if _, _, err := open(shapes); err == nil || !strings.Contains(err.Error(), "gate_up_proj has shape [8 24 64], the configuration asks for [8 48 64]") {
		t.Errorf("too few rows: %v", err)
	}
}

// A head beside the embedding counts although the configuration ties them, unless it is equal.
func TestTied(t *testing.T) {
	for _, at := range []int64{-1, 0, 6000, 100*64*2 - 1} {
		m := folder(t, with(t, "llama", `{"tie_word_embeddings": true}`))
		cat, err := checkpoint.Open(m, "m")
		if err != nil {
			t.Fatal(err)
		}
		head, _ := cat.Tensor("lm_head.weight")
		if err := cat.Close(); err != nil {
			t.Fatal(err)
		}
		if at >= 0 {
			m.MapFS["m/model.safetensors"].Data[head.Offset+at] = 1
		}
		if cat, err = checkpoint.Open(m, "m"); err != nil {
			t.Fatal(err)
		}
		model, err := Describe(cat)
		if err != nil {
			t.Fatal(err)
		}
		tied := !slices.ContainsFunc(model.Layout.Matrices, func(x *layout.Matrix) bool { return x.Name == "lm_head.weight" })
		if tied != (at < 0) {
			t.Errorf("tied is %v with another byte at %d", tied, at)
		}
		if err := cat.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
