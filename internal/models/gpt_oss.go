package models

import "github.com/spillway/spillway/internal/nn"

func init() {
	register("gpt_oss", gptOSS)
	register("gpt-oss", gptOSS) // GGUF's name
}

// gptOSS is gpt-oss (OpenAI 2025): attention sinks, a sliding window in every other layer from the first, biases
// everywhere, and experts with a clamped activation, chosen by their scores alone.
func gptOSS(c *config) (nn.Decoder, names) {
	rope, moe := c.rope(), c.experts("intermediate_size")
	if y, ok := rope.Scaling.(yarn); ok && c.fromGGUF() {
		y.NoTruncate = true // as released; GGUF cannot say it
		rope.Scaling = y
	}
	moe.Weights = nn.SoftmaxChosen
	moe.Clamp = &nn.Clamp{
		Alpha: float32(c.positive("swiglu_alpha", "", 1.702)), Limit: float32(c.positive("swiglu_limit", "", 7)),
	}
	c.Turned = true
	_, listed := c.values.list("layer_types")
	d := c.decoder(func(i int) nn.Attention {
		a := c.attention(rope)
		a.Sinks = true
		if listed || i%2 == 0 {
			a.Window = c.window(i, 0)
		}
		return a
	})
	return mixture(d, moe, everyLayer), standard.with(experts).with(names{
		"ffn_norm":            {"model.layers.%d.post_attention_layernorm", "blk.%d.post_attention_norm"},
		"attn.sinks":          {"model.layers.%d.self_attn.sinks", "blk.%d.attn_sinks"},
		"ffn.router":          {"model.layers.%d.mlp.router", "blk.%d.ffn_gate_inp"},
		"ffn.experts.gate_up": {"model.layers.%d.mlp.experts.gate_up_proj", ""},
		"ffn.experts.down":    {"model.layers.%d.mlp.experts.down_proj", "blk.%d.ffn_down_exps"},
	})
}
