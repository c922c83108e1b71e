package checkpoint_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/container"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/testutil"
	"github.com/spillway/spillway/internal/vfs"
)

// oddFile is what odd.json says of a file.
type oddFile struct {
	File      string
	Version   int
	Alignment int64
	DataStart *int64 `json:"data_start"`
	FileBytes int64  `json:"file_bytes"`
	KV        []struct {
		Key   any
		Type  string
		Value any
	}
	Tensors []struct {
		Name   string
		Dims   []int
		Type   uint32 `json:"ggml_type"`
		Offset int64  `json:"file_offset"`
		Bytes  int64
		SHA256 string
	}
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		t.Fatal(err)
	}
}

func TestOddFiles(t *testing.T) {
	dir := testutil.Shared(t, "oracle-gguf/odd")
	var odd map[string]oddFile
	readJSON(t, filepath.Join(dir, "odd.json"), &odd)
	if len(odd) < 25 {
		t.Errorf("only %d files", len(odd))
	}
	for name, want := range odd {
		if want.KV == nil { // split and unused-tensors are described otherwise
			continue
		}
		t.Run(name, func(t *testing.T) {
			c, err := checkpoint.Open(vfs.OS(), filepath.Join(dir, want.File))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if c.Version != want.Version || c.Alignment != want.Alignment || c.Files[0].Size != want.FileBytes {
				t.Errorf("version %d, alignment %d, %d bytes", c.Version, c.Alignment, c.Files[0].Size)
			}
			if want.DataStart != nil && c.Files[0].DataStart != *want.DataStart {
				t.Errorf("data starts at %d, not %d", c.Files[0].DataStart, *want.DataStart)
			}
			checkOddKeys(t, c, want)
			checkOddTensors(t, c, want)
		})
	}
}

func checkOddKeys(t *testing.T, c *checkpoint.Catalog, want oddFile) {
	t.Helper()
	got := c.Meta.Entries()
	if len(got) != len(want.KV) {
		t.Fatalf("%d keys, not %d", len(got), len(want.KV))
	}
	for i, kv := range want.KV {
		if k := describeText([]byte(got[i].Key), kv.Key); !equalJSON(k, kv.Key) {
			t.Errorf("key %d is %v, not %v", i, k, kv.Key)
		}
		if got[i].Kind.String() != kv.Type {
			t.Errorf("key %v is %v, not %s", kv.Key, got[i].Kind, kv.Type)
		}
		if v := describe(t, c, got[i].Value, kv.Value); !equalJSON(v, kv.Value) {
			t.Errorf("key %v is %v, not %v", kv.Key, v, kv.Value)
		}
	}
}

func equalJSON(a, b any) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && string(x) == string(y)
}

// describeText says what odd.json says of a string; like gives the form.
func describeText(b []byte, like any) any {
	m, ok := like.(map[string]any)
	if !ok {
		return string(b)
	}
	if _, ok := m["bytes_hex"]; ok {
		return map[string]any{"bytes_hex": hex.EncodeToString(b)}
	}
	sum := sha256.Sum256(b)
	out := map[string]any{"length_bytes": len(b), "sha256": hex.EncodeToString(sum[:])}
	if _, ok := m["starts_with"]; ok {
		out["starts_with"] = string([]rune(string(b))[:32])
	}
	return out
}

// describe says what odd.json says of a value.
func describe(t *testing.T, c *checkpoint.Catalog, v container.Value, like any) any {
	m, _ := like.(map[string]any)
	switch v.Kind {
	case container.String:
		return describeText(v.Text(), like)
	case container.Bool:
		b, _ := v.Bool()
		return b
	case container.Float32:
		f, _ := v.Float()
		return map[string]any{"float": m["float"], "bits_hex": fmt.Sprintf("%08x", math.Float32bits(float32(f)))}
	case container.Float64:
		f, _ := v.Float()
		return map[string]any{"float": m["float"], "bits_hex": fmt.Sprintf("%016x", math.Float64bits(f))}
	case container.List:
		return describeList(t, c, v.Array, m)
	}
	if _, big := m["integer"]; big {
		return map[string]any{"integer": v.String()}
	}
	return json.Number(v.String())
}

func describeList(t *testing.T, c *checkpoint.Catalog, a container.Array, like map[string]any) any {
	out := map[string]any{"element_type": a.Elem.String(), "length": a.Count}
	items, whole := like["items"].([]any)
	list := []any{}
	i := 0
	for v, err := range c.Meta.(*container.Table).Elements(a) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case whole && i < len(items):
			list = append(list, describe(t, c, v, items[i]))
		case i == 0:
			out["first"] = describe(t, c, v, like["first"])
		case i == int(a.Count)-1:
			out["last"] = describe(t, c, v, like["last"])
		}
		i++
	}
	if whole {
		out["items"] = list
	}
	return out
}

func checkOddTensors(t *testing.T, c *checkpoint.Catalog, want oddFile) {
	t.Helper()
	if len(c.Tensors) != len(want.Tensors) {
		t.Fatalf("%d tensors, not %d", len(c.Tensors), len(want.Tensors))
	}
	buf := mem.AlignUp(make([]byte, 64<<10), 4096)
	for i, w := range want.Tensors {
		slices.Reverse(w.Dims)
		got, ok := c.Tensor(w.Name)
		if !ok || got != &c.Tensors[i] {
			t.Fatalf("tensor %d is not %q", i, w.Name)
		}
		if uint32(got.Type) != w.Type || !slices.Equal(got.Shape, w.Dims) || got.Offset != w.Offset || got.Bytes != w.Bytes {
			t.Errorf("tensor %q: %+v, not %+v", w.Name, got, w)
		}
		if sum, err := c.Digest(context.Background(), got, buf, nil); err != nil || sum != w.SHA256 {
			t.Errorf("tensor %q: digest %s (%v), not %s", w.Name, sum, err, w.SHA256)
		}
	}
}

func TestCorruptFiles(t *testing.T) {
	dir := testutil.Shared(t, "oracle-gguf/corrupt")
	var list struct {
		Files []struct {
			File, Level, Wrong string
			Names              []string `json:"message_should_name"`
		}
	}
	readJSON(t, filepath.Join(dir, "corrupt.json"), &list)
	for _, f := range list.Files {
		t.Run(f.File, func(t *testing.T) {
			path := filepath.Join(dir, f.File)
			c, err := checkpoint.Open(vfs.OS(), path)
			if f.Level == "none" || f.Level == "model" {
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			checkFormatError(t, err, f.Names...)
			if grown := allocated(func() { checkpoint.Open(vfs.OS(), path) }); grown > 300<<10 {
				t.Errorf("%d bytes were allocated", grown)
			}
		})
	}
}

// checkFormatError wants one line of a FormatError that names all of names.
func checkFormatError(t *testing.T, err error, names ...string) {
	t.Helper()
	var format *checkpoint.FormatError
	if !errors.As(err, &format) {
		t.Fatalf("%v (%T) is not a FormatError", err, err)
	}
	t.Log(err)
	if strings.ContainsAny(err.Error(), "\n\r") {
		t.Errorf("%q has several lines", err)
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q does not name %s", err, name)
		}
	}
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
