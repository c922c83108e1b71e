package synth

import "fmt"

// mixture lists the tensors of a layer's experts: one for all of them in GGUF files, one each in folders.
func (s *Shape) mixture(layer int, folder bool) []tensor {
	hf := func(name string) string { return fmt.Sprintf("model.layers.%d.%s.%s", layer, s.ffn, name) }
	gguf := func(name string) string { return fmt.Sprintf("blk.%d.%s", layer, name) }
	m := s.Mixture
	list := []tensor{{gguf: gguf("ffn_gate_inp.weight"), hf: hf("gate.weight"), role: router, layer: layer, rows: m.Experts, cols: s.Hidden}}
	if s.oss {
		list = append(list, tensor{gguf: gguf("ffn_gate_inp.bias"), hf: hf("gate.bias"), role: bias, layer: layer, rows: 1, cols: m.Experts})
	}
	for i, x := range []struct {
		name       string
		role       role
		rows, cols int
	}{{"gate", ffnGate, m.Width, s.Hidden}, {"up", ffnUp, m.Width, s.Hidden}, {"down", ffnDown, s.Hidden, m.Width}} {
		stack := tensor{
			gguf: gguf("ffn_" + x.name + "_exps.weight"), role: x.role, layer: layer, rows: m.Experts * x.rows, cols: x.cols,
			experts: m.Experts, stack: hf("experts." + x.name + ".weight"),
		}
		if !folder {
			list = append(list, stack)
			if s.oss {
				stack.gguf, stack.stack = gguf("ffn_"+x.name+"_exps.bias"), hf("experts."+x.name+".bias")
				stack.role, stack.rows, stack.cols = bias, m.Experts, x.rows
				list = append(list, stack)
			}
			continue
		}
		for e := range m.Experts {
			one := stack
			one.hf = hf(fmt.Sprintf("experts.%d.%s.weight", e, s.gateUp[i]))
			one.experts, one.rows, one.one = 0, x.rows, e+1
			list = append(list, one)
		}
	}
	return list
}

// mixtureMetadata is what GGUF files say about experts.
func (s *Shape) mixtureMetadata(key func(string) string) []entry {
	if s.Mixture == nil {
		return nil
	}
	all := []entry{
		{key("expert_count"), uint32(s.Experts)},
		{key("expert_used_count"), uint32(s.Used)},
		{key("expert_feed_forward_length"), uint32(s.Width)},
	}
	if !s.oss {
		return all
	}
	return append(all,
		entry{key("attention.sliding_window"), uint32(128)},
		entry{key("rope.scaling.type"), "yarn"},
		entry{key("rope.scaling.factor"), float32(32)},
		entry{key("rope.scaling.original_context_length"), uint32(4096)},
	)
}

// mixtureConfig is the part of config.json that is about experts.
type mixtureConfig struct {
	Experts *int  `json:"num_experts,omitempty"`
	Local   *int  `json:"num_local_experts,omitempty"`
	Used    *int  `json:"num_experts_per_tok,omitempty"`
	Width   *int  `json:"moe_intermediate_size,omitempty"`
	Unit    *bool `json:"norm_topk_prob,omitempty"`
}

func (s *Shape) mixtureConfig() mixtureConfig {
	m := s.Mixture
	if m == nil {
		return mixtureConfig{}
	}
	return mixtureConfig{Experts: &m.Experts, Local: &m.Experts, Used: &m.Used, Width: &m.Width, Unit: &s.unit}
}
