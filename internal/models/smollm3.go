package models

import "github.com/spillway/spillway/internal/nn"

func init() { register("smollm3", smollm3) }

// smollm3 is Llama whose layers have no rotation where no_rope_layers says 0, or, without that list,
// in every no_rope_layer_interval-th layer (GGUF files leave it at 4).
func smollm3(c *config) (nn.Decoder, names) {
	listed, ok := c.values.list("no_rope_layers")
	interval := c.count("no_rope_layer_interval", "", 4)
	c.RopeBase = 2e6
	rope := c.rope()
	return c.decoder(func(i int) nn.Attention {
		rotates := (i+1)%interval != 0
		if ok && i < len(listed) {
			rotates = listed[i] != 0.0 && listed[i] != false
		}
		a := c.attention(nil)
		from := 0 // windows are for layers without rotation, unless layer_types says otherwise
		if rotates {
			a.Rope, from = rope, i+1
		}
		a.Window = c.optionalWindow(i, from)
		return a
	}), standard
}
