package models

import "github.com/spillway/spillway/internal/nn"

func init() { register("olmoe", olmoe) }

// olmoe is OLMoE (Muennighoff et al. 2024): experts in every layer, whose weights are not normalised, and a norm of
// q and k over all heads.
func olmoe(c *config) (nn.Decoder, names) {
	if n, ok := c.values.number("clip_qkv", "attention.clamp_kqv"); ok && n != 0 {
		c.fail("clip_qkv is %v: clipped queries, keys and values are not supported", n)
	}
	rope, moe := c.rope(), c.experts("intermediate_size")
	moe.Weights = c.unit(false)
	d := c.decoder(func(int) nn.Attention {
		a := c.attention(rope)
		a.QKNorm, a.NormWhole = &nn.RMS{Eps: c.Eps}, true
		return a
	})
	return mixture(d, moe, everyLayer), standard.with(experts)
}
