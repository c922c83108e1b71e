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

	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/testutil"
)

// ggufModels are the tiny whole models of the families that there are.
var ggufModels = []string{"small", "llama", "llama-lowbit", "qwen2", "qwen3", "mixtral", "olmoe", "qwen3moe", "gpt-oss"}

// TestTinyGGUF compares tiny GGUF models with transformers on the same weights, dequantized.
func TestTinyGGUF(t *testing.T) {
	for _, name := range ggufModels {
		t.Run(name, func(t *testing.T) {
			checkTiny(t, strings.TrimSuffix(tinyModel(t, name), ".gguf"))
		})
	}
}

// tinyModel is the file of a model: some lie in the repository, all in the shared material.
func tinyModel(t *testing.T, name string) string {
	t.Helper()
	own := filepath.Join("testdata", "gguf", name+".gguf")
	if _, err := os.Stat(own); err == nil {
		return own
	}
	return testutil.Shared(t, "oracle-gguf/models/"+name+".gguf")
}

type ggufPrompt struct {
	IDs    []int32 `json:"ids"`
	Greedy []int32 `json:"greedy"`
}

func checkTiny(t *testing.T, base string) {
	var info struct{ Prompts map[string]ggufPrompt }
	readJSON(t, base+".json", &info)
	want := readArrays(t, base+".safetensors")
	for _, exact := range []bool{true, false} {
		m := openTest(t, base+".gguf", ModelOptions{Context: 128, HeadRows: 128, Exact: exact})
		for name, p := range info.Prompts {
			got, added := logitsOf(t, m, p.IDs, len(p.Greedy))
			ref := floats(t, want[name+".logits"])
			rel := relative(got[len(got)-len(ref):], ref)
			t.Logf("%s, exact %v: relative error %.3g", name, exact, rel)
			// f32 arithmetic differs by rounding only; 16-bit activations and an f16 cache stay below 0.2 %.
			if limit := map[bool]float64{true: 1e-5, false: 2e-3}[exact]; !(rel <= limit) {
				t.Errorf("%s, exact %v: relative error %.3g, allowed %.3g", name, exact, rel, limit)
			}
			if !slices.Equal(added, p.Greedy) {
				t.Errorf("%s, exact %v: greedy ids %v, expected %v", name, exact, added, p.Greedy)
			}
		}
	}
}

// logitsOf returns the logits of all positions of a prompt, and greedy tokens after it.
func logitsOf(t *testing.T, m *Model, ids []int32, greedy int) (logits []float32, added []int32) {
	t.Helper()
	added, err := m.Probe(context.Background(), Probe{IDs: ids, Greedy: greedy, Rows: func(_ int, row []float32) error {
		logits = append(logits, row...)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return logits, added
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
}

// TestSmolLM2 compares a released model with transformers in f32 on the same weights, dequantized.
func TestSmolLM2(t *testing.T) {
	path := testutil.SmolLM2(t)
	want := readArrays(t, testutil.Shared(t, "oracle-gguf/smollm2.safetensors"))
	for _, exact := range []bool{true, false} {
		t.Run(fmt.Sprintf("exact=%v", exact), func(t *testing.T) {
			m := openTest(t, path, ModelOptions{Context: 400, HeadRows: 64, Exact: exact})
			for _, prompt := range []string{"plain", "chat", "code", "long"} {
				ids, margins := ints(t, want[prompt+".ids"]), floats(t, want[prompt+".argmax_margin"])
				best := ints(t, want[prompt+".argmax"])
				greedy := 0
				if exact {
					greedy = 48
				}
				got, added := logitsOf(t, m, ids, greedy)
				ref := floats(t, want[prompt+".logits_last4"])
				rel := relative(got[len(got)-len(ref):], ref)
				t.Logf("%s: relative error %.3g", prompt, rel)
				if limit := map[bool]float64{true: 1e-4, false: 2e-3}[exact]; !(rel <= limit) {
					t.Errorf("%s: relative error %.3g, allowed %.3g", prompt, rel, limit)
				}
				if g := ints(t, want[prompt+".greedy"]); exact && !slices.Equal(added, g) {
					t.Errorf("%s: greedy ids %v, expected %v", prompt, added, g)
				}
				vocab := m.Layout().Vocab
				for i, margin := range margins {
					if top := kernel.ArgMax(got[i*vocab:][:vocab]); margin > 0.05 && int32(top) != best[i] {
						t.Errorf("%s, position %d: the likeliest token is %d, expected %d (margin %.3g)", prompt, i, top, best[i], margin)
					}
				}
				if prompt == "long" {
					checkPerplexity(t, got, ids, vocab)
				}
			}
		})
	}
}

// checkPerplexity compares the perplexity of the long text with the reference's, 34.637.
func checkPerplexity(t *testing.T, logits []float32, ids []int32, vocab int) {
	ppl := perplexity(logits, ids, vocab)
	t.Logf("perplexity %.4f", ppl)
	if rel := ppl/34.637 - 1; rel > 2e-4 || rel < -2e-4 {
		t.Errorf("perplexity %.4f, expected 34.637 within 0.02 %%", ppl)
	}
}

// perplexity is exp of the mean negative log-likelihood of each id after the first.
func perplexity(logits []float32, ids []int32, vocab int) float64 {
	sum := 0.0
	for i := range len(ids) - 1 {
		row := logits[i*vocab:][:vocab]
		sum += kernel.LogSumExp(row) - float64(row[ids[i+1]])
	}
	return math.Exp(sum / float64(len(ids)-1))
}
