package packer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/pack"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/models"
	"github.com/spillway/spillway/internal/nn"
	"github.com/spillway/spillway/internal/synth"
	"github.com/spillway/spillway/internal/testutil"
	"github.com/spillway/spillway/internal/vfs"
)

func open(t *testing.T, path string) (*checkpoint.Catalog, *nn.Model) {
	t.Helper()
	cat, err := checkpoint.Open(vfs.OS(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cat.Close() })
	m, err := models.Describe(cat)
	if err != nil {
		t.Fatal(err)
	}
	return cat, m
}

// packed writes a packed copy and opens it.
func packed(t *testing.T, cat *checkpoint.Catalog, l *layout.Model) (*checkpoint.Catalog, *nn.Model) {
	t.Helper()
	p, err := New(context.Background(), cat, l)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.spill")
	_, err = pack.Write(context.Background(), pack.Job{
		Path: path, Manifest: p.Manifest, Parts: p.Parts, Memory: mem.AlignUp(make([]byte, pack.WriteMemory(p.Align())+4096), 4096),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	return open(t, path)
}

func made(t *testing.T, shape, format, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if _, err := synth.Write(context.Background(), synth.Options{Shape: shape, Type: format, Path: path}); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSynth packs dense models and mixtures of experts from both formats.
func TestSynth(t *testing.T) {
	for _, c := range [][3]string{
		{"toy", "q4_k_m", "a.gguf"}, {"toy-moe", "q4_k_m", "a.gguf"}, {"toy", "bf16", "a.safetensors"}, {"toy-moe", "f16", "a.safetensors"},
	} {
		t.Run(strings.Join(c[:], " "), func(t *testing.T) { check(t, made(t, c[0], c[1], c[2])) })
	}
}

// TestOracle packs families whose experts lie differently: one tensor each, stacks, stacks of inputs × outputs.
func TestOracle(t *testing.T) {
	for _, name := range []string{"oracle/llama", "oracle/olmoe", "oracle/mixtral", "oracle/qwen2_moe", "oracle/gpt_oss",
		"oracle-gguf/models/gpt-oss.gguf", "oracle-gguf/models/mixtral.gguf", "oracle-gguf/models/qwen3moe.gguf"} {
		t.Run(name, func(t *testing.T) { check(t, testutil.Shared(t, name)) })
	}
}

// TestSchemes packs quantized safetensors, which are put together when they are read.
func TestSchemes(t *testing.T) {
	for _, name := range []string{"awq", "gptq-order", "bnb-nf4", "ct-nvfp4", "fp8-block"} {
		t.Run(name, func(t *testing.T) { check(t, filepath.Join(testutil.Root(t), "testdata/schemes", name)) })
	}
}

// check packs a model and compares: the same tensors with the same bytes, in bundles that lie together.
func check(t *testing.T, path string) {
	cat, model := open(t, path)
	to, after := packed(t, cat, model.Layout)
	if to.Format != cat.Format || to.Packed == nil || len(to.Tensors) != len(cat.Tensors) || to.Bytes() != cat.Bytes() {
		t.Fatalf("%d tensors with %d bytes, there were %d with %d", len(to.Tensors), to.Bytes(), len(cat.Tensors), cat.Bytes())
	}
	if id, err := cat.Identity(context.Background()); err != nil || to.Packed.Identity != id {
		t.Errorf("made from %s, not %s (%v)", to.Packed.Identity, id, err)
	}
	buf := mem.AlignUp(make([]byte, 128<<10), 4096)
	for i := range cat.Tensors {
		want := &cat.Tensors[i]
		got, ok := to.Tensor(want.Name)
		if !ok || got.Type != want.Type || got.DType != want.DType || fmt.Sprint(got.Shape) != fmt.Sprint(want.Shape) {
			t.Fatalf("%s is %+v", want.Name, got)
		}
		a, err := cat.Digest(context.Background(), want, buf, nil)
		b, err2 := to.Digest(context.Background(), got, buf, nil)
		if err != nil || err2 != nil || a != b {
			t.Errorf("%s has other bytes (%v, %v)", want.Name, err, err2)
		}
	}
	checkText(t, cat, to)
	checkBundles(t, to, after.Layout)
}

// checkText compares what the checkpoints say about themselves.
func checkText(t *testing.T, cat, to *checkpoint.Catalog) {
	t.Helper()
	if a, b := cat.Meta.Entries(), to.Meta.Entries(); len(a) != len(b) {
		t.Errorf("%d keys, not %d", len(b), len(a))
	}
	for key, kind := range cat.Meta.Keys() {
		a, _ := cat.Meta.String(key)
		b, _ := to.Meta.String(key)
		n, _ := cat.Meta.Count(key)
		m, _ := to.Meta.Count(key)
		if a != b || n != m {
			t.Errorf("%s (%v) is another one", key, kind)
		}
	}
	if cat.Format == checkpoint.GGUF {
		return
	}
	for _, name := range []string{"config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"} {
		a, err := cat.ReadFile(name, 1<<20)
		b, err2 := to.ReadFile(name, 1<<20)
		if string(a) != string(b) || errors.Is(err, fs.ErrNotExist) != errors.Is(err2, fs.ErrNotExist) {
			t.Errorf("%s is another one (%v, %v)", name, err, err2)
		}
	}
}

// checkBundles wants every layer's trunk in one aligned range, and every expert in one of its own.
func checkBundles(t *testing.T, cat *checkpoint.Catalog, l *layout.Model) {
	t.Helper()
	groups := map[string]*pack.Group{}
	for i := range cat.Packed.Groups {
		g := &cat.Packed.Groups[i]
		groups[g.Name] = g
		if g.Offset%pack.Align != 0 {
			t.Errorf("%s begins at %d", g.Name, g.Offset)
		}
	}
	if g := groups["unused"]; g != nil && g.Bytes > 8*pack.Align {
		t.Errorf("%d bytes belong to no bundle", g.Bytes)
	}
	for i := range l.Bundles {
		b := &l.Bundles[i]
		g := groups[b.Name]
		if b.Layer >= 0 {
			g = groups[fmt.Sprint("layer.", b.Layer)]
		}
		for _, m := range b.Matrices {
			if m.File == 0 && (g == nil || m.Offset < g.Offset || m.Offset+m.Bytes() > g.End()) && !tied(l, m) {
				t.Errorf("%s is not in its bundle, %s", m.Name, b.Name)
			}
		}
	}
	for i := range l.Experts {
		x := &l.Experts[i]
		g := groups[fmt.Sprintf("layer.%d.experts", x.Layer)]
		if g == nil || g.Count != x.Count() {
			t.Fatalf("experts of layer %d: %+v", x.Layer, g)
		}
		for e := range x.Count() {
			b := x.Bundle(e, pack.Align)
			if r := b.Extents[0]; r.File == 0 && (b.N != 1 || r.Start != g.Offset+int64(e)*g.Bytes || r.End-r.Start > g.Bytes) {
				t.Errorf("expert %d of layer %d lies in %d ranges: %+v", e, x.Layer, b.N, b.Extents[:b.N])
			}
		}
	}
}

// tied reports whether a matrix is in two bundles: it lies where the first one is.
func tied(l *layout.Model, m *layout.Matrix) bool {
	n := 0
	for i := range l.Bundles {
		for _, x := range l.Bundles[i].Matrices {
			if x == m {
				n++
			}
		}
	}
	return n > 1
}

func TestPackedTwice(t *testing.T) {
	cat, m := open(t, made(t, "toy", "f16", "a.gguf"))
	to, after := packed(t, cat, m.Layout)
	if _, err := New(context.Background(), to, after.Layout); err == nil || !strings.Contains(err.Error(), "packed already") {
		t.Error(err)
	}
}
