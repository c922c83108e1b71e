package spillway

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/spillway/spillway/internal/checkpoint/pack"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/packer"
	"github.com/spillway/spillway/internal/synth"
	"github.com/spillway/spillway/internal/testutil"
)

// packTo writes a packed copy of a model.
func packTo(t *testing.T, path, to string) {
	t.Helper()
	rt, err := New(Options{Memory: 512 << 20, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	c, err := rt.Load(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := packer.New(context.Background(), c.Catalog(), c.Layout())
	if err == nil {
		_, err = pack.Write(context.Background(), pack.Job{
			Path: to, Manifest: p.Manifest, Parts: p.Parts, Memory: mem.AlignUp(make([]byte, pack.WriteMemory(p.Align())+4096), 4096),
		})
	}
	if err = errors.Join(err, p.Close(), c.Close(), rt.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestPackedIdentity runs originals and packed copies, in all of the memory that they can use and near the least:
// every logit has the same bits.
func TestPackedIdentity(t *testing.T) {
	for _, c := range []struct{ name, shape, format string }{
		{"dense.gguf", "toy", "q8_0"}, {"experts.gguf", "toy-moe", "q8_0"}, {"dense.safetensors", "toy", "bf16"}, {"experts.safetensors", "toy-moe", "f16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), c.name)
			if _, err := synth.Write(context.Background(), synth.Options{Shape: c.shape, Type: c.format, Path: path}); err != nil {
				t.Fatal(err)
			}
			samePacked(t, path, 1<<20)
		})
	}
	for _, name := range []string{"oracle/gpt_oss", "oracle/qwen2_moe", "oracle-gguf/models/gpt-oss.gguf"} {
		t.Run(filepath.Base(name), func(t *testing.T) { samePacked(t, testutil.Shared(t, name), 1<<18) })
	}
	for _, name := range []string{"awq", "gptq-order", "ct-nvfp4"} {
		t.Run(name, func(t *testing.T) { samePacked(t, filepath.Join("testdata", "schemes", name), 1<<18) })
	}
}

// samePacked compares a model with its packed copy; above is a budget above the least at which a part is streamed.
func samePacked(t *testing.T, path string, above int64) {
	to := filepath.Join(t.TempDir(), "m.spill")
	packTo(t, path, to)
	o := ModelOptions{Context: 128, HeadRows: 64}
	var want, streamed string
	for _, path := range []string{path, to} {
		for _, memory := range []int64{512 << 20, leastFor(t, path, 1, o) + above} {
			rt, m := openNear(t, path, memory, 1, o)
			got, err := digestOf(m, promptFor(1, m.Layout().Vocab))
			streamed += " " + map[bool]string{true: "resident", false: "streamed"}[m.CurrentPlan().Resident]
			if err = errors.Join(err, m.Close(), rt.Close()); err != nil {
				t.Fatal(err)
			}
			if want == "" {
				want = got
			}
			if got != want {
				t.Errorf("%s in %d MiB: %s, the original has %s", filepath.Base(path), memory>>20, got, want)
			}
		}
	}
	t.Log(streamed)
}
