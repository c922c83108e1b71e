package models

import (
	"math"

	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/nn"
)

// rope reads the rotation of a model: transformers 5 writes it under rope_parameters, older releases
// as rope_theta and rope_scaling, GGUF as rope.* keys or as a tensor of divisors.
func (c *config) rope() *nn.Rope {
	base := 10000.0
	if c.RopeBase > 0 && !c.fromGGUF() {
		base = c.RopeBase
	}
	r := &nn.Rope{Base: c.positive("rope_theta", "rope.freq_base", base), Interleaved: c.Interleaved, Factors: "rope_freqs.weight"}
	partial := c.positive("partial_rotary_factor", "", 1)
	scaling, ok := c.ropeParameters()
	if ok {
		if theta, found := scaling.number("rope_theta", ""); found {
			r.Base = theta
		}
		if f, found := scaling.number("partial_rotary_factor", ""); found {
			partial = f
		}
	}
	if !(partial > 0 && partial <= 1) {
		c.fail("partial_rotary_factor is %v, expected a number above 0, up to 1", partial)
	}
	r.Dim = c.count("", "rope.dimension_count", max(int(float64(c.HeadDim)*partial), 1))
	if !(r.Base > 1) {
		c.fail("rope base %v, expected a number above 1", r.Base)
		return r
	}
	if _, isJSON := c.values.(jsonValues); !isJSON {
		r.Scaling = c.ggufScaling()
	} else if ok {
		r.Scaling = c.hfScaling(scaling)
	}
	return r
}

// ropeParameters is where config.json describes the rotation. An older key that says something goes first, as in
// transformers.
func (c *config) ropeParameters() (values, bool) {
	for _, key := range []string{"rope_scaling", "rope_parameters"} {
		v, ok := c.values.object(key)
		if !ok || v.empty() {
			continue
		}
		for _, layers := range []string{"full_attention", "sliding_attention"} {
			if v.has(layers) {
				c.fail("%s has an entry for each kind of layers (%s), which this family does not know", key, layers)
			}
		}
		return v, true
	}
	return nil, false
}

// scaled reports whether config.json says how the rotation is scaled, if only that it is not.
func (c *config) scaled() bool { _, ok := c.ropeParameters(); return ok }

func (c *config) hfScaling(v values) nn.Scaling {
	kind, _ := v.text("rope_type", "")
	if kind == "" {
		kind, _ = v.text("type", "")
	}
	if kind == "" || kind == "default" {
		return nil
	}
	num := func(key string, def float64) float64 {
		if n := c.notNegative(v, key, key); n > 0 {
			return n
		}
		return def
	}
	factor, original, ok := c.hfFactor(v, kind)
	if !ok {
		return nil
	}
	switch kind {
	case "linear":
		return linearRope(factor)
	case "llama3":
		low, high := num("low_freq_factor", 1), num("high_freq_factor", 4)
		if low >= high {
			c.fail("rope scaling %q has low_freq_factor %v, which is not below high_freq_factor %v", kind, low, high)
		}
		return llama3Rope(kernel.Llama3Rope{Factor: factor, LowFreqFactor: low, HighFreqFactor: high, OriginalLength: int(original)})
	case "dynamic":
		return dynamicRope{factor, c.Context}
	case "yarn":
		truncate, given := v.flag("truncate", "")
		return yarnRope(kernel.YaRN{Factor: factor, OriginalLength: int(original),
			BetaFast: num("beta_fast", 0), BetaSlow: num("beta_slow", 0), AttentionFactor: num("attention_factor", 0),
			MScale: num("mscale", 0), MScaleAllDim: num("mscale_all_dim", 0), NoTruncate: given && !truncate})
	}
	c.fail("rope scaling %q is not supported: default, linear, llama3, dynamic and yarn are", kind)
	return nil
}

// hfFactor reads how many times longer than the original length a scaled rotation reaches, and that length. As in
// transformers, the length beside rope_scaling goes before the one in it, and only YaRN's factor may be left out.
func (c *config) hfFactor(v values, kind string) (factor, original float64, ok bool) {
	const key = "original_max_position_embeddings"
	original = float64(c.Context)
	if n := c.notNegative(v, key, key); n > 0 {
		original = n
	}
	if n := c.notNegative(c.values, key, ""); n > 0 {
		original = n
	}
	factor, given := v.number("factor", "")
	switch {
	case given:
	case kind == "linear" || kind == "llama3" || kind == "dynamic":
		c.fail("rope scaling %q has no factor", kind)
		return 0, 0, false
	default:
		factor = float64(c.Context) / original
	}
	if !(factor >= 1) || math.IsInf(factor, 0) || original < 1 || original > maxDim {
		c.fail("rope scaling %q has factor %v and original length %v", kind, factor, original)
		return 0, 0, false
	}
	return factor, original, true
}

func (c *config) ggufScaling() nn.Scaling {
	kind, _ := c.values.text("", "rope.scaling.type")
	factor := c.positive("", "rope.scaling.factor", 1)
	original := c.count("", "rope.scaling.original_context_length", c.Context)
	switch kind {
	case "", "none":
		return nil
	case "linear":
		return linearRope(factor)
	case "yarn":
		return yarnRope(kernel.YaRN{Factor: factor, OriginalLength: original,
			BetaFast:        c.notNegative(c.values, "", "rope.scaling.yarn_beta_fast"),
			BetaSlow:        c.notNegative(c.values, "", "rope.scaling.yarn_beta_slow"),
			AttentionFactor: c.notNegative(c.values, "", "rope.scaling.yarn_attn_factor")})
	}
	c.fail("rope.scaling.type %q is not supported: none, linear and yarn are", kind)
	return nil
}

// fixed is a scaling that does not depend on the sequence's length.
type fixed struct{}

func (fixed) Length(int) int { return 0 }

type linear struct {
	fixed
	factor float64
}

func linearRope(factor float64) nn.Scaling { return linear{factor: factor} }

func (l linear) Frequencies(dim int, base float64, _ int) ([]float32, float32) {
	inv := kernel.InvFreq(dim, base)
	kernel.RopeLinear(inv, l.factor)
	return inv, 1
}

type llama3 struct {
	fixed
	kernel.Llama3Rope
}

func llama3Rope(p kernel.Llama3Rope) nn.Scaling { return llama3{Llama3Rope: p} }

func (l llama3) Frequencies(dim int, base float64, _ int) ([]float32, float32) {
	inv := kernel.InvFreq(dim, base)
	l.Apply(inv)
	return inv, 1
}

type yarn struct {
	fixed
	kernel.YaRN
}

func yarnRope(p kernel.YaRN) nn.Scaling { return yarn{YaRN: p} }

func (y yarn) Frequencies(dim int, base float64, _ int) ([]float32, float32) {
	return y.YaRN.Frequencies(dim, base), y.Attention()
}

// dynamicRope is dynamic NTK: the base grows with the length beyond the trained one.
type dynamicRope struct {
	factor  float64
	trained int
}

func (d dynamicRope) Length(n int) int { return max(n, d.trained) }

func (d dynamicRope) Frequencies(dim int, base float64, length int) ([]float32, float32) {
	return kernel.InvFreq(dim, kernel.DynamicNTKBase(base, d.factor, dim, length, d.trained)), 1
}
