package models

import "github.com/spillway/spillway/internal/nn"

func init() { register("qwen2", qwen2) }

// qwen2 is Qwen 1.5 to 2.5: biases on q, k and v, and optionally a sliding window in the layers from
// max_window_layers on.
func qwen2(c *config) (nn.Decoder, names) {
	from := c.maxWindowLayers()
	rope := c.rope()
	return c.decoder(func(i int) nn.Attention {
		a := c.attention(rope)
		a.Window = c.optionalWindow(i, from)
		return a
	}), standard
}
