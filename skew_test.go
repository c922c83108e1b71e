package spillway

import (
	"bytes"
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/spillway/spillway/internal/synth"
	"github.com/spillway/spillway/internal/testutil"
	"github.com/spillway/spillway/internal/trace"
)

func loadTrace(t *testing.T, r io.ReadSeeker) *trace.Trace {
	t.Helper()
	src, err := trace.Open(r)
	if err != nil {
		t.Fatal(err)
	}
	x, err := trace.Load(src, func(int64) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// routed makes a model with the options' routing and traces an answer of so many tokens.
func routed(t *testing.T, o synth.Options, tokens int) *trace.Trace {
	t.Helper()
	o.Path = filepath.Join(t.TempDir(), "m.gguf")
	if _, err := synth.Write(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	out := new(closing)
	rt, err := New(Options{Memory: 512 << 20, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	m, err := rt.Open(context.Background(), o.Path, ModelOptions{Context: tokens + 8, Trace: out})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Generate(context.Background(), Request{
		IDs: []int32{1, 5, 9}, MaxTokens: tokens, Sampling: &Sampling{Temperature: 1, Seed: 3}, IgnoreEnd: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	return loadTrace(t, bytes.NewReader(out.Bytes()))
}

// hits are the hit rates of policies, and Belady's, with several shares of all experts.
func hits(t *testing.T, x *trace.Trace) (all []float64) {
	t.Helper()
	n := x.Header.Layers * x.Header.Experts
	o, err := x.Replay(context.Background(), trace.Setting{Policies: []string{"lru", "lfu", "adaptive"}, Slots: []int{n / 8, n / 4, n / 2, n * 3 / 4}, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range o {
		all = append(all, x.HitRate())
		if i%3 == 0 {
			all = append(all, x.OptimalHitRate())
		}
	}
	return all
}

// TestSynthResembles runs a model whose routing was made up: it is as uneven, and lasts as long, as that of a small model
// that was trained.
func TestSynthResembles(t *testing.T) {
	f, err := os.Open(testutil.Shared(t, "models/storyteller-moe/routing.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	real := hits(t, loadTrace(t, f))
	made := hits(t, routed(t, synth.Options{Shape: "storyteller-moe", Type: "q8_0", Zipf: 6, ZipfHead: 1, Locality: 0.03}, 900))
	for i := range real {
		if math.Abs(real[i]-made[i]) > 0.05 {
			t.Errorf("figure %d: %.3f, the trained model has %.3f", i, made[i], real[i])
		}
	}
	t.Logf("%.3f", real)
	t.Logf("%.3f", made)
}

// TestSynthLocality wants experts kept as often as asked, and drawn evenly where no exponent is given.
func TestSynthLocality(t *testing.T) {
	for _, c := range []struct {
		shape    string
		locality float64
	}{{"storyteller-moe", 0.4}, {"toy-moe", 0}, {"toy-moe", 0.3}} {
		x := routed(t, synth.Options{Shape: c.shape, Type: "q8_0", Locality: c.locality}, 400)
		used, experts := x.Header.Used, x.Header.Experts
		want := c.locality + (1-c.locality)*float64(used)/float64(experts)
		r := x.Reuse()
		near, all := int64(0), r.First
		for d, n := range r.Distance {
			if all += n; d < used { // the experts of the token before come first
				near += n
			}
		}
		if got := float64(near) / float64(all); math.Abs(got-want) > 0.08 {
			t.Errorf("%s, locality %.2f: %.3f are kept, want %.3f", c.shape, c.locality, got, want)
		}
		busiest := 0.0
		for _, rate := range x.Rates() {
			busiest = max(busiest, rate)
		}
		if even := float64(used) / float64(experts); busiest > 2*even+0.05 {
			t.Errorf("%s: an expert has %.3f of all rows, even would be %.3f", c.shape, busiest, even)
		}
	}
}
