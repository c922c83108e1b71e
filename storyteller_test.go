package spillway

import (
	"context"
	"slices"
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
