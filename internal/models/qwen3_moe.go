package models

import "github.com/spillway/spillway/internal/nn"

func init() {
	register("qwen3_moe", qwen3MoE)
	register("qwen3moe", qwen3MoE) // GGUF's name
}

// qwen3MoE is Qwen 3 with experts, whose weights sum to 1 in the releases.
func qwen3MoE(c *config) (nn.Decoder, names) {
	rope, moe := c.rope(), c.experts("moe_intermediate_size")
	moe.Weights = c.unit(true)
	d := c.decoder(func(int) nn.Attention {
		a := c.attention(rope)
		a.QKNorm = &nn.RMS{Eps: c.Eps}
		if c.slides() {
			a.Window = c.anyWindow()
		}
		return a
	})
	return mixture(d, moe, c.sparse()), standard.with(experts)
}
