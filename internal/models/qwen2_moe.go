package models

import "github.com/spillway/spillway/internal/nn"

func init() {
	register("qwen2_moe", qwen2MoE)
	register("qwen2moe", qwen2MoE) // GGUF's name
}

// qwen2MoE is Qwen1.5-MoE and Qwen2-MoE: Qwen 2 with experts, and beside them a gated one that every row uses. A
// sliding window, which no release has, is in every other layer from the first, up to max_window_layers.
func qwen2MoE(c *config) (nn.Decoder, names) {
	end, rope, moe := c.maxWindowLayers(), c.rope(), c.experts("moe_intermediate_size")
	moe.Weights = c.unit(false)
	moe.Shared = &nn.SharedExpert{Width: c.count("shared_expert_intermediate_size", "expert_shared_feed_forward_length", c.FFN), Gated: true}
	d := c.decoder(func(i int) nn.Attention {
		a := c.attention(rope)
		if c.slides() {
			a.Window = c.windowIf(i, i%2 == 0 && i < end)
		}
		return a
	})
	return mixture(d, moe, c.sparse()), standard.with(experts).with(names{
		"ffn.shared_gate": {"model.layers.%d.mlp.shared_expert_gate", "blk.%d.ffn_gate_inp_shexp"},
		"ffn.shared.gate": {"model.layers.%d.mlp.shared_expert.gate_proj", "blk.%d.ffn_gate_shexp"},
		"ffn.shared.up":   {"model.layers.%d.mlp.shared_expert.up_proj", "blk.%d.ffn_up_shexp"},
		"ffn.shared.down": {"model.layers.%d.mlp.shared_expert.down_proj", "blk.%d.ffn_down_shexp"},
	})
}
