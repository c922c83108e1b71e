package models

import "github.com/spillway/spillway/internal/nn"

func init() { register("mixtral", mixtral) }

// mixtral is Mistral with experts in every layer (Jiang et al. 2024). GGUF files call it llama, and store the rows
// of q and k for interleaved rotation.
func mixtral(c *config) (nn.Decoder, names) {
	c.Interleaved, c.RopeBase = c.fromGGUF(), 1e6
	rope, moe := c.rope(), c.experts("intermediate_size")
	moe.Weights = nn.SoftmaxUnit
	d := c.decoder(func(int) nn.Attention {
		a := c.attention(rope)
		a.Window = c.anyWindow()
		return a
	})
	return mixture(d, moe, everyLayer), standard.with(experts).with(names{
		"ffn.router":                {"model.layers.%d.block_sparse_moe.gate", "blk.%d.ffn_gate_inp"},
		"ffn.experts.gate" + single: {"model.layers.%d.block_sparse_moe.experts.%d.w1", "blk.%d.ffn_gate.%d"},
		"ffn.experts.up" + single:   {"model.layers.%d.block_sparse_moe.experts.%d.w3", "blk.%d.ffn_up.%d"},
		"ffn.experts.down" + single: {"model.layers.%d.block_sparse_moe.experts.%d.w2", "blk.%d.ffn_down.%d"},
	})
}
