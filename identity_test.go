package spillway

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/synth"
	"github.com/spillway/spillway/internal/testutil"
)

// metamorphic is one way to run a request; none may change a bit of its logits.
type metamorphic struct {
	budget    int64 // above the least
	threads   int
	chunk     int
	isa       string
	sequences int // that run at once
	kv        string
	policy    string // of experts
	predict   string // likewise
	log       bool   // likewise
}

// digestOf runs a prompt and eight greedy tokens, and digests all logits on the way.
func digestOf(m *Model, ids []int32) (string, error) {
	h := sha256.New()
	add := func(values []float32) {
		var b [4]byte
		for _, v := range values {
			binary.LittleEndian.PutUint32(b[:], math.Float32bits(v))
			h.Write(b[:])
		}
	}
	_, err := m.Probe(context.Background(), Probe{IDs: ids, Greedy: 8,
		Rows:   func(_ int, values []float32) error { add(values); return nil },
		Logits: func(_ int, values []float32) { add(values) },
	})
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), err
}

// promptFor is the i-th prompt: some shorter than a chunk, some longer than an attention tile.
func promptFor(i, vocab int) []int32 {
	random := rand.New(rand.NewPCG(uint64(i), 7))
	ids := make([]int32, []int{5, 70, 33, 1}[i])
	for j := range ids {
		ids[j] = int32(random.IntN(vocab))
	}
	return ids
}

// outcome is what a run did.
type outcome struct {
	digests                []string
	streamed, tiled, mixed bool
}

func (w metamorphic) run(t *testing.T, path string, exact bool) outcome {
	t.Helper()
	defer kernel.Force(w.isa)()
	o := ModelOptions{Context: 128, Sequences: w.sequences, HeadRows: 64, Chunk: w.chunk, Exact: exact, KV: w.kv, Policy: w.policy, Prediction: w.predict}
	if w.log {
		o.ExpertLog = new(ExpertLog)
	}
	rt, m := openNear(t, path, leastFor(t, path, w.threads, o)-heapMoves+w.budget, w.threads, o)
	out := outcome{digests: make([]string, w.sequences)}
	errs := make([]error, w.sequences)
	var wg sync.WaitGroup
	for i := range w.sequences {
		wg.Go(func() { out.digests[i], errs[i] = digestOf(m, promptFor(i, m.Layout().Vocab)) })
	}
	wg.Wait()
	c, p := m.Counters(), m.CurrentPlan()
	out.streamed = m.IO().Streamed() > 0
	out.mixed = c.PromptRows+c.AnswerRows > c.Steps && w.sequences > 1
	out.tiled = p.Experts != nil && !p.Experts.Resident()
	if p.Experts != nil {
		t.Logf("%d slots for %d experts, %d MiB", p.Experts.Slots, p.Experts.Layers*p.Experts.Count, p.Budget>>20)
	}
	for _, u := range p.Placement.Units {
		out.tiled = out.tiled || u.Tiles() > 1 || u.Parts[0].Rows < u.Parts[0].Matrix.Rows
	}
	errs = append(errs, m.Close())
	if w.log {
		errs = append(errs, o.ExpertLog.Close())
	}
	if err := errors.Join(append(errs, rt.Close())...); err != nil {
		t.Fatalf("%+v: %v", w, err)
	}
	if used := rt.Ledger().Used; used != 0 {
		t.Errorf("%+v: %d bytes are still leased", w, used)
	}
	return out
}

// leastFor is the least memory that the model needs now; the tests' own heap is part of it.
func leastFor(t *testing.T, path string, threads int, o ModelOptions) int64 {
	t.Helper()
	rt, err := New(Options{Memory: 1, Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	var small *TooSmallError
	if _, err := openAt(rt, path, o); !errors.As(err, &small) {
		t.Fatalf("a budget of one byte: %v", err)
	}
	return small.Least + heapMoves
}

// startTakes lets plans count so many bytes for the program's start during a test.
func startTakes(t *testing.T, bytes int64) {
	before := coldStart
	coldStart = func() int64 { return bytes }
	t.Cleanup(func() { coldStart = before })
}

// heapMoves bounds what the tests' own heap changes between two looks at it.
const heapMoves = 2 << 20

// openNear opens a model in a runtime of its own with the memory given, or a little more if the heap
// has grown meanwhile.
func openNear(t *testing.T, path string, memory int64, threads int, o ModelOptions) (*Runtime, *Model) {
	t.Helper()
	for most := memory + heapMoves; ; memory += heapMoves / 8 {
		rt, err := New(Options{Memory: memory, Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		m, err := openAt(rt, path, o)
		if err == nil {
			return rt, m
		}
		var small *TooSmallError
		if err = errors.Join(err, rt.Close()); !errors.As(err, &small) || memory >= most {
			t.Fatal(err)
		}
	}
}

func openAt(rt *Runtime, path string, o ModelOptions) (*Model, error) {
	if path == "" {
		return rt.OpenEmbedded(context.Background(), o)
	}
	return rt.Open(context.Background(), path, o)
}

// identity runs a model in many ways and compares every logit with the plainest one.
func identity(t *testing.T, path string, exact bool, runs int, weights int64) {
	startTakes(t, 0) // else small models would always fit
	plain := metamorphic{budget: 64<<20 + weights, threads: 1, chunk: 512, isa: kernel.ISAs()[len(kernel.ISAs())-1], sequences: 4}
	want := plain.run(t, path, exact).digests
	random := rand.New(rand.NewPCG(uint64(runs), 1))
	var streamed, tiled, mixed int
	isas := kernel.ISAs() // pure Go comes first, and takes its time
	fast := isas[min(1, len(isas)-1):]
	for i := range runs {
		w := metamorphic{
			budget: random.Int64N(weights / 8), threads: 1 + random.IntN(4), chunk: 1 + random.IntN(512),
			isa: fast[random.IntN(len(fast))], sequences: 1 + random.IntN(4),
			policy: []string{"adaptive", "lru", "lfu"}[random.IntN(3)], predict: []string{"auto", "on", "off"}[random.IntN(3)],
			log: i%2 == 1,
		}
		if random.IntN(2) == 0 {
			w.chunk = 1 + random.IntN(16)
		}
		switch i % 4 {
		case 1:
			w.isa = isas[0]
		case 3: // three of four stream
			w.budget = random.Int64N(weights * 3 / 2)
		}
		got := w.run(t, path, exact)
		for i, d := range got.digests {
			if d != want[i] {
				t.Fatalf("%+v: prompt %d has logits %s, the plain run has %s", w, i, d, want[i])
			}
		}
		streamed, tiled, mixed = streamed+count(got.streamed), tiled+count(got.tiled), mixed+count(got.mixed)
	}
	t.Logf("%d runs equal; %d streamed, %d in tiles, %d with several sequences", runs, streamed, tiled, mixed)
	if min(streamed, tiled, mixed)*2 < runs {
		t.Errorf("of %d runs %d streamed, %d came in tiles and %d ran several sequences; each must be half", runs, streamed, tiled, mixed)
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestIdentityExact(t *testing.T) { identitySynth(t, "toy", "q8_0", true, 4) }

func TestIdentityFormats(t *testing.T) {
	for _, format := range []string{"q4_k_m", "q8_0", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q3_k"} {
		t.Run(format, func(t *testing.T) { identitySynth(t, "toy", format, false, 4) })
	}
}

// Experts in slots, some of them or all, and experts that pass through a ring of tiles give the same bits.
func TestIdentityExperts(t *testing.T) {
	for _, format := range []string{"q8_0", "q4_k_m", "bf16", "mxfp4"} {
		t.Run(format, func(t *testing.T) { identitySynth(t, "toy-moe", format, false, 8) })
	}
}

// identitySynth runs a toy shape, whose weights are larger than the smallest ring.
func identitySynth(t *testing.T, shape, format string, exact bool, runs int) {
	path := filepath.Join(t.TempDir(), "toy.gguf")
	r, err := synth.Write(context.Background(), synth.Options{Shape: shape, Type: format, Path: path, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	identity(t, path, exact, runs, r.Bytes)
}

func TestIdentitySmolLM2(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	path := testutil.SmolLM2(t)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	identity(t, path, false, 4, info.Size())
}

// TestIdentityFamilies varies everything but the budget on what is special in a family: windows, norms
// of queries and keys, layers without rotation, biases, scaled rotation. The models are too small to
// stream.
func TestIdentityFamilies(t *testing.T) {
	for _, name := range []string{"mistral", "qwen2-window", "qwen3-bf16", "smollm3", "internlm3", "llama-tied", "qwen2_moe", "gpt_oss"} {
		t.Run(name, func(t *testing.T) {
			path := testutil.Shared(t, "oracle/"+name)
			plain := metamorphic{budget: 64 << 20, threads: 1, chunk: 512, isa: kernel.ISAs()[0], sequences: 4}
			want := plain.run(t, path, false).digests
			for i, w := range []metamorphic{{chunk: 1, threads: 3, sequences: 4}, {chunk: 7, threads: 2, sequences: 3}, {chunk: 64, threads: 4, sequences: 2}} {
				w.budget, w.isa = 32<<20, kernel.ISAs()[len(kernel.ISAs())-1]
				for j, d := range w.run(t, path, false).digests {
					if d != want[j] {
						t.Errorf("way %d, prompt %d: logits %s, the plain run has %s", i, j, d, want[j])
					}
				}
			}
		})
	}
}
