package models

import (
	"encoding/json"
	"fmt"
	"math"
)

// config is a model's configuration, from config.json or from GGUF metadata. What every family
// needs is parsed; a family asks for the rest by name. The first fault is kept in err, so that a
// family reads like a description.
type config struct {
	Layers, Hidden, Heads, KVHeads, HeadDim int
	FFN, Vocab, Context                     int
	Eps                                     float32
	Tied                                    bool // the output projection is the embedding
	Interleaved                             bool // q and k rows are stored for interleaved rotation
	Turned                                  bool // stacks of experts are inputs × outputs in Hugging Face folders
	// RopeBase and Window are what config.json means without rope_theta and sliding_window. 0: 10000, and none.
	RopeBase float64
	Window   int

	values  values
	tensors int    // of the checkpoint
	where   string // for errors
	err     error

	expressions, expressionBytes int // that were compiled
}

// values finds configuration values. A key is given as Hugging Face and as GGUF name it; "" where a
// format has none.
type values interface {
	number(hf, gguf string) (float64, bool)
	text(hf, gguf string) (string, bool)
	flag(hf, gguf string) (value, ok bool)
	list(hf string) ([]any, bool)
	has(hf string) bool // even if it is null
	empty() bool
	object(hf string) (values, bool)
}

func (c *config) fail(format string, args ...any) {
	if c.err == nil {
		c.err = &ConfigError{c.where, fmt.Sprintf(format, args...)}
	}
}

// ConfigError says what is wrong with a model's configuration.
type ConfigError struct{ Where, What string }

func (e *ConfigError) Error() string { return e.Where + ": " + e.What }

// named is the key that the reader of an error will find in the file.
func (c *config) named(hf, gguf string) string {
	if v, ok := c.values.(ggufValues); ok {
		return v.arch + "." + gguf
	}
	return hf
}

// maxDim bounds every size in a configuration, far beyond any model, so that products fit an int64.
const maxDim = 1 << 28

// count reads a whole number in [1, maxDim]; def if it is absent, or a fault if def is 0.
func (c *config) count(hf, gguf string, def int) int {
	v, ok := c.values.number(hf, gguf)
	switch {
	case !ok && def > 0:
		return def
	case !ok:
		c.fail("%s is missing or not a number", c.named(hf, gguf))
		return 1
	case v != math.Trunc(v) || v < 1 || v > maxDim:
		c.fail("%s is %v, expected a whole number from 1 to %d", c.named(hf, gguf), v, maxDim)
		return 1
	}
	return int(v)
}

// optionalCount is count where absent, null and 0 mean 0.
func (c *config) optionalCount(hf, gguf string) int {
	if v, ok := c.values.number(hf, gguf); !ok || v == 0 {
		return 0
	}
	return c.count(hf, gguf, 0)
}

// notNegative reads a finite number from 0 on; 0 if it is absent.
func (c *config) notNegative(v values, hf, gguf string) float64 {
	n, ok := v.number(hf, gguf)
	if ok && (!(n >= 0) || math.IsInf(n, 0)) {
		c.fail("%s is %v, expected a number from 0 on", c.named(hf, gguf), n)
	}
	return n
}

// positive reads a number above 0; a fault if it is absent and def is 0.
func (c *config) positive(hf, gguf string, def float64) float64 {
	v, ok := c.values.number(hf, gguf)
	if !ok {
		if def == 0 {
			c.fail("%s is missing or not a number", c.named(hf, gguf))
		}
		return def
	}
	if !(v > 0) || math.IsInf(v, 0) {
		c.fail("%s is %v, expected a number above 0", c.named(hf, gguf), v)
	}
	return v
}

// common reads what every family needs.
func (c *config) common() {
	c.Layers = c.count("num_hidden_layers", "block_count", 0)
	c.Hidden = c.count("hidden_size", "embedding_length", 0)
	c.Heads = c.count("num_attention_heads", "attention.head_count", 0)
	c.KVHeads = c.count("num_key_value_heads", "attention.head_count_kv", c.Heads)
	c.HeadDim = c.count("head_dim", "attention.key_length", max(c.Hidden/c.Heads, 1))
	c.FFN = c.count("intermediate_size", "feed_forward_length", 0)
	c.Vocab = c.count("vocab_size", "vocab_size", c.Vocab)
	c.Context = c.count("max_position_embeddings", "context_length", 0)
	c.Eps = float32(c.positive("rms_norm_eps", "attention.layer_norm_rms_epsilon", 0))
	if c.Layers > c.tensors { // so that a number in a file does not decide what is allocated
		c.fail("%s is %d, but there are only %d tensors", c.named("num_hidden_layers", "block_count"), c.Layers, c.tensors)
	}
	if act, ok := c.values.text("hidden_act", ""); ok && act != "silu" && act != "swish" { // two names of one
		c.fail("hidden_act %q is not supported by this family: only silu is", act)
	}
}

// window returns the sliding window of layer i: layer_types if it is given, else every layer from
// the given one on. 0 is none.
func (c *config) window(i, from int) int { return c.windowIf(i, i >= from) }

// windowIf is window of layers for which slides is true unless layer_types is given.
func (c *config) windowIf(i int, slides bool) int {
	if types, ok := c.values.list("layer_types"); ok && i < len(types) {
		slides = types[i] == "sliding_attention"
	}
	if !slides {
		return 0
	}
	return c.anyWindow()
}

// anyWindow is the sliding window of the layers that have one.
func (c *config) anyWindow() int {
	if !c.fromGGUF() && !c.values.has("sliding_window") {
		return c.Window
	}
	return c.optionalCount("sliding_window", "attention.sliding_window")
}

// maxWindowLayers is max_window_layers; transformers takes 28 where it is not given.
func (c *config) maxWindowLayers() int {
	if _, ok := c.values.number("max_window_layers", ""); !ok {
		return 28
	}
	return c.optionalCount("max_window_layers", "")
}

// jsonValues is config.json.
type jsonValues map[string]any

func parseJSON(data []byte) (jsonValues, error) {
	var v jsonValues
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	return v, nil
}

func (v jsonValues) number(hf, _ string) (float64, bool) { n, ok := v[hf].(float64); return n, ok }
func (v jsonValues) text(hf, _ string) (string, bool)    { s, ok := v[hf].(string); return s, ok }
func (v jsonValues) flag(hf, _ string) (bool, bool)      { b, ok := v[hf].(bool); return b, ok }
func (v jsonValues) list(hf string) ([]any, bool)        { l, ok := v[hf].([]any); return l, ok }
func (v jsonValues) has(hf string) bool                  { _, ok := v[hf]; return ok }
func (v jsonValues) empty() bool                         { return len(v) == 0 }
func (v jsonValues) object(hf string) (values, bool) {
	o, ok := v[hf].(map[string]any)
	return jsonValues(o), ok
}

// metadata is GGUF's key-value section; keys of a model begin with its architecture.
type metadata interface {
	String(key string) (string, bool)
	Int(key string) (int64, bool)
	Float(key string) (float64, bool)
	Bool(key string) (value, ok bool)
}

type ggufValues struct {
	meta metadata
	arch string
}

func (v ggufValues) number(_, gguf string) (float64, bool) {
	if gguf == "" {
		return 0, false
	}
	if n, ok := v.meta.Int(v.arch + "." + gguf); ok {
		return float64(n), true
	}
	return v.meta.Float(v.arch + "." + gguf)
}

func (v ggufValues) text(_, gguf string) (string, bool) {
	if gguf == "" {
		return "", false
	}
	return v.meta.String(v.arch + "." + gguf)
}

func (v ggufValues) flag(_, gguf string) (bool, bool) {
	if gguf == "" {
		return false, false
	}
	return v.meta.Bool(v.arch + "." + gguf)
}

func (v ggufValues) list(string) ([]any, bool)    { return nil, false }
func (v ggufValues) has(string) bool              { return false }
func (v ggufValues) empty() bool                  { return false }
func (v ggufValues) object(string) (values, bool) { return nil, false }
