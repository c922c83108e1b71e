package spillway

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/testutil"
)

// storyCase is a prompt with what transformers computes in f32.
type storyCase struct {
	Kind, Prompt string
	IDs          []int32   `json:"prompt_ids"`
	Greedy       []int32   `json:"greedy_ids"`
	Logits       []float32 `json:"last_prompt_logits"`
}

// TestStoryteller compares the embedded model with transformers on the same weights, dequantized.
func TestStoryteller(t *testing.T) {
	var ref struct {
		Cases []storyCase `json:"q8_0_dequantized"`
	}
	readJSON(t, "testdata/storyteller.json", &ref)
	checkStories(t, "", true, ref.Cases)
	checkStories(t, "", false, ref.Cases)
}

// TestStorytellerSafetensors is the same for the bf16 weights that were released.
func TestStorytellerSafetensors(t *testing.T) {
	var ref struct {
		Cases []storyCase `json:"safetensors"`
	}
	readJSON(t, testutil.Shared(t, "models/storyteller/reference.json"), &ref)
	checkStories(t, testutil.Shared(t, "models/storyteller/hf"), true, ref.Cases)
}

// TestStorytellerMoE is the same for its sibling with experts, in memory for all of them and for a few; the chosen
// experts are those that transformers chose.
func TestStorytellerMoE(t *testing.T) {
	var ref struct {
		Cases []storyCase `json:"q8_0_dequantized"`
	}
	readJSON(t, testutil.Shared(t, "models/storyteller-moe/reference.json"), &ref)
	path := testutil.Shared(t, "models/storyteller-moe/storyteller-moe-Q8_0.gguf")
	checkStories(t, path, true, ref.Cases)
	checkStories(t, path, false, ref.Cases)
	identity(t, path, false, 4, 8<<20)
}

// TestStorytellerMoERouting compares choices with those of its trace, which was made before the weights were
// rounded to Q8_0: near ties fall differently.
func TestStorytellerMoERouting(t *testing.T) {
	ids, want := firstRouting(t)
	m := openTest(t, testutil.Shared(t, "models/storyteller-moe/storyteller-moe-Q8_0.gguf"), ModelOptions{Context: 256, HeadRows: 8, Exact: true})
	got := map[string][]float32{}
	_, err := m.Probe(context.Background(), Probe{IDs: ids, Tap: func(name string, _, _ int, values []float32) {
		if strings.HasSuffix(name, ".router.experts") {
			got[name] = append(got[name], values...)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for layer, chosen := range want {
		choices, others := got[fmt.Sprintf("layer.%d.router.experts", layer)], 0
		if len(choices) != len(chosen) {
			t.Fatalf("layer %d: %d choices, expected %d", layer, len(choices), len(chosen))
		}
		for i, e := range choices {
			if row := i / 4 * 4; !slices.Contains(chosen[row:row+4], int32(e)) {
				others++
			}
		}
		if t.Logf("layer %d: %d of %d choices are others", layer, others, len(chosen)); others*50 > len(chosen) {
			t.Errorf("layer %d: experts %v, expected %v", layer, choices, chosen)
		}
	}
}

// firstRouting reads the first conversation's first prompt, and the experts that it chose in each layer.
func firstRouting(t *testing.T) (ids []int32, layers [][]int32) {
	t.Helper()
	f, err := os.Open(testutil.Shared(t, "models/storyteller-moe/routing.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for lines := json.NewDecoder(z); ; {
		var line struct {
			Conversation int
			Token        int32
			Phase        string
			Experts      [][]int32
		}
		if err := lines.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if line.Conversation > 0 || line.Phase != "prefill" {
			return ids, layers
		}
		ids = append(ids, line.Token)
		for len(layers) < len(line.Experts) {
			layers = append(layers, nil)
		}
		for i, e := range line.Experts {
			layers[i] = append(layers[i], e...)
		}
	}
}

func checkStories(t *testing.T, path string, exact bool, cases []storyCase) {
	t.Helper()
	rt, err := New(Options{Memory: 512 << 20, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	m, err := openAt(rt, path, ModelOptions{Context: 128, HeadRows: 32, Exact: exact})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	defer m.Close()
	if len(cases) != 6 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		ids, err := m.Tokens(Request{Prompt: c.Prompt, Raw: c.Kind == "plain"})
		if err != nil || !slices.Equal(ids, c.IDs) {
			t.Errorf("%q becomes %v (%v), expected %v", c.Prompt, ids, err, c.IDs)
		}
		greedy := 0
		if exact {
			greedy = len(c.Greedy)
		}
		logits, added := logitsOf(t, m, c.IDs, greedy)
		rel := relative(logits[len(logits)-len(c.Logits):], c.Logits)
		if limit := map[bool]float64{true: 1e-5, false: 2e-3}[exact]; !(rel <= limit) {
			t.Errorf("%q, exact %v: relative error %.3g, allowed %.3g", c.Prompt, exact, rel, limit)
		}
		if exact && !slices.Equal(added, c.Greedy) {
			t.Errorf("%q: greedy ids %v, expected %v", c.Prompt, added, c.Greedy)
		}
		t.Logf("%q, exact %v: relative error %.2g", c.Prompt, exact, rel)
	}
	a, err := m.Generate(context.Background(), Request{IDs: cases[0].IDs, Sampling: &Sampling{}, MaxTokens: 8}, nil)
	if err != nil || exact && !slices.Equal(a.IDs, cases[0].Greedy[:8]) {
		t.Errorf("an answer of %+v (%v)", a, err)
	}
}
