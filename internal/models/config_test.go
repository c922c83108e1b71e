package models

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/spillway/spillway/internal/nn"
)

// The configurations that the scripts under testdata/config change.
const (
	plainHF = `{"num_hidden_layers": 6, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
		"intermediate_size": 96, "vocab_size": 100, "max_position_embeddings": 128, "rms_norm_eps": 1e-5}`
	plainGGUF = `{"block_count": 6, "embedding_length": 64, "attention.head_count": 4, "attention.head_count_kv": 2,
		"feed_forward_length": 96, "vocab_size": 100, "context_length": 128, "attention.layer_norm_rms_epsilon": 1e-5}`
)

// TestConfig reads configurations: "hf FAMILY" and "gguf FAMILY" change the plain one as the JSON
// says ("absent" takes a key out) and show what the family makes of it, or the error.
func TestConfig(t *testing.T) {
	datadriven.Walk(t, "testdata/config", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			c := &config{tensors: 1000, where: "config.json"}
			family := d.CmdArgs[0].Key
			if d.Cmd == "hf" {
				c.values = jsonValues(changed(t, plainHF, d.Input))
			} else {
				c.where = "model.gguf"
				c.values = ggufValues{metaMap{family + ".", changed(t, plainGGUF, d.Input)}, family}
			}
			c.common()
			decoder, _ := families[family](c)
			if c.err != nil {
				return "error: " + c.err.Error() + "\n"
			}
			return summary(c, decoder)
		})
	})
}

func changed(t *testing.T, base, change string) map[string]any {
	t.Helper()
	var out, add map[string]any
	if err := json.Unmarshal([]byte(base), &out); err != nil {
		t.Fatal(err)
	}
	if change == "" {
		return out
	}
	if err := json.Unmarshal([]byte(change), &add); err != nil {
		t.Fatal(err)
	}
	maps.Copy(out, add)
	maps.DeleteFunc(out, func(_ string, v any) bool { return v == "absent" })
	return out
}

// metaMap is GGUF metadata whose keys begin with a prefix. Whole numbers are integers.
type metaMap struct {
	prefix string
	values map[string]any
}

func (m metaMap) at(key string) any { return m.values[strings.TrimPrefix(key, m.prefix)] }

func (m metaMap) String(key string) (string, bool)    { s, ok := m.at(key).(string); return s, ok }
func (m metaMap) Float(key string) (float64, bool)    { f, ok := m.at(key).(float64); return f, ok }
func (m metaMap) Bool(key string) (value, found bool) { b, ok := m.at(key).(bool); return b, ok }
func (m metaMap) Int(key string) (int64, bool) {
	f, ok := m.at(key).(float64)
	return int64(f), ok && f == float64(int64(f))
}

// summary is what a family made of its configuration.
func summary(c *config, d nn.Decoder) string {
	var out strings.Builder
	first := d.Blocks[0].Mixer
	fmt.Fprintf(&out, "%d layers of %d and %d, heads %d/%d of %d, vocabulary %d, context %d, eps %g\n", len(d.Blocks), d.Hidden,
		c.FFN, first.Heads, first.KVHeads, first.HeadDim, d.Vocab, d.Context, d.Norm.Eps)
	var windows []int
	var still []int
	rope := first.Rope
	for i, b := range d.Blocks {
		windows = append(windows, b.Mixer.Window)
		if b.Mixer.Rope == nil {
			still = append(still, i)
		} else {
			rope = b.Mixer.Rope
		}
	}
	fmt.Fprintf(&out, "windows %v, no rotation in %v, norm of heads: %v\n", windows, still, first.QKNorm != nil)
	var sparse []int
	for i, b := range d.Blocks {
		if _, ok := b.FFN.(nn.MoE); ok {
			sparse = append(sparse, i)
		} else if width := b.FFN.(nn.GatedMLP).Width; width != c.FFN {
			fmt.Fprintf(&out, "layer %d has a width of %d\n", i, width)
		}
	}
	if len(sparse) > 0 {
		m := d.Blocks[sparse[0]].FFN.(nn.MoE)
		fmt.Fprintf(&out, "%d of %d experts of %d in %v, weighting %d, shared %+v, clamp %+v\n", m.Used, m.Experts, m.Width, sparse, m.Weights, m.Shared, m.Clamp)
	}
	fmt.Fprintf(&out, "rotates %d of base %g, interleaved: %v, %T%+v\n", rope.Dim, rope.Base, rope.Interleaved, rope.Scaling, rope.Scaling)
	return out.String()
}
