package main

import (
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway/spillway"
	"github.com/spillway/spillway/internal/testutil"
	"github.com/spillway/spillway/internal/vfs"
)

// Sweeps that skip the head need not read it: no more is required than was passed.
func TestRequired(t *testing.T) {
	model := filepath.Join(t.TempDir(), "m.gguf")
	s, out := testSession(t, nil)
	if code := s.main([]string{"synth", "smollm2-135m", "--type", "q4_0", "--layers", "1", "--out", model}); code != exitFine {
		t.Fatal(out)
	}
	s.flags = globals{Memory: "1GiB"}
	m, o, err := s.startAt(t.Context(), modelPath(model), 0, spillway.ModelOptions{Context: 64, Chunk: 4})
	if err != nil {
		t.Fatal(err)
	}
	run, err := runOnce(t.Context(), m, benchTest{prefill: 40, batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	all := m.IO()
	p := m.CurrentPlan()
	if all.Sweeps < 10 || all.Passed >= all.Sweeps*(p.PinnedBytes+p.StreamedBytes) {
		t.Errorf("%d sweeps passed %d bytes: none skips the head", all.Sweeps, all.Passed)
	}
	if w := run.work; w.Required > w.Active || w.Required < w.Active/2 {
		t.Errorf("required %d, read %d, passed %d", w.Required, w.Read, w.Active)
	}
	a, err := m.Generate(t.Context(), spillway.Request{IDs: identityIDs(0, 40, 100), MaxTokens: 2, IgnoreEnd: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if w := workOf(m, a); w.Required > w.Active || w.Required < w.Active/2 {
		t.Errorf("required %d, read %d, passed %d", w.Required, w.Read, w.Active)
	}
	if err := o.close(m.Close()); err != nil {
		t.Error(err)
	}
}

// One pass gives an embedding model's hidden states, taps and embedding.
func TestProbeEmbeddingOnce(t *testing.T) {
	s, _ := testSession(t, nil)
	s.flags = globals{Memory: "512MiB"}
	o, err := s.openNamed(t.Context(), testutil.Shared(t, "oracle/qwen3-embedding"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.startProbe(t.Context(), o, 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	target, err := vfs.Aim(filepath.Join(t.TempDir(), "p"))
	if err != nil {
		t.Fatal(err)
	}
	if err := newProbed(m, []int32{1, 2, 3}, 0, []string{"final_norm"}).write(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if n := m.IO().Sweeps; n != 1 {
		t.Errorf("%d sweeps, want 1", n)
	}
	if err := o.close(m.Close()); err != nil {
		t.Error(err)
	}
	if _, err := o.Measure(m.CurrentPlan(), false); !errors.Is(err, spillway.ErrClosed) {
		t.Errorf("measuring a closed checkpoint: %v", err)
	}
}

// written passes on what is written.
type written chan string

func (w written) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

// The bar shows the bytes, and is gone when the answer begins or all is read.
func TestWatchLoading(t *testing.T) {
	const total = 4 << 20
	w := make(written, 100)
	var read atomic.Int64
	read.Store(1 << 20)
	bar := &progress{w: w, label: "loading", start: time.Now()}
	end := bar.watch(time.Millisecond, total, read.Load)
	if got := <-w; !strings.HasPrefix(got, "\rloading ██████  ") || !strings.Contains(got, "1 MiB of 4 MiB") {
		t.Errorf("%q", got)
	}
	end()
	end()
	close(w) // a later write panics
	last := ""
	for last = range w {
	}
	if last != "\r\x1b[K" {
		t.Errorf("the last that was written is %q", last)
	}

	read.Store(total)
	w = make(written, 1)
	bar = &progress{w: w, label: "loading", start: time.Now()}
	bar.watch(time.Millisecond, total, read.Load)()
	if len(w) > 0 {
		t.Errorf("a model that is in memory shows %q", <-w)
	}
}
