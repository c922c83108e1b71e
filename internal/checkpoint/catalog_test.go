package checkpoint_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/gguf"
	"github.com/spillway/spillway/internal/checkpoint/safetensors"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

// folder writes files into a new folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tensorFile is a safetensors file of one-value tensors.
func tensorFile(t *testing.T, names ...string) string {
	t.Helper()
	var arrays []safetensors.Array
	for i, n := range names {
		arrays = append(arrays, safetensors.Float32s(n, []int{1}, []float32{float32(i)}))
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, arrays); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// index is an index.json: name, file, name, file…
func index(pairs ...string) string {
	var b strings.Builder
	b.WriteString(`{"metadata":{"total_size":1},"weight_map":{`)
	for i := 0; i < len(pairs); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%q", pairs[i], pairs[i+1])
	}
	return b.String() + "}}"
}

const indexName = "model.safetensors.index.json"

func mustOpen(t *testing.T, path string) *checkpoint.Catalog {
	t.Helper()
	c, err := checkpoint.Open(vfs.OS(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestFolder(t *testing.T) {
	dir := folder(t, map[string]string{
		"model-2.safetensors": tensorFile(t, "c", "extra"), "model-1.safetensors": tensorFile(t, "a", "b"),
		indexName:     index("c", "model-2.safetensors", "a", "model-1.safetensors", "b", "model-1.safetensors"),
		"config.json": `{"model_type":"llama"}`, "other.safetensors": "not looked at",
	})
	for _, path := range []string{dir, filepath.Join(dir, indexName)} {
		c := mustOpen(t, path)
		if c.Format != checkpoint.Safetensors || c.Dir != dir || len(c.Files) != 2 || len(c.Tensors) != 3 {
			t.Fatalf("%s: %+v", path, c)
		}
		x, ok := c.Tensor("c")
		if !ok || filepath.Base(c.Files[x.File].Path) != "model-2.safetensors" || x.Bytes != 4 || x.Type != quant.F32 {
			t.Errorf("c is %+v", x)
		}
		if _, ok := c.Tensor("extra"); ok {
			t.Error("a tensor that the index does not name is there")
		}
		config, err := c.Config()
		if err != nil || string(config) != `{"model_type":"llama"}` {
			t.Errorf("config %s (%v)", config, err)
		}
		if c.Bytes() != 12 {
			t.Errorf("%d bytes", c.Bytes())
		}
	}
}

func TestFolderChoice(t *testing.T) {
	one := tensorFile(t, "a")
	for name, c := range map[string]struct {
		files map[string]string
		want  string // file that is opened, or error
	}{
		"plain":        {map[string]string{"model.safetensors": one, "adapter.safetensors": one}, "model.safetensors"},
		"only":         {map[string]string{"weights.safetensors": one, "x.txt": ""}, "weights.safetensors"},
		"gguf":         {map[string]string{"x.gguf": ggufFile(t, 0, 0, 0, "a")}, "x.gguf"},
		"set":          {ggufSet(t, "m", 2), "m-00001-of-00002.gguf"},
		"none":         {map[string]string{"config.json": "{}"}, "no model in this folder"},
		"several":      {map[string]string{"a.safetensors": one, "b.safetensors": one}, "several models: a.safetensors, b.safetensors"},
		"gguf as .bin": {map[string]string{"x.bin": ggufFile(t, 0, 0, 0, "a")}, "no model in this folder"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, c.files)
			cat, err := checkpoint.Open(vfs.OS(), dir)
			if err != nil {
				checkFormatError(t, err, c.want)
				return
			}
			if got := filepath.Base(cat.Files[0].Path); got != c.want {
				t.Errorf("%s was opened, not %s", got, c.want)
			}
			cat.Close()
		})
	}
}

func TestIndexRefused(t *testing.T) {
	a := tensorFile(t, "a")
	for name, c := range map[string]struct{ index, want string }{
		"traversal":   {index("a", "../model.safetensors"), "../model.safetensors"},
		"windows":     {index("a", `..\model.safetensors`), "is not the name of a file"},
		"drive":       {index("a", `C:model.safetensors`), "is not the name of a file"},
		"subfolder":   {index("a", "sub/model.safetensors"), "is not the name of a file"},
		"absolute":    {index("a", "/etc/x.safetensors"), "is not the name of a file"},
		"empty":       {index("a", ""), "is not the name of a file"},
		"other":       {index("a", "config.json"), "is no .safetensors file"},
		"missing":     {index("a", "1.safetensors", "b", "gone.safetensors"), "gone.safetensors is missing"},
		"not there":   {index("a", "1.safetensors", "b", "1.safetensors"), `tensor "b": "1.safetensors" does not hold it`},
		"wrong file":  {index("a", "2.safetensors", "z", "1.safetensors"), "does not hold it"},
		"twice":       {index("a", "1.safetensors", "a", "1.safetensors"), `tensor "a": it is there twice`},
		"no map":      {`{"metadata":{}}`, "no weight_map"},
		"damaged":     {`{"weight_map":{"a":`, "ends too early"},
		"wrong types": {`{"weight_map":{"a":[]}}`, "JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{"1.safetensors": a, "2.safetensors": tensorFile(t, "z"), indexName: c.index})
			_, err := checkpoint.Open(vfs.OS(), dir)
			checkFormatError(t, err, c.want)
		})
	}
}

// TestIndexChooses has a tensor in two files: the index says which one counts.
func TestIndexChooses(t *testing.T) {
	dir := folder(t, map[string]string{
		"1.safetensors": tensorFile(t, "a", "b"), "2.safetensors": tensorFile(t, "b", "c"),
		indexName: index("a", "1.safetensors", "b", "2.safetensors", "c", "2.safetensors"),
	})
	c := mustOpen(t, dir)
	if b, ok := c.Tensor("b"); !ok || b.File != 1 {
		t.Errorf("b is %+v", b)
	}
}

// ggufFile is a GGUF file of one-value tensors; count 0 is one that is not split.
func ggufFile(t *testing.T, no, count, total int, names ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := gguf.NewWriter(&b)
	set := func(key string, v any) {
		if err := w.Set(key, v); err != nil {
			t.Fatal(err)
		}
	}
	set("general.architecture", "test")
	if count > 0 {
		set("split.no", uint16(no))
		set("split.count", uint16(count))
		set("split.tensors.count", int32(total))
	}
	for _, n := range names {
		if err := w.Add(n, quant.F32, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 4*len(names))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// ggufSet is a split set of two tensors a file.
func ggufSet(t *testing.T, stem string, count int) map[string]string {
	t.Helper()
	files := map[string]string{}
	for i := range count {
		files[fmt.Sprintf("%s-%05d-of-%05d.gguf", stem, i+1, count)] = ggufFile(t, i, count, 2*count, fmt.Sprint("x", i), fmt.Sprint("y", i))
	}
	return files
}

func TestSplitSet(t *testing.T) {
	dir := folder(t, ggufSet(t, "m", 3))
	for i := 1; i <= 3; i++ {
		c := mustOpen(t, filepath.Join(dir, fmt.Sprintf("m-%05d-of-00003.gguf", i)))
		if len(c.Files) != 3 || len(c.Tensors) != 6 {
			t.Fatalf("%d files, %d tensors", len(c.Files), len(c.Tensors))
		}
		if x, ok := c.Tensor("y2"); !ok || x.File != 2 {
			t.Errorf("y2 is %+v", x)
		}
		if no, _ := c.Meta.Int("split.no"); no != 0 {
			t.Errorf("the metadata is that of file %d", no)
		}
	}
}

func TestSplitRefused(t *testing.T) {
	first := "m-00001-of-00002.gguf"
	for name, c := range map[string]struct {
		change map[string]string // "" deletes
		want   string
	}{
		"missing":     {map[string]string{"m-00002-of-00002.gguf": ""}, "m-00002-of-00002.gguf is missing"},
		"swapped":     {map[string]string{"m-00002-of-00002.gguf": ggufFile(t, 0, 2, 4, "y")}, "another file"},
		"other count": {map[string]string{"m-00002-of-00002.gguf": ggufFile(t, 1, 3, 4, "y")}, "another file"},
		"not of set":  {map[string]string{"m-00002-of-00002.gguf": ggufFile(t, 0, 0, 0, "y")}, "none of a set"},
		"same tensor": {map[string]string{"m-00002-of-00002.gguf": ggufFile(t, 1, 2, 4, "x0", "y1")}, `tensor "x0"`},
		"total":       {map[string]string{"m-00002-of-00002.gguf": ggufFile(t, 1, 2, 4, "x1")}, "split.tensors.count is 4"},
		"damaged":     {map[string]string{"m-00002-of-00002.gguf": "GGUF"}, "m-00002-of-00002.gguf"},
		"renamed":     {map[string]string{first: ggufFile(t, 1, 2, 4, "x1")}, "should end in -00002-of-00002.gguf"},
		"number":      {map[string]string{first: ggufFile(t, 2, 2, 4, "x1")}, "do not go together"},
	} {
		t.Run(name, func(t *testing.T) {
			files := ggufSet(t, "m", 2)
			for k, v := range c.change {
				if files[k] = v; v == "" {
					delete(files, k)
				}
			}
			_, err := checkpoint.Open(vfs.OS(), filepath.Join(folder(t, files), first))
			checkFormatError(t, err, c.want)
		})
	}
}

func TestOpenFile(t *testing.T) {
	c, err := checkpoint.OpenFile(vfs.Bytes("embedded", ggufFile(t, 0, 0, 0, "a")))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Tensor("a"); !ok {
		t.Error("no tensor")
	}
	if _, err := c.ReadFile("tokenizer.json", 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file beside an embedded one: %v", err)
	}
	if _, err := checkpoint.OpenFile(vfs.Bytes("embedded", ggufFile(t, 0, 2, 2, "a"))); err == nil {
		t.Error("half of a set was opened")
	}
}

func TestReadFile(t *testing.T) {
	dir := folder(t, map[string]string{"model.safetensors": tensorFile(t, "a"), "x.json": `{"a":1}`, "bad.json": `{"a":`})
	c := mustOpen(t, dir)
	if b, err := c.ReadFile("x.json", 7); err != nil || string(b) != `{"a":1}` {
		t.Errorf("%s (%v)", b, err)
	}
	_, err := c.ReadFile("x.json", 6)
	checkFormatError(t, err, "7 bytes", "at most 6")
	_, err = c.ReadJSON("bad.json")
	checkFormatError(t, err, "bad.json")
	if _, err := c.Config(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no config: %v", err)
	}
	if _, err := c.ReadFile("../x.json", 100); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("outside of the folder: %v", err)
	}
}

// TestReadErrors fails one read after the other: the error is the drive's, and never the file's.
func TestReadErrors(t *testing.T) {
	dir := folder(t, ggufSet(t, "m", 2))
	path := filepath.Join(dir, "m-00001-of-00002.gguf")
	healthy := vfs.Fault(vfs.OS(), vfs.Plan{})
	c, err := checkpoint.Open(healthy, path)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	for n := int64(1); n <= healthy.Reads(); n++ {
		_, err := checkpoint.Open(vfs.Fault(vfs.OS(), vfs.Plan{FailRead: n}), path)
		var format *checkpoint.FormatError
		if !errors.Is(err, syscall.EIO) || errors.As(err, &format) {
			t.Errorf("read %d: %v", n, err)
		}
	}
	if healthy.Reads() == 0 {
		t.Error("nothing was read")
	}
}

func TestIdentity(t *testing.T) {
	files := map[string]string{"model.safetensors": tensorFile(t, "a", "b"), "config.json": "{}"}
	identity := func() string {
		c := mustOpen(t, folder(t, files))
		id, err := c.Identity(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := identity()
	if again := identity(); first != again || len(first) != 64 {
		t.Errorf("%s, then %s", first, again)
	}
	files["config.json"] = "[]"
	if identity() == first {
		t.Error("another config has the same identity")
	}
	files["config.json"] = "{}"
	files["model.safetensors"] = strings.Replace(files["model.safetensors"], `"b"`, `"c"`, 1)
	if identity() == first {
		t.Error("another name has the same identity")
	}
	files["model.safetensors"] = files["model.safetensors"][:len(files["model.safetensors"])-1] + "x"
	c := mustOpen(t, folder(t, files))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Identity(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func TestDigestProgress(t *testing.T) {
	c := mustOpen(t, folder(t, map[string]string{"model.safetensors": tensorFile(t, "a", "b")}))
	b, _ := c.Tensor("b")
	var done int64
	buf := mem.AlignUp(make([]byte, 16<<10), 4096)[:4096]
	sum, err := c.Digest(context.Background(), b, buf, func(n int64) { done += n })
	if err != nil || done != b.Bytes || len(sum) != 64 {
		t.Errorf("%s after %d bytes (%v)", sum, done, err)
	}
}

func TestConfigIsRaw(t *testing.T) {
	c := mustOpen(t, folder(t, map[string]string{"model.safetensors": tensorFile(t, "a"), "config.json": `{"b": 1, "a": 2}`}))
	raw, err := c.Config()
	if err != nil {
		t.Fatal(err)
	}
	var v struct{ A, B int }
	if err := json.Unmarshal(raw, &v); err != nil || v.A != 2 || !strings.HasPrefix(string(raw), `{"b"`) {
		t.Errorf("%s (%v)", raw, err)
	}
}
