package models

import (
	"maps"

	"github.com/spillway/spillway/internal/nn"
)

// experts reads how many experts a layer has, how many of them a row uses, and how wide they are; width is the
// key of Hugging Face.
func (c *config) experts(width string) nn.MoE {
	m := nn.MoE{Used: c.count("num_experts_per_tok", "expert_used_count", 0)}
	if m.Experts = c.optionalCount("num_experts", "expert_count"); m.Experts == 0 {
		m.Experts = c.count("num_local_experts", "expert_count", 0)
	}
	m.Width = c.count(width, "expert_feed_forward_length", c.FFN)
	if m.Used > m.Experts {
		c.fail("%s is %d, but there are %d experts", c.named("num_experts_per_tok", "expert_used_count"), m.Used, m.Experts)
	}
	if m.Experts > maxExperts {
		c.fail("%d experts are more than %d", m.Experts, maxExperts)
	}
	return m
}

// maxExperts bounds the experts of a layer: ids are counted in 16 bits.
const maxExperts = 1 << 16

// mixture puts experts into the layers that have some.
func mixture(d nn.Decoder, m nn.MoE, sparse func(i int) bool) nn.Decoder {
	for i := range d.Blocks {
		if sparse(i) {
			d.Blocks[i].FFN = m
		}
	}
	return d
}

// everyLayer is for models whose layers all have experts.
func everyLayer(int) bool { return true }

// sparse tells which layers have experts: every decoder_sparse_step-th one, but those of mlp_only_layers.
func (c *config) sparse() func(i int) bool {
	step := c.count("decoder_sparse_step", "", 1)
	dense := map[int]bool{}
	list, _ := c.values.list("mlp_only_layers")
	for _, v := range list {
		if n, ok := v.(float64); ok && n >= 0 && n < maxDim {
			dense[int(n)] = true
		}
	}
	return func(i int) bool { return (i+1)%step == 0 && !dense[i] }
}

// unit makes the chosen experts' weights sum to 1 if norm_topk_prob says so; GGUF files do not say it.
func (c *config) unit(gguf bool) nn.Weighting {
	unit, said := c.values.flag("norm_topk_prob", "")
	if c.fromGGUF() && !said {
		unit = gguf
	}
	if unit {
		return nn.SoftmaxUnit
	}
	return nn.SoftmaxAll
}

// with are the names of a family that are not the standard ones.
func (n names) with(more names) names {
	all := maps.Clone(n)
	maps.Copy(all, more)
	return all
}
