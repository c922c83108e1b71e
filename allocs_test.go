package spillway

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/spillway/spillway/internal/synth"
	"github.com/spillway/spillway/internal/testutil"
)

// mallocs is how many objects an answer of n tokens takes from the heap.
func mallocs(t *testing.T, m *Model, n int) int64 {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := Request{IDs: []int32{5, 6, 7, 8}, MaxTokens: n, IgnoreEnd: true, Sampling: &Sampling{}}
	a, err := m.Generate(context.Background(), r, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.IDs) != n {
		t.Fatalf("%d tokens of %d", len(a.IDs), n)
	}
	runtime.ReadMemStats(&after)
	return int64(after.Mallocs - before.Mallocs)
}

// perToken is what a token more adds to an answer: the least of some tries, since lists grow now and then, and
// other goroutines take from the heap too.
func perToken(t *testing.T, m *Model) float64 {
	t.Helper()
	const few, many = 8, 72
	mallocs(t, m, many)
	least := int64(1 << 62)
	for range 3 {
		least = min(least, mallocs(t, m, many)-mallocs(t, m, few))
	}
	return float64(least) / (many - few)
}

func synthFile(t *testing.T, shape string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), shape+".gguf")
	if _, err := synth.Write(context.Background(), synth.Options{Shape: shape, Type: "q8_0", Path: path, Seed: 5}); err != nil {
		t.Fatal(err)
	}
	return path
}

// The heap has room for a few MiB beside a full budget: a step that takes from it brings the collector with it.
const mostPerToken = 3

func TestAllocationsPerToken(t *testing.T) {
	if testutil.Raced {
		t.Skip("skipped: the race detector keeps loops over functions from being inlined, which puts them on the heap")
	}
	for _, c := range []struct {
		name, shape string
		above       int64 // memory beyond the least
	}{
		{"dense", "toy", 1 << 30},
		{"dense streamed", "toy", 0},
		{"experts", "toy-moe", 1 << 30},
		{"experts in some slots", "toy-moe", 3 << 20},
		{"experts through a ring", "toy-moe", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, o := synthFile(t, c.shape), ModelOptions{Context: 128, Sequences: 1, Chunk: 16}
			rt, m := openNear(t, path, leastFor(t, path, 2, o)-heapMoves+c.above, 2, o)
			defer func() {
				if err := errors.Join(m.Close(), rt.Close()); err != nil {
					t.Error(err)
				}
			}()
			n := perToken(t, m)
			t.Logf("%.2f objects a token; %d bytes streamed; plan resident: %t", n, m.IO().Streamed(), m.CurrentPlan().Resident)
			if streams := m.IO().Streamed() > 0; streams != (c.name == "dense streamed") && c.shape == "toy" {
				t.Errorf("streams: %t", streams)
			}
			if n > mostPerToken {
				t.Errorf("%.2f objects a token, expected %d at most", n, mostPerToken)
			}
		})
	}
}

func TestAllocationsSmolLM2(t *testing.T) {
	if testing.Short() || testutil.Raced {
		t.Skip("skipped: -short or the race detector")
	}
	m := openTest(t, testutil.SmolLM2(t), ModelOptions{Context: 256, Sequences: 1})
	n := perToken(t, m)
	t.Logf("%.2f objects a token", n)
	if n > mostPerToken {
		t.Errorf("%.2f objects a token, expected %d at most", n, mostPerToken)
	}
}
