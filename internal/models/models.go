// Package models describes model families, one file each, named after its Hugging Face model_type.
// A family says what its layers are; it computes nothing. It registers itself, and no other file
// asks which family a model is of.
package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/nn"
)

// family describes a model from its configuration, and names its weights.
type family func(c *config) (nn.Decoder, names)

var families = map[string]family{}

// register makes a family known by its model_type, which is also its GGUF architecture.
func register(modelType string, f family) { families[modelType] = f }

// Families lists the known model types.
func Families() []string { return slices.Sorted(maps.Keys(families)) }

// names maps roles to the names of tensors, without ".weight" or ".bias": in Hugging Face and in GGUF
// files. %d is the layer.
type names map[string][2]string

// standard is the names that most families use.
var standard = names{
	"embed":       {"model.embed_tokens", "token_embd"},
	"final_norm":  {"model.norm", "output_norm"},
	"head":        {"lm_head", "output"},
	"attn_norm":   {"model.layers.%d.input_layernorm", "blk.%d.attn_norm"},
	"attn.q":      {"model.layers.%d.self_attn.q_proj", "blk.%d.attn_q"},
	"attn.k":      {"model.layers.%d.self_attn.k_proj", "blk.%d.attn_k"},
	"attn.v":      {"model.layers.%d.self_attn.v_proj", "blk.%d.attn_v"},
	"attn.o":      {"model.layers.%d.self_attn.o_proj", "blk.%d.attn_output"},
	"attn.q_norm": {"model.layers.%d.self_attn.q_norm", "blk.%d.attn_q_norm"},
	"attn.k_norm": {"model.layers.%d.self_attn.k_norm", "blk.%d.attn_k_norm"},
	"ffn_norm":    {"model.layers.%d.post_attention_layernorm", "blk.%d.ffn_norm"},
	"ffn.gate":    {"model.layers.%d.mlp.gate_proj", "blk.%d.ffn_gate"},
	"ffn.up":      {"model.layers.%d.mlp.up_proj", "blk.%d.ffn_up"},
	"ffn.down":    {"model.layers.%d.mlp.down_proj", "blk.%d.ffn_down"},
	"rope_freqs":  {"", "rope_freqs"},
}

// maxConfig bounds the configuration files that are read.
const maxConfig = 1 << 20

// Describe finds the family of a checkpoint and binds its weights.
func Describe(cat *checkpoint.Catalog) (*nn.Model, error) {
	c, modelType, err := readConfig(cat)
	if err != nil {
		return nil, err
	}
	build, ok := families[modelType]
	if !ok {
		return nil, &ConfigError{c.where, fmt.Sprintf("model type %q is not supported; supported are %s", modelType, strings.Join(Families(), ", "))}
	}
	src := &source{cat: cat}
	if src.scheme, err = c.scheme(); err != nil {
		return nil, err
	}
	c.Vocab, c.tensors = src.embeddingRows(), len(cat.Tensors)
	c.common()
	if c.Tied, err = c.tied(src); err != nil {
		return nil, err
	}
	d, names := build(c)
	if c.err != nil {
		return nil, c.err
	}
	src.names, src.turned = names, c.Turned && !c.fromGGUF()
	d.Family = modelType
	if err := pooling(cat, c, &d); err != nil {
		return nil, err
	}
	if err := c.checkHead(src, d.Head); err != nil {
		return nil, err
	}
	m, err := nn.Bind(d, src)
	if err != nil {
		return nil, &ConfigError{c.where, err.Error()}
	}
	src.finish(m.Layout)
	return m, nil
}

// readConfig finds the configuration and the model type.
func readConfig(cat *checkpoint.Catalog) (*config, string, error) {
	if cat.Format == checkpoint.GGUF {
		meta := cat.Meta
		arch, ok := meta.String("general.architecture")
		c := &config{where: cat.Path, values: ggufValues{meta, arch}}
		if !ok || arch == "" {
			return nil, "", &ConfigError{c.where, "general.architecture is missing: the file does not say what model it is"}
		}
		return c, arch, nil
	}
	where := "config.json of " + cat.Path
	data, err := cat.ReadFile("config.json", maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", &ConfigError{cat.Path, "there is no config.json beside the weights"}
	}
	if err != nil {
		return nil, "", err
	}
	v, err := parseJSON(data)
	if err != nil {
		return nil, "", &ConfigError{where, err.Error()}
	}
	modelType, ok := v.text("model_type", "")
	if !ok {
		return nil, "", &ConfigError{where, "model_type is missing"}
	}
	return &config{where: where, values: v}, modelType, nil
}

func (c *config) fromGGUF() bool { _, ok := c.values.(ggufValues); return ok }

// tied reports whether the output projection is the embedding. Where the configuration says so but the checkpoint has
// both, they count as they are, as in transformers: files that were made from trained heads have such configurations.
func (c *config) tied(src *source) (bool, error) {
	if !src.has(standard["head"]) {
		return true, nil
	}
	if t, _ := c.values.flag("tie_word_embeddings", ""); !t {
		return false, nil
	}
	head, plain := src.find(standard["head"], -1, ".weight")
	embed, also := src.find(standard["embed"], -1, ".weight")
	if !plain || !also {
		return true, nil
	}
	return src.alike(head, embed)
}

// checkHead refuses to tie what the configuration says is not tied.
func (c *config) checkHead(src *source, head nn.Head) error {
	tied, said := c.values.flag("tie_word_embeddings", "")
	if head.None || !said || tied || src.has(src.names["head"]) {
		return nil
	}
	return &ConfigError{c.where, fmt.Sprintf("tie_word_embeddings is false, but the checkpoint has no %s.weight", src.names["head"][0])}
}

// decoder is the frame that Llama-like families share.
func (c *config) decoder(attention func(i int) nn.Attention) nn.Decoder {
	if c.err != nil {
		return nn.Decoder{} // sizes are not to be trusted
	}
	norm := nn.RMS{Eps: c.Eps}
	return nn.Decoder{
		Hidden: c.Hidden, Vocab: c.Vocab, Context: c.Context,
		Blocks: nn.Repeat(c.Layers, func(i int) nn.Block {
			return nn.Block{Norm: norm, Mixer: attention(i), FFNNorm: norm, FFN: nn.GatedMLP{Width: c.FFN}}
		}),
		Norm: norm, Head: nn.Head{Tied: c.Tied},
	}
}

func (c *config) attention(rope *nn.Rope) nn.Attention {
	return nn.Attention{Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.HeadDim, Rope: rope}
}

// optionalWindow is window for families whose window is off unless use_sliding_window is true.
func (c *config) optionalWindow(i, from int) int {
	if !c.slides() {
		return 0
	}
	return c.window(i, from)
}

func (c *config) slides() bool { use, _ := c.values.flag("use_sliding_window", ""); return use }

// pooling makes d an embedding model if the checkpoint says that it is one: by the files of
// sentence-transformers, or by GGUF's pooling_type.
func pooling(cat *checkpoint.Catalog, c *config, d *nn.Decoder) error {
	if kind, ok := c.values.number("", "pooling_type"); ok && kind != 0 {
		switch kind {
		case 1:
			d.Pooling = nn.PoolMean
		case 3:
			d.Pooling = nn.PoolLast
		default:
			return &ConfigError{c.where, fmt.Sprintf("pooling_type %v is not supported: 1 (mean) and 3 (last) are", kind)}
		}
		d.Head = nn.Head{None: true}
		return nil
	}
	if cat.Format == checkpoint.GGUF {
		return nil
	}
	data, err := cat.ReadFile("1_Pooling/config.json", maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var modes struct {
		Last bool `json:"pooling_mode_lasttoken"`
		Mean bool `json:"pooling_mode_mean_tokens"`
	}
	if err := json.Unmarshal(data, &modes); err != nil {
		return &ConfigError{"1_Pooling/config.json of " + cat.Path, err.Error()}
	}
	switch {
	case modes.Last:
		d.Pooling = nn.PoolLast
	case modes.Mean:
		d.Pooling = nn.PoolMean
	default:
		return &ConfigError{"1_Pooling/config.json of " + cat.Path, "the way of pooling is not supported: pooling_mode_lasttoken and pooling_mode_mean_tokens are"}
	}
	d.Head = nn.Head{None: true}
	return nil
}
