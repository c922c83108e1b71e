package spillway

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/synth"
)

// toy writes the toy shape.
func toy(t *testing.T, format string) (path string, bytes int64) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "toy.gguf")
	r, err := synth.Write(context.Background(), synth.Options{Shape: "toy", Type: format, Path: path, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	return path, r.Bytes
}

// Every type of the cache gives one result, whatever the budget, the threads, the chunks, the company and
// the instructions; and each gives its own.
func TestIdentityCacheTypes(t *testing.T) {
	path, weights := toy(t, "q8_0")
	seen := map[string]string{}
	for _, kv := range kernel.CacheTypeNames() {
		plain := metamorphic{budget: 64<<20 + weights, threads: 1, chunk: 512, isa: kernel.ISAs()[0], sequences: 4, kv: kv}
		want := plain.run(t, path, false).digests
		if other, ok := seen[want[0]]; ok {
			t.Errorf("%s and %s give the same logits", kv, other)
		}
		seen[want[0]] = kv
		r := rand.New(rand.NewPCG(61, uint64(len(seen))))
		for _, isa := range kernel.ISAs()[min(1, len(kernel.ISAs())-1):] {
			w := metamorphic{budget: r.Int64N(weights), threads: 1 + r.IntN(3), chunk: 1 + r.IntN(40), isa: isa, sequences: 1 + r.IntN(4), kv: kv}
			for i, d := range w.run(t, path, false).digests {
				if d != want[i] {
					t.Errorf("%+v: prompt %d has other logits than the plain run", w, i)
				}
			}
		}
	}
}

// The pool for the cache is what the type's values take.
func TestPlanOfCacheTypes(t *testing.T) {
	path, _ := toy(t, "q8_0")
	rt, err := New(Options{Memory: 1 << 30, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	c, err := rt.Load(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	defer c.Close()
	pool := map[string]int64{}
	for _, kv := range append(kernel.CacheTypeNames(), "") {
		p, err := c.Plan(ModelOptions{Context: 1024, KV: kv})
		if err != nil {
			t.Fatal(err)
		}
		pool[kv] = p.Pools[budget.KV]
	}
	const values = 1024 * 4 * 2 * 2 * 64 // positions, layers, keys and values, heads, their size
	for kv, bytes := range map[string]int64{"f32": 4 * values, "f16": 2 * values, "": 2 * values, "bf16": 2 * values, "fp8": values, "q8_0": values / 32 * 34} {
		if got := pool[kv]; got < bytes || got > bytes+1024/16*4096 { // blocks of 16 positions are whole pages
			t.Errorf("%q: %d bytes are planned for %d bytes of values", kv, got, bytes)
		}
	}
	exact, err := c.Plan(ModelOptions{Context: 1024, Exact: true})
	if err != nil || exact.Pools[budget.KV] != pool["f32"] {
		t.Errorf("exact: %v", err)
	}
}

func TestCacheTypeErrors(t *testing.T) {
	rt, err := New(Options{Memory: 1 << 30, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	c, err := rt.Load(t.Context(), "testdata/oracle/llama-bf16")
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	defer c.Close()
	for _, x := range []struct {
		o    ModelOptions
		says string
	}{
		{ModelOptions{KV: "q4_0"}, "choose one of f32, f16, bf16, q8_0, fp8"},
		{ModelOptions{KV: "f16", Exact: true}, "the exact path keeps its cache in f32"},
		{ModelOptions{KV: "q8_0"}, "blocks of 32 values, and the heads of layer 0 have 16"},
	} {
		x.o.Context = 64
		var wrong *CacheTypeError
		if _, err := c.Start(t.Context(), x.o); !errors.As(err, &wrong) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%+v: %v, expected %q", x.o, err, x.says)
		}
	}
}
