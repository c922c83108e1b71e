package synth

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

// tiny is small enough to write many times.
func tiny(family *style, tied bool) Shape {
	return Shape{
		Name: "tiny", style: family, Layers: 2, Hidden: 256, Heads: 4, KVHeads: 2, HeadDim: 64, FFN: 512,
		Vocab: 400, Context: 64, RopeBase: 1e4, Eps: 1e-5, Tied: tied,
	}
}

func write(t *testing.T, s Shape, o Options) Result {
	t.Helper()
	p, err := newPlan(s, o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.write(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func digest(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))[:16]
}

// The same seed gives the same bytes, on every machine and with any number of workers.
func TestSameBytes(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		family    *style
		typ, want string
		tied      bool
	}{
		{llama, "f16", "0c63e699cc3efbf3", false},
		{qwen3, "q8_0", "026db11a986f219d", true},
		{qwen2, "q4_0", "472f1fe374ad984a", false},
	} {
		name := filepath.Join(dir, c.family.family+".gguf")
		for _, workers := range []int{1, 5} {
			write(t, tiny(c.family, c.tied), Options{Type: c.typ, Path: name, Workers: workers, Force: true})
			if got := digest(t, name); got != c.want {
				t.Errorf("%s %s with %d workers: sha256 %s, want %s", c.family.family, c.typ, workers, got, c.want)
			}
		}
	}
	name := filepath.Join(dir, "other.gguf")
	write(t, tiny(llama, false), Options{Type: "f16", Path: name, Seed: 1})
	if digest(t, name) == digest(t, filepath.Join(dir, "llama.gguf")) {
		t.Error("another seed gives the same bytes")
	}
}

func open(t *testing.T, path string) *checkpoint.Catalog {
	t.Helper()
	c, err := checkpoint.Open(vfs.OS(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// rows returns a tensor's values.
func rows(t *testing.T, c *checkpoint.Catalog, name string) [][]float32 {
	t.Helper()
	x, ok := c.Tensor(name)
	if !ok {
		t.Fatalf("no tensor %s", name)
	}
	file, err := os.ReadFile(c.Files[x.File].Path)
	if err != nil {
		t.Fatal(err)
	}
	raw := file[x.Offset:][:x.Bytes]
	cols := x.Shape[len(x.Shape)-1]
	n := x.Type.RowBytes(cols)
	var out [][]float32
	for len(raw) > 0 {
		row := make([]float32, cols)
		if err := quant.DecodeRow(x.Type, row, raw[:n]); err != nil {
			t.Fatal(err)
		}
		out, raw = append(out, row), raw[n:]
	}
	return out
}

// A GGUF file and a folder of one seed are the same model; llama's files differ in the order of
// the query and key rows, as llama.cpp's converter writes them.
func TestFormatsHoldTheSameModel(t *testing.T) {
	dir := t.TempDir()
	for _, style := range []*style{llama, qwen2, qwen3} {
		family, s := style.family, tiny(style, false)
		file := write(t, s, Options{Type: "f16", Path: filepath.Join(dir, family+".gguf")})
		folder := write(t, s, Options{Type: "f16", Path: filepath.Join(dir, family) + "/"})
		if file.Parameters != folder.Parameters || file.Tensors != folder.Tensors {
			t.Errorf("%s: %+v and %+v differ", family, file, folder)
		}
		g, h := open(t, file.Path), open(t, folder.Path)
		if len(g.Tensors) != file.Tensors || len(h.Tensors) != folder.Tensors {
			t.Errorf("%s: %d and %d tensors, want %d", family, len(g.Tensors), len(h.Tensors), file.Tensors)
		}
		for _, x := range s.tensors(false) {
			a, b := rows(t, g, x.gguf), rows(t, h, x.hf)
			if len(a) != len(b) {
				t.Fatalf("%s %s: %d and %d rows", family, x.gguf, len(a), len(b))
			}
			for r := range a {
				from := r
				if style.permuted && (x.role == attnQ || x.role == attnK) {
					// reshape(heads, 2, dim/2).swapaxes(1, 2) of the converter
					head, in := r/s.HeadDim, r%s.HeadDim
					from = head*s.HeadDim + in%2*s.HeadDim/2 + in/2
				}
				if got, want := a[r][5], b[from][5]; got != want && math.Abs(float64(got-want)) > 1e-3 {
					t.Fatalf("%s %s row %d: %v in GGUF, %v in the folder", family, x.gguf, r, got, want)
				}
			}
		}
	}
}

func TestStatistics(t *testing.T) {
	for _, x := range []tensor{
		{hf: "a", role: ffnUp, rows: 64, cols: 4096},
		{hf: "b", role: output, rows: 64, cols: 4096},
		{hf: "c", role: norm, rows: 64, cols: 4096},
	} {
		var sum, squares, fourth float64
		row := make([]float32, x.cols)
		for r := range x.rows {
			x.fill(row, 3, r)
			for _, v := range row {
				d := float64(v)
				if x.role == norm {
					d--
				}
				sum += d
				squares += d * d
				fourth += d * d * d * d
			}
		}
		n := float64(x.rows * x.cols)
		deviation := math.Sqrt(squares / n)
		want := float64(x.deviation())
		if x.role == norm {
			want = math.Sqrt((129.0*129-1)/12) / 1024
		}
		if math.Abs(sum/n) > 6*want/math.Sqrt(n) || math.Abs(deviation/want-1) > 0.01 {
			t.Errorf("%s: mean %v, deviation %v, want 0 and %v", x.hf, sum/n, deviation, want)
		}
		if kurtosis := fourth / n / (deviation * deviation * deviation * deviation); x.role != norm && math.Abs(kurtosis-2.7) > 0.05 {
			t.Errorf("%s: kurtosis %v, want 2.7 (the sum of four uniform numbers)", x.hf, kurtosis)
		}
	}
}

// Rows are different, and tensors too.
func TestStreamsDiffer(t *testing.T) {
	seen := map[stream]string{}
	for seed := range uint64(3) {
		for _, name := range []string{"a", "b", "ab", "ba"} {
			for row := range 1000 {
				s, at := rowStream(seed, name, row), fmt.Sprint(seed, name, row)
				if other := seen[s]; other != "" {
					t.Fatalf("%s and %s have the same stream", at, other)
				}
				seen[s] = at
			}
		}
	}
}

func TestVocabulary(t *testing.T) {
	for _, size := range []int{400, 32000, 151936} {
		v := vocab{size}
		ids := map[string]int{}
		for id, x := range v.tokens() {
			if id != len(ids) {
				t.Fatalf("id %d after %d tokens", id, len(ids))
			}
			if other, ok := ids[string(x.text)]; ok {
				t.Fatalf("tokens %d and %d are both %q", other, id, x.text)
			}
			ids[string(x.text)] = id
		}
		if len(ids) != size || ids["<|im_end|>"] != size-1 || ids["<|endoftext|>"] != v.endOfText() {
			t.Fatalf("size %d: %d tokens, end of turn %d, end of text %d", size, len(ids), ids["<|im_end|>"], ids["<|endoftext|>"])
		}
		rank := 0
		for pair := range v.pairs() {
			left, right, ok := strings.Cut(string(pair), " ")
			l, okL := ids[left]
			r, okR := ids[right]
			merged := byteTokens + rank
			if !ok || !okL || !okR || ids[left+right] != merged || l >= merged || r >= merged {
				t.Fatalf("merge %d, %q: ids %d and %d make %d", rank, pair, l, r, ids[left+right])
			}
			rank++
		}
		if rank != v.merges() {
			t.Fatalf("%d merges, want %d", rank, v.merges())
		}
	}
}

func TestTokenizerJSON(t *testing.T) {
	dir := t.TempDir()
	s := tiny(llama, false)
	if err := s.writeTexts(dir, "float16"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Added []struct{ ID int } `json:"added_tokens"`
		Model struct {
			Vocab        map[string]int
			Merges       []string
			IgnoreMerges bool `json:"ignore_merges"`
		}
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	v := vocab{s.Vocab}
	if len(got.Added) != 3 || got.Added[2].ID != v.endOfTurn() || len(got.Model.Vocab) != v.endOfText() ||
		len(got.Model.Merges) != v.merges() || !got.Model.IgnoreMerges || got.Model.Merges[0] != "Ġ e" {
		t.Errorf("%d added tokens, %d tokens, %d merges, first %q", len(got.Added), len(got.Model.Vocab), len(got.Model.Merges), got.Model.Merges[0])
	}
}

// The rule of the published Q4_K_M files, for 22 layers.
func TestMoreBits(t *testing.T) {
	var got []int
	for i := range 22 {
		if moreBits(i, 22) {
			got = append(got, i)
		}
	}
	if want := "[0 1 4 7 10 13 16 19 20 21]"; fmt.Sprint(got) != want {
		t.Errorf("layers %v, want %s", got, want)
	}
}

func TestTypes(t *testing.T) {
	for _, c := range []struct {
		typ   string
		cols  int
		tied  bool
		wants map[string]quant.Type
	}{
		{"q4_k_m", 256, false, map[string]quant.Type{
			"token_embd.weight": quant.Q4_K, "output.weight": quant.Q6_K, "blk.1.attn_v.weight": quant.Q6_K,
			"blk.1.attn_q.weight": quant.Q4_K, "blk.1.attn_norm.weight": quant.F32,
		}},
		{"Q4_K_M", 256, true, map[string]quant.Type{"token_embd.weight": quant.Q6_K}},
		{"q4_k", 256, false, map[string]quant.Type{"output.weight": quant.Q4_K, "blk.1.ffn_down.weight": quant.Q4_K}},
		{"q4_k", 96, false, map[string]quant.Type{"output.weight": quant.Q5_0, "blk.1.ffn_down.weight": quant.Q4_K}},
		{"q6_k", 96, false, map[string]quant.Type{"output.weight": quant.Q8_0}},
		{"bf16", 96, false, map[string]quant.Type{"output.weight": quant.BF16, "output_norm.weight": quant.F32}},
	} {
		m, err := lookupType(c.typ)
		if err != nil {
			t.Fatal(err)
		}
		s := tiny(llama, c.tied)
		s.Hidden = c.cols
		list := s.tensors(false)
		if err := m.assign(&s, list, true); err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			if want, ok := c.wants[x.gguf]; ok && x.typ != want {
				t.Errorf("%s, %d columns: %s is %v, want %v", c.typ, c.cols, x.gguf, x.typ, want)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there.gguf")
	if err := os.WriteFile(there, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{
		"unknown shape":           {Shape: "gpt-9", Type: "f16", Path: there},
		`unknown type "q9"`:       {Shape: "llama-7b", Type: "q9", Path: there},
		"q8_k cannot be written":  {Shape: "llama-7b", Type: "q8_k", Path: there},
		"a folder holds f16":      {Shape: "llama-7b", Type: "q8_0", Path: dir + "/m/"},
		"-1 layers":               {Shape: "llama-7b", Type: "f16", Path: there, Layers: -1},
		"a context of":            {Shape: "llama-7b", Type: "f16", Path: there, Context: 1 << 30},
		"no path":                 {Shape: "llama-7b", Type: "f16"},
		"--force replaces it":     {Shape: "llama-7b", Type: "f16", Path: there},
		"needs ":                  {Shape: "llama-7b", Type: "f32", Layers: 4096, Path: filepath.Join(dir, "x.gguf")},
		"no such file or directo": {Shape: "llama-7b", Type: "f16", Path: filepath.Join(dir, "no", "x.gguf")},
	} {
		if _, err := Write(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", o, err, want)
		}
	}
	if data, err := os.ReadFile(there); err != nil || string(data) != "mine" {
		t.Errorf("the file that was there has changed: %q, %v", data, err)
	}
}

// A write that ends early leaves nothing behind, and what was there stays.
func TestCancel(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "x.gguf"), filepath.Join(dir, "x.safetensors")} {
		ctx, cancel := context.WithCancel(t.Context())
		p, err := newPlan(tiny(llama, false), Options{Type: "f32", Path: path, Workers: 3, Progress: func(done, total int64) {
			if done > total/3 {
				cancel()
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.write(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that it was cancelled", err)
		}
		cancel()
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestForceReplacesAFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	for _, typ := range []string{"f32", "bf16"} {
		write(t, tiny(qwen3, true), Options{Type: typ, Path: path, Force: true})
	}
	if got := open(t, path).Tensors[0].DType; got != "BF16" {
		t.Errorf("dtype %s, want BF16", got)
	}
	data, err := os.ReadFile(filepath.Join(path, "config.json"))
	if err != nil || !strings.Contains(string(data), `"torch_dtype": "bfloat16"`) {
		t.Errorf("config.json: %s, %v", data, err)
	}
}

// A folder that holds other files is not replaced, nor is a folder by a file.
func TestForceSparesOthers(t *testing.T) {
	dir := t.TempDir()
	thesis := filepath.Join(dir, "m.safetensors", "thesis.txt")
	if err := os.Mkdir(filepath.Dir(thesis), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(thesis, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	for want, path := range map[string]string{`holds "thesis.txt"`: filepath.Dir(thesis), "is a folder": dir, "is a file": thesis + "/"} {
		_, err := Write(t.Context(), Options{Shape: "toy", Type: "f16", Path: path, Force: true})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if data, err := os.ReadFile(thesis); err != nil || string(data) != "mine" {
		t.Errorf("%q, %v", data, err)
	}
}

// Progress ends at the total, and the total is the size of the weights.
func TestProgress(t *testing.T) {
	var last, total int64
	r := write(t, tiny(llama, true), Options{
		Type: "q8_0", Path: filepath.Join(t.TempDir(), "x.gguf"),
		Progress: func(d, n int64) { last, total = d, n },
	})
	if last != total || total != r.Bytes {
		t.Errorf("progress ended at %d of %d, weights have %d bytes", last, total, r.Bytes)
	}
}

func BenchmarkFill(b *testing.B) {
	x := tensor{hf: "a", role: ffnUp, rows: 1, cols: 4096}
	row := make([]float32, x.cols)
	b.SetBytes(int64(binary.Size(row)))
	for b.Loop() {
		x.fill(row, 1, 0)
	}
}
