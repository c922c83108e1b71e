package models

import "github.com/spillway/spillway/internal/nn"

func init() {
	register("llama", llama)
	register("internlm3", llama) // Llama under its own name, with biases and dynamic NTK
}

// llama is Llama 1 to 3 and what is built like it (SmolLM2, TinyLlama, InternLM3). GGUF files of this
// architecture store the rows of q and k for interleaved rotation.
func llama(c *config) (nn.Decoder, names) {
	if n := c.optionalCount("num_local_experts", "expert_count"); n > 0 {
		c.fail("%d experts: mixtures of experts are not supported yet", n)
	}
	c.Interleaved = c.fromGGUF()
	rope := c.rope()
	return c.decoder(func(int) nn.Attention { return c.attention(rope) }), standard
}
