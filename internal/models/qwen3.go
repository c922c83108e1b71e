package models

import "github.com/spillway/spillway/internal/nn"

func init() { register("qwen3", qwen3) }

// qwen3 is Qwen 2 without biases and with a norm of each head of q and k.
func qwen3(c *config) (nn.Decoder, names) {
	from := c.maxWindowLayers()
	rope := c.rope()
	return c.decoder(func(i int) nn.Attention {
		a := c.attention(rope)
		a.QKNorm = &nn.RMS{Eps: c.Eps}
		a.Window = c.optionalWindow(i, from)
		return a
	}), standard
}
