package models

import (
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/nn"
)

func init() {
	register("gpt_oss", gptOSS)
	register("gpt-oss", gptOSS) // GGUF's name
}

// gptOSS is gpt-oss (OpenAI 2025): attention sinks, a sliding window in every other layer from the first, biases
// everywhere, and experts with a clamped activation, chosen by their scores alone.
func gptOSS(c *config) (nn.Decoder, names) {
	c.RopeBase, c.Window = 150000, 128
	rope, moe := c.rope(), c.experts("intermediate_size")
	if !c.fromGGUF() && !c.scaled() {
		rope.Scaling = yarnRope(kernel.YaRN{Factor: 32, OriginalLength: 4096, NoTruncate: true})
	}
	if y, ok := rope.Scaling.(yarn); ok && c.fromGGUF() {
		y.NoTruncate = true // as released; GGUF cannot say it
		rope.Scaling = y
	}
	moe.Weights = nn.SoftmaxChosen
	moe.Clamp = &nn.Clamp{
		Alpha: float32(c.positive("swiglu_alpha", "", 1.702)), Limit: float32(c.positive("swiglu_limit", "", 7)),
	}
	c.Turned = true
	d := c.decoder(func(i int) nn.Attention {
		a := c.attention(rope)
		a.Sinks = true
		a.Window = c.windowIf(i, i%2 == 0)
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
