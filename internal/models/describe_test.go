package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/safetensors"
	"github.com/spillway/spillway/internal/vfs"
)

// memFS is a file system in memory.
type memFS struct{ fstest.MapFS }

func (m memFS) Open(path string) (vfs.File, error) {
	f, ok := m.MapFS[filepath.ToSlash(path)]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return vfs.Bytes(path, f.Data), nil
}

// folder is a checkpoint in Hugging Face layout, of the plain configuration's shapes, without some tensors.
func folder(t testing.TB, config string, without ...string) memFS {
	t.Helper()
	shapes := map[string][]int{"model.embed_tokens.weight": {100, 64}, "model.norm.weight": {64}, "lm_head.weight": {100, 64}}
	for i := range 6 {
		for name, shape := range map[string][]int{
			"input_layernorm": {64}, "post_attention_layernorm": {64}, "self_attn.q_norm": {16}, "self_attn.k_norm": {16},
			"self_attn.q_proj": {64, 64}, "self_attn.k_proj": {32, 64}, "self_attn.v_proj": {32, 64}, "self_attn.o_proj": {64, 64},
			"mlp.gate_proj": {96, 64}, "mlp.up_proj": {96, 64}, "mlp.down_proj": {64, 96},
		} {
			shapes[fmt.Sprintf("model.layers.%d.%s.weight", i, name)] = shape
		}
	}
	for _, name := range without {
		delete(shapes, name)
	}
	return memFS{fstest.MapFS{"m/config.json": {Data: []byte(config)}, "m/model.safetensors": {Data: zeros(t, shapes)}}}
}

// zeros is a safetensors file of BF16 zeros.
func zeros(t testing.TB, shapes map[string][]int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := safetensors.NewWriter(&b)
	size := 0
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		if err := w.Add(name, "BF16", shapes[name]...); err != nil {
			t.Fatal(err)
		}
		n := 2
		for _, d := range shapes[name] {
			n *= d
		}
		size += n
	}
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// with is the plain configuration of a family, changed as JSON says.
func with(t *testing.T, family, change string) string {
	t.Helper()
	v := changed(t, plainHF, change)
	v["model_type"] = family
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// describe opens a folder in memory and describes it.
func describe(t testing.TB, m memFS) (err error) {
	t.Helper()
	cat, err := checkpoint.Open(m, "m")
	if err != nil {
		return err
	}
	defer cat.Close()
	_, err = Describe(cat)
	return err
}

// What is wrong with a checkpoint is said in a line that names the weight or the key, and costs no more
// than the files justify.
func TestDescribe(t *testing.T) {
	for _, c := range []struct{ config, says string }{
		{with(t, "qwen3", ""), ""},
		{with(t, "llama", ""), ""},
		{with(t, "llama", `{"tie_word_embeddings": true}`), ""},
		{with(t, "llama", `{"num_hidden_layers": 5}`), ""},
		{with(t, "llama", `{"num_hidden_layers": 7}`), "no weight for layer 6: attn_norm.weight"},
		{with(t, "llama", `{"num_hidden_layers": 65536}`), "num_hidden_layers is 65536, but there are only 69 tensors"},
		{with(t, "llama", `{"intermediate_size": 97}`), "tensor model.layers.0.mlp.gate_proj.weight has shape [96 64], the configuration asks for [97 64]"},
		{with(t, "llama", `{"num_key_value_heads": 3}`), "layer 0: 4 heads cannot share 3 key-value heads of 16 values"},
		{with(t, "llama", `{"rope_parameters": {"partial_rotary_factor": 0.3}}`), ""},
		{with(t, "llama", `{"rope_parameters": {"partial_rotary_factor": 0.2}}`), "rotary dimension 3 does not fit a head of 16"},
		{with(t, "gpt9", ""), `model type "gpt9" is not supported; supported are `},
		{`{"model_type": 7}`, "model_type is missing"},
		{`{`, "config.json of m: not a JSON object"},
		{`[]`, "config.json of m: not a JSON object"},
	} {
		m := folder(t, c.config)
		var err error
		if n := heapUse(func() { err = describe(t, m) }); n > mostHeap {
			t.Errorf("%s: %d bytes were allocated", c.config, n)
		}
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the error %v does not say %q", c.config, err, c.says)
		}
	}
}

// TestMissingHead: an output projection that is missing is the embedding, unless the configuration says
// that it is not; embedding models need none.
func TestMissingHead(t *testing.T) {
	for change, says := range map[string]string{
		`{}`:                             "",
		`{"tie_word_embeddings": true}`:  "",
		`{"tie_word_embeddings": false}`: "tie_word_embeddings is false, but the checkpoint has no lm_head.weight",
	} {
		m := folder(t, with(t, "llama", change), "lm_head.weight")
		err := describe(t, m)
		var config *ConfigError
		if (err == nil) != (says == "") || err != nil && (!errors.As(err, &config) || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: the error %v does not say %q", change, err, says)
		}
		m.MapFS["m/1_Pooling/config.json"] = &fstest.MapFile{Data: []byte(`{"pooling_mode_mean_tokens": true}`)}
		if err := describe(t, m); err != nil {
			t.Errorf("%s, for embeddings: %v", change, err)
		}
	}
}

const mostHeap = 1 << 20

func heapUse(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// FuzzConfig reads any config.json beside sound weights.
func FuzzConfig(f *testing.F) {
	for _, family := range Families() {
		f.Add([]byte(strings.Replace(plainHF, "{", fmt.Sprintf("{%q: %q,", "model_type", family), 1)))
	}
	f.Add([]byte(`{"model_type": "smollm3", "num_hidden_layers": 65536, "rope_parameters": {"rope_type": "yarn", "factor": 1e308}, "no_rope_layers": [1e99, null]}`))
	m := folder(f, "")
	f.Fuzz(func(t *testing.T, data []byte) {
		m.MapFS["m/config.json"].Data = data
		describe(t, m) // an error is as good as a model
	})
}
