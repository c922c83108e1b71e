package spillway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/repack"
	"github.com/spillway/spillway/internal/checkpoint/safetensors"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/models"
	"github.com/spillway/spillway/internal/pager"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

// schemeCases are the folders under testdata/schemes; make.py there tells how they were made.
func schemeCases(t *testing.T) []string {
	list, err := filepath.Glob("testdata/schemes/*/case.json")
	if err != nil || len(list) < 15 {
		t.Fatal(list, err)
	}
	return list
}

// TestSchemes compares the weights of quantized safetensors checkpoints with those that the scheme's
// own library decodes, bit for bit; then the logits with those of the decoded weights.
func TestSchemes(t *testing.T) {
	for _, path := range schemeCases(t) {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var want struct{ SHA256 map[string]string }
			readJSON(t, path, &want)
			m := openTest(t, dir, ModelOptions{Context: 64, HeadRows: 64, Exact: true})
			decoded := decodeView(t, m)
			if len(decoded) != len(want.SHA256) {
				t.Errorf("%d matrices are quantized, expected %d", len(decoded), len(want.SHA256))
			}
			for module, values := range decoded {
				sum := sha256.Sum256(mem.FromFloat32s(values))
				if got := hex.EncodeToString(sum[:]); got != want.SHA256[module] {
					t.Errorf("%s decodes to other values than the library's", module)
				}
			}
			compareLogits(t, dir, m, decoded)
		})
	}
}

// decodeView decodes the quantized matrices of a model, by module, with columns as they were before
// reordering and without negative zeros.
func decodeView(t *testing.T, m *Model) map[string][]float32 {
	t.Helper()
	all := map[string][]float32{}
	for _, x := range m.Layout().Matrices {
		if x.File < len(m.cat.Files) {
			continue
		}
		raw := readView(t, m.cat, x.Offset, x.Bytes())
		values, row := make([]float32, x.Rows*x.Cols), make([]float32, x.Cols)
		for r := range x.Rows {
			if err := quant.DecodeRow(x.Type, row, raw[int64(r)*x.RowBytes():][:x.RowBytes()]); err != nil {
				t.Fatal(err)
			}
			for k, v := range row {
				if x.Order != nil {
					k = int(m.pager.Vector(x.Order)[k])
				}
				values[r*x.Cols+k] = v + 0
			}
		}
		all[x.Name[:strings.LastIndexByte(x.Name, '.')]] = values
	}
	return all
}

func readView(t *testing.T, cat *checkpoint.Catalog, off, n int64) []byte {
	t.Helper()
	view := cat.Views[0].(*repack.File)
	b := make([]byte, n)
	if got, err := view.ReadWith(b, off, make([]byte, view.ScratchBytes())); err != nil || int64(got) != n {
		t.Fatal(got, err)
	}
	return b
}

var schemePrompt = []int32{1, 5, 9, 31, 20, 7, 30, 2, 2, 18, 11}

func promptLogits(t *testing.T, m *Model) []float32 {
	t.Helper()
	var all []float32
	_, err := m.Probe(context.Background(), Probe{IDs: schemePrompt, Rows: func(_ int, v []float32) error {
		all = append(all, v...)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// compareLogits runs a checkpoint of the decoded weights: exact logits are the same bits, but for
// reordered columns, which enter sums in another order.
func compareLogits(t *testing.T, dir string, exact *Model, decoded map[string][]float32) {
	plain := openTest(t, plainFolder(t, dir, exact, decoded), ModelOptions{Context: 64, HeadRows: 64, Exact: true})
	want, got := promptLogits(t, plain), promptLogits(t, exact)
	ordered := slices.ContainsFunc(exact.Layout().Matrices, func(m *layout.Matrix) bool { return m.Order != nil })
	if rel := relative(got, want); ordered && !(rel < 1e-5) || !ordered && rel != 0 {
		t.Errorf("exact logits differ by %.3g of those of the decoded weights", rel)
	}
	quick := openTest(t, dir, ModelOptions{Context: 64, HeadRows: 64})
	rel := relative(promptLogits(t, quick), want)
	if !(rel < 2e-3) {
		t.Errorf("logits differ by %.3g from the exact ones", rel)
	}
	t.Logf("%.2g from the exact logits", rel)
}

// plainFolder is the checkpoint with decoded weights in f32 and no scheme.
func plainFolder(t *testing.T, dir string, m *Model, decoded map[string][]float32) string {
	t.Helper()
	var arrays []safetensors.Array
	for name, a := range readArrays(t, filepath.Join(dir, "model.safetensors")) {
		module := name[:strings.LastIndexByte(name, '.')]
		if _, ok := decoded[module]; !ok && !strings.Contains(name, ".weight.") && strings.HasSuffix(name, ".weight") {
			arrays = append(arrays, a)
		}
	}
	for _, x := range m.Layout().Matrices {
		module := x.Name[:strings.LastIndexByte(x.Name, '.')]
		if values, ok := decoded[module]; ok {
			arrays = append(arrays, safetensors.Float32s(module+".weight", []int{x.Rows, x.Cols}, values))
		}
	}
	var config map[string]any
	readJSON(t, filepath.Join(dir, "config.json"), &config)
	delete(config, "quantization_config")
	return writeFolder(t, config, arrays)
}

func writeFolder(t *testing.T, config map[string]any, arrays []safetensors.Array) string {
	t.Helper()
	dir := t.TempDir()
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, arrays); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"config.json": data, "model.safetensors": b.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestSchemesStreamed reads every matrix through a ring in tiles of a few rows, and row by row: they
// are the bytes that a read of the whole gives.
func TestSchemesStreamed(t *testing.T) {
	for _, path := range schemeCases(t) {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			cat, m := describe(t, dir)
			p := &layout.Placement{Align: 4096, Page: 4096, Slots: 4, SlotBytes: 32 << 10, Request: 4096, Readers: 3, LookupBytes: 32 << 10, ReadScratch: m.ReadScratch}
			for i, x := range m.Sweep() {
				u := layout.Unit{File: x.File, Offset: x.Offset, Bytes: x.Bytes(), Parts: []layout.Part{{Matrix: x, Rows: x.Rows}}}
				if u.Pinned = i%3 == 2; !u.Pinned {
					u.TileRows = 5 + 4*(i%2)
				}
				p.Units = append(p.Units, u)
			}
			checkStreamed(t, cat, m, p)
		})
	}
}

func describe(t *testing.T, dir string) (*checkpoint.Catalog, *layout.Model) {
	t.Helper()
	cat, err := checkpoint.Open(vfs.OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cat.Close() })
	m, err := models.Describe(cat)
	if err != nil {
		t.Fatal(err)
	}
	return cat, m.Layout
}

func checkStreamed(t *testing.T, cat *checkpoint.Catalog, m *layout.Model, place *layout.Placement) {
	var files []vfs.File
	for _, f := range cat.Files {
		files = append(files, f.File)
	}
	ctx := context.Background()
	p, err := pager.Open(ctx, pager.Config{Model: m, Placement: place, Files: append(files, cat.Views...), Ledger: budget.New(64 << 20)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s, err := p.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.End()
	for _, x := range m.Sweep() {
		var got []byte
		for tile, err := range s.Tiles(x) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, tile.Bytes()...)
		}
		if x.File < len(cat.Files) {
			continue
		}
		if !bytes.Equal(got, readView(t, cat, x.Offset, x.Bytes())) {
			t.Errorf("%s has other bytes in tiles", x.Name)
		}
		rows := []int32{0, int32(x.Rows - 1), int32(x.Rows / 3)}
		err := p.Rows(ctx, x, rows, func(i int, raw []byte) error {
			if !bytes.Equal(raw, got[int64(rows[i])*x.RowBytes():][:x.RowBytes()]) {
				return fmt.Errorf("row %d of %s has other bytes", rows[i], x.Name)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// randomArray is a tensor of random bytes.
func randomArray(rng *rand.ChaCha8, name, dtype string, width int, shape ...int) safetensors.Array {
	n := width
	for _, d := range shape {
		n *= d
	}
	a := safetensors.Array{Name: name, DType: dtype, Shape: shape, Data: make([]byte, n)}
	rng.Read(a.Data)
	return a
}

// scaleArray is small positive numbers in f16.
func scaleArray(rng *rand.ChaCha8, name string, shape ...int) safetensors.Array {
	a := randomArray(rng, name, "F16", 2, shape...)
	for i := 0; i < len(a.Data); i += 2 {
		binary.LittleEndian.PutUint16(a.Data[i:], quant.F32ToF16(0.002+float32(a.Data[i])/65536))
	}
	return a
}

// bigScheme is a checkpoint of random weights that is larger than a small ring.
func bigScheme(t *testing.T, quantization map[string]any, module func(rng *rand.ChaCha8, name string, rows, cols int) []safetensors.Array) string {
	const hidden, ffn, vocab = 1024, 3072, 256
	rng := rand.NewChaCha8([32]byte{7})
	var arrays []safetensors.Array
	ones := make([]float32, hidden)
	for i := range ones {
		ones[i] = 1
	}
	for _, n := range []string{"model.norm", "model.layers.0.input_layernorm", "model.layers.0.post_attention_layernorm"} {
		arrays = append(arrays, safetensors.Float32s(n+".weight", []int{hidden}, ones))
	}
	arrays = append(arrays, scaleArray(rng, "model.embed_tokens.weight", vocab, hidden), scaleArray(rng, "lm_head.weight", vocab, hidden))
	for _, x := range []struct {
		name       string
		rows, cols int
	}{
		{"self_attn.q_proj", hidden, hidden}, {"self_attn.k_proj", hidden, hidden}, {"self_attn.v_proj", hidden, hidden}, {"self_attn.o_proj", hidden, hidden},
		{"mlp.gate_proj", ffn, hidden}, {"mlp.up_proj", ffn, hidden}, {"mlp.down_proj", hidden, ffn},
	} {
		arrays = append(arrays, module(rng, "model.layers.0."+x.name, x.rows, x.cols)...)
	}
	return writeFolder(t, map[string]any{
		"model_type": "llama", "hidden_size": hidden, "intermediate_size": ffn, "num_hidden_layers": 1, "num_attention_heads": 16,
		"num_key_value_heads": 16, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "vocab_size": vocab, "quantization_config": quantization,
	}, arrays)
}

func exchangedModule(order bool) func(rng *rand.ChaCha8, name string, rows, cols int) []safetensors.Array {
	return func(rng *rand.ChaCha8, name string, rows, cols int) []safetensors.Array {
		g := randomArray(rng, name+".g_idx", "I32", 4, cols)
		places := rand.New(rng).Perm(cols)
		for k, p := range places {
			if !order {
				p = k
			}
			binary.LittleEndian.PutUint32(g.Data[4*k:], uint32(p/128))
		}
		return []safetensors.Array{
			randomArray(rng, name+".qweight", "I32", 4, cols/8, rows), randomArray(rng, name+".qzeros", "I32", 4, cols/128, rows/8),
			scaleArray(rng, name+".scales", cols/128, rows), g,
		}
	}
}

func awqModule(rng *rand.ChaCha8, name string, rows, cols int) []safetensors.Array {
	return []safetensors.Array{
		randomArray(rng, name+".qweight", "I32", 4, cols, rows/8), randomArray(rng, name+".qzeros", "I32", 4, cols/128, rows/8),
		scaleArray(rng, name+".scales", cols/128, rows),
	}
}

func fp8Module(rng *rand.ChaCha8, name string, rows, cols int) []safetensors.Array {
	codes := randomArray(rng, name+".weight", "F8_E4M3", 1, rows, cols)
	for i := range codes.Data {
		codes.Data[i] &= 0xbf // no NaN
	}
	scale := safetensors.Float32s(name+".weight_scale_inv", []int{rows / 128, cols / 128}, make([]float32, rows*cols/128/128))
	for i := 0; i < len(scale.Data); i += 4 {
		binary.LittleEndian.PutUint32(scale.Data[i:], math.Float32bits(0.02+float32(i)/1e6))
	}
	return []safetensors.Array{codes, scale}
}

// TestSchemesAtTheLeast runs models of each layout on disk in memory and at the least budget, where all
// weights are streamed: the logits are the same bits.
func TestSchemesAtTheLeast(t *testing.T) {
	startTakes(t, 0) // else everything would fit
	gptq := map[string]any{"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": false}
	ordered := map[string]any{"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": true}
	for name, dir := range map[string]string{
		"gptq":       bigScheme(t, gptq, exchangedModule(false)),
		"gptq-order": bigScheme(t, ordered, exchangedModule(true)),
		"awq":        bigScheme(t, map[string]any{"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm"}, awqModule),
		"fp8":        bigScheme(t, map[string]any{"quant_method": "fp8", "weight_block_size": []int{128, 128}}, fp8Module),
	} {
		t.Run(name, func(t *testing.T) {
			o := ModelOptions{Context: 32, HeadRows: 16, Chunk: 4}
			want := promptLogits(t, openTest(t, dir, o))
			var small *TooSmallError
			rt, err := New(Options{Memory: 1 << 20, Threads: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer rt.Close()
			if _, err := rt.Open(context.Background(), dir, o); !errors.As(err, &small) {
				t.Fatal(err)
			}
			m := openIn(t, dir, Options{Memory: small.Least + 1<<20, Threads: 2}, o)
			if p := m.CurrentPlan(); p.Resident || p.StreamedBytes < p.PinnedBytes {
				t.Fatalf("resident: %t; %d bytes are streamed, %d pinned", p.Resident, p.StreamedBytes, p.PinnedBytes)
			}
			if got := promptLogits(t, m); !slices.Equal(got, want) {
				t.Errorf("logits differ by %.3g at the least budget", relative(got, want))
			}
			if slices.ContainsFunc(want, func(v float32) bool { return math.IsNaN(float64(v)) }) {
				t.Error("NaN")
			}
		})
	}
}
