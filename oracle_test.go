package spillway

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/checkpoint/safetensors"
	"github.com/spillway/spillway/internal/testutil"
	"github.com/spillway/spillway/internal/vfs"
)

// oracleCases are the cases of the families that there are.
var oracleCases = []string{
	"llama", "llama-tied", "llama-bf16", "llama-v5", "internlm3", "mistral",
	"qwen2", "qwen2-window", "qwen3", "qwen3-bf16", "smollm3", "qwen3-embedding",
	"olmoe", "qwen2_moe", "qwen3_moe", "mixtral", "gpt_oss",
}

// TestOracle compares the families with an independent implementation in f32 (transformers), and names
// the first intermediate value that differs.
func TestOracle(t *testing.T) {
	for _, name := range oracleCases {
		t.Run(name, func(t *testing.T) { checkOracle(t, oracleCase(t, name)) })
	}
}

// oracleCase is the folder of a case: some lie in the repository, all in the shared material.
func oracleCase(t *testing.T, name string) string {
	t.Helper()
	own := filepath.Join("testdata", "oracle", name)
	if _, err := os.Stat(own); err == nil {
		return own
	}
	return testutil.Shared(t, "oracle/"+name)
}

func checkOracle(t *testing.T, dir string) {
	want := readArrays(t, filepath.Join(dir, "expected.safetensors"))
	var info struct {
		Tolerance float64
		TapOrder  []string `json:"tap_order"`
	}
	data, err := os.ReadFile(filepath.Join(dir, "case.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &info); err != nil {
		t.Fatal(err)
	}
	m := openTest(t, dir, ModelOptions{Context: 64, HeadRows: 64, Exact: true})
	got := oracleValues(t, m, want)
	keys := slices.Concat(info.TapOrder, slices.Sorted(func(yield func(string) bool) {
		for k := range want {
			if !strings.HasPrefix(k, "tap.") && !strings.HasSuffix(k, ".ids") && !yield(k) {
				return
			}
		}
	}))
	for _, key := range keys {
		// Where only the base model was saved its modules have no prefix.
		g, ok := got[strings.Replace(key, "tap.", "tap.model.", 1)]
		if strings.HasPrefix(key, "tap.model.") || !strings.HasPrefix(key, "tap.") {
			g, ok = got[key]
		}
		if !ok {
			t.Fatalf("%s is missing", key)
		}
		if strings.HasSuffix(key, ".experts.experts") {
			checkChosen(t, key, g, ints(t, want[key]))
			continue
		}
		w := floats(t, want[key])
		if rel := relative(g, w); !(rel <= info.Tolerance) {
			t.Fatalf("the first value that differs is %s: relative error %.3g, allowed %.3g", key, rel, info.Tolerance)
		}
	}
}

// checkChosen compares the experts that rows chose, which come as numbers.
func checkChosen(t *testing.T, key string, got []float32, want []int32) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(g float32, w int32) bool { return g == float32(w) }) {
		t.Fatalf("the first value that differs is %s: experts %v, expected %v", key, got, want)
	}
}

// oracleValues computes what a case's expected.safetensors holds.
func oracleValues(t *testing.T, m *Model, want map[string]safetensors.Array) map[string][]float32 {
	got := map[string][]float32{}
	for i := range 3 {
		prompt := fmt.Sprintf("prompt.%d", i)
		ids := ints(t, want[prompt+".ids"])
		p := Probe{IDs: ids}
		key := prompt + ".logits"
		if m.Embedding() {
			key = prompt + ".hidden"
			v, _, err := m.Embed(context.Background(), EmbedRequest{IDs: ids})
			if err != nil {
				t.Fatal(err)
			}
			got[prompt+".embedding"] = v
		}
		p.Rows = func(_ int, values []float32) error {
			got[key] = append(got[key], values...)
			return nil
		}
		if i == 1 {
			p.Tap = func(name string, _, _ int, values []float32) {
				if path, ok := oracleTap(name); ok {
					got[path] = append(got[path], values...)
				}
			}
		}
		if i == 2 && !m.Embedding() {
			p.Greedy = 24
			p.Logits = func(_ int, logits []float32) { got["greedy.logits"] = append(got["greedy.logits"], logits...) }
		}
		added, err := m.Probe(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		if p.Greedy > 0 && !slices.Equal(added, ints(t, want["greedy.ids"])) {
			t.Errorf("greedy ids %v, expected %v", added, ints(t, want["greedy.ids"]))
		}
	}
	return got
}

// oracleTap gives the name of a tap in transformers.
func oracleTap(name string) (string, bool) {
	switch name {
	case "embed":
		return "tap.model.embed_tokens", true
	case "final_norm":
		return "tap.model.norm", true
	}
	parts := strings.SplitN(name, ".", 3)
	module, ok := map[string]string{
		"attn_norm": ".input_layernorm", "attn_out": ".self_attn", "ffn_norm": ".post_attention_layernorm", "ffn_out": ".mlp", "out": "",
	}[parts[len(parts)-1]]
	if what, ok := strings.CutPrefix(parts[len(parts)-1], "router."); ok {
		return "router.model.layers." + parts[1] + ".mlp.experts." + what, true
	}
	return "tap.model.layers." + parts[1] + module, ok
}

func openTest(t *testing.T, path string, o ModelOptions) *Model {
	t.Helper()
	return openIn(t, path, Options{Memory: 512 << 20, Threads: 2}, o)
}

// openIn opens a model in a runtime of its own and checks at the end that every lease came back.
func openIn(t *testing.T, path string, ro Options, o ModelOptions) *Model {
	t.Helper()
	rt, err := New(ro)
	if err != nil {
		t.Fatal(err)
	}
	m, err := openAt(rt, path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
		if used := rt.Ledger().Used; used != 0 {
			t.Errorf("%d bytes are still leased", used)
		}
	})
	return m
}

func readArrays(t *testing.T, path string) map[string]safetensors.Array {
	t.Helper()
	f, err := vfs.OS().Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	arrays, err := safetensors.ReadAll(f, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	return arrays
}

func floats(t *testing.T, a safetensors.Array) []float32 {
	t.Helper()
	v, err := a.Float32s()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func ints(t *testing.T, a safetensors.Array) []int32 {
	t.Helper()
	v, err := a.Ints()
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]int32, len(v))
	for i, x := range v {
		ids[i] = int32(x)
	}
	return ids
}

// relative is the largest absolute difference over the largest magnitude in want.
func relative(got, want []float32) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	var diff, top float64
	for i, w := range want {
		d := math.Abs(float64(got[i]) - float64(w))
		if math.IsNaN(d) {
			return math.Inf(1)
		}
		diff, top = max(diff, d), max(top, math.Abs(float64(w)))
	}
	if top == 0 {
		return diff
	}
	return diff / top
}
