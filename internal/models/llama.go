package models

import "github.com/spillway/spillway/internal/nn"

func init() {
	register("llama", llama)
	register("internlm3", llama) // Llama under its own name, with biases and dynamic NTK
}

// llama is Llama 1 to 3 and what is built like it (SmolLM2, TinyLlama, InternLM3). GGUF files of this
// architecture store the rows of q and k for interleaved rotation.
func llama(c *config) (nn.Decoder, names) {
	if c.optionalCount("", "expert_count") > 0 {
		return mixtral(c)
	}
	if n := c.optionalCount("num_local_experts", ""); n > 0 {
		c.fail("num_local_experts is %d, but models of type llama have none; mixtral has", n)
	}
	c.Interleaved = c.fromGGUF()
	rope := c.rope()
	return c.decoder(func(int) nn.Attention { return c.attention(rope) }), standard
}
