package spillway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/testutil"
	"github.com/spillway/spillway/internal/trace"
)

// closing is a buffer that knows that it was closed.
type closing struct {
	bytes.Buffer
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

// A trace has what the router's taps have, step by step.
func TestTrace(t *testing.T) {
	path := testutil.Shared(t, "models/storyteller-moe/storyteller-moe-Q8_0.gguf")
	out := new(closing)
	rt := newRuntime(t, 256<<20)
	m, err := rt.Open(context.Background(), path, ModelOptions{Context: 64, Chunk: 4, Trace: out})
	if err != nil {
		t.Fatal(err)
	}
	taps := map[string][]float32{}
	_, err = m.Probe(context.Background(), Probe{IDs: promptFor(0, 2000), Greedy: 3, Tap: func(name string, _, _ int, values []float32) {
		if strings.HasSuffix(name, "router.experts") {
			taps[name] = append(taps[name], values...)
		}
	}})
	if err := errors.Join(err, m.Close(), rt.Close()); err != nil || !out.closed {
		t.Fatal(err, out.closed)
	}
	r, err := trace.NewReader(&out.Buffer)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]float32{}
	rows := 0
	for {
		v, err := r.Next()
		if err != nil {
			break
		}
		name := fmt.Sprintf("layer.%d.router.experts", v.Layer)
		for _, e := range v.Experts {
			got[name] = append(got[name], float32(e))
		}
		if v.Layer == 0 {
			rows += v.Decode + v.Prefill
		}
	}
	if h := r.Header(); h.Layers != 4 || h.Experts != 32 || h.Used != 4 || len(h.ExpertBytes) != 4 || rows != 7 {
		t.Errorf("header %+v, %d rows", h, rows)
	}
	if len(taps) != 4 {
		t.Fatalf("%d taps", len(taps))
	}
	for name, want := range taps {
		if !slices.Equal(got[name][:min(len(want), len(got[name]))], want) {
			t.Errorf("%s: the trace has %v, the taps %v", name, got[name], want)
		}
	}
	rt = newRuntime(t, 256<<20)
	defer rt.Close()
	if _, err := rt.OpenEmbedded(context.Background(), ModelOptions{Context: 64, Trace: out}); !errors.Is(err, ErrNoExperts) {
		t.Errorf("a trace of a model without experts: %v", err)
	}
}
