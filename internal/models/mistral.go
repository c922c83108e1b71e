package models

import "github.com/spillway/spillway/internal/nn"

func init() { register("mistral", mistral) }

// mistral is Llama with a sliding window in every layer (Jiang et al. 2023).
func mistral(c *config) (nn.Decoder, names) {
	c.Interleaved = c.fromGGUF()
	rope := c.rope()
	return c.decoder(func(i int) nn.Attention {
		a := c.attention(rope)
		a.Window = c.window(i, 0)
		return a
	}), standard
}
