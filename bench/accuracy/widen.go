package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/checkpoint/gguf"
	"github.com/spillway/spillway/internal/quant"
	"github.com/spillway/spillway/internal/vfs"
)

// SmolLM2-135M, and the same with widths that blocks of 256 divide: 192 more hidden values that stay 0, and a
// fourth query head for each key head that reads nothing.
const (
	hidden, wide       = 576, 768
	kvHeads, headDim   = 3, 64
	group, wideGroup   = 3, 4 // query heads of a key head
	heads              = kvHeads * wideGroup
	ffn, layers, vocab = 1536, 30, 49152
)

// A tensor of the widened model.
type tensor struct {
	name       string
	rows, cols int // rows 0: a vector
	values     []float32
}

// readWide reads SmolLM2's GGUF file and widens its tensors.
func readWide(path string) ([]tensor, map[string]any, error) {
	cat, err := checkpoint.Open(vfs.OS(), path)
	if err != nil {
		return nil, nil, err
	}
	defer cat.Close()
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	var out []tensor
	for i := range cat.Tensors {
		t := &cat.Tensors[i]
		values, err := decode(f, t)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		out = append(out, widen(t, values))
	}
	meta, err := vocabulary(cat.Meta)
	return out, meta, err
}

func decode(f io.ReaderAt, t *checkpoint.Tensor) ([]float32, error) {
	raw := make([]byte, t.Bytes)
	if _, err := f.ReadAt(raw, t.Offset); err != nil {
		return nil, err
	}
	values := make([]float32, t.Elements())
	return values, quant.DecodeRow(t.Type, values, raw)
}

// widen spreads a tensor over the wider model.
func widen(t *checkpoint.Tensor, values []float32) tensor {
	if len(t.Shape) == 1 {
		// The mean of squares is over more values: the weights of the norm take that back.
		out := make([]float32, wide)
		for i, v := range values {
			out[i] = float32(float64(v) * math.Sqrt(float64(hidden)/wide))
		}
		return tensor{name: t.Name, cols: wide, values: out}
	}
	rows, cols := spread(t.Shape[0], strings.Contains(t.Name, "attn_q.")), spread(t.Shape[1], strings.Contains(t.Name, "attn_output."))
	out := tensor{name: t.Name, rows: len(rows), cols: len(cols), values: make([]float32, len(rows)*len(cols))}
	for r, from := range rows {
		for c, col := range cols {
			if from >= 0 && col >= 0 {
				out.values[r*len(cols)+c] = values[from*t.Shape[1]+col]
			}
		}
	}
	return out
}

// spread says where each index of a widened dimension comes from; -1: it is new. Only the hidden width and
// that of all query heads, which are the same, grow.
func spread(n int, ofHeads bool) []int {
	var out []int
	switch {
	case n != hidden:
		for i := range n {
			out = append(out, i)
		}
	case !ofHeads:
		for i := range wide {
			out = append(out, map[bool]int{true: i, false: -1}[i < hidden])
		}
	default:
		for h := range heads {
			for d := range headDim {
				from := -1
				if g := h % wideGroup; g < group {
					from = (h/wideGroup*group+g)*headDim + d
				}
				out = append(out, from)
			}
		}
	}
	return out
}

// vocabulary copies what llama.cpp wants to see of a tokenizer.
func vocabulary(m checkpoint.Meta) (map[string]any, error) {
	meta := map[string]any{}
	for _, key := range []string{"tokenizer.ggml.tokens", "tokenizer.ggml.merges"} {
		var list []string
		for s, err := range m.Strings(key) {
			if err != nil {
				return nil, err
			}
			list = append(list, string(s))
		}
		meta[key] = list
	}
	var types []int32
	for n, err := range m.Ints("tokenizer.ggml.token_type") {
		if err != nil {
			return nil, err
		}
		types = append(types, int32(n))
	}
	meta["tokenizer.ggml.token_type"] = types
	meta["tokenizer.ggml.model"], meta["tokenizer.ggml.pre"] = "gpt2", "smollm"
	meta["tokenizer.ggml.bos_token_id"], meta["tokenizer.ggml.eos_token_id"] = uint32(1), uint32(2)
	return meta, nil
}

// write makes a GGUF file with all matrices in one format.
func write(path string, t quant.Type, tensors []tensor, meta map[string]any) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	b := bufio.NewWriterSize(f, 1<<20)
	w := gguf.NewWriter(b)
	if err := describe(w, meta); err != nil {
		return err
	}
	for _, x := range tensors {
		if x.rows == 0 {
			err = w.Add(x.name, quant.F32, x.cols)
		} else {
			err = w.Add(x.name, t, x.rows, x.cols)
		}
		if err != nil {
			return err
		}
	}
	if err := w.Begin(); err != nil {
		return err
	}
	for _, x := range tensors {
		if err := encode(w, t, x); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return b.Flush()
}

func describe(w *gguf.Writer, meta map[string]any) error {
	all := map[string]any{
		"general.architecture": "llama", "general.name": "SmolLM2 135M, widened",
		"llama.block_count": uint32(layers), "llama.context_length": uint32(8192), "llama.embedding_length": uint32(wide),
		"llama.feed_forward_length": uint32(ffn), "llama.attention.head_count": uint32(heads), "llama.attention.head_count_kv": uint32(kvHeads),
		"llama.attention.key_length": uint32(headDim), "llama.attention.value_length": uint32(headDim),
		"llama.rope.freq_base": float32(1e5), "llama.rope.dimension_count": uint32(headDim), "llama.vocab_size": uint32(vocab),
		"llama.attention.layer_norm_rms_epsilon": float32(1e-5 * hidden / wide),
	}
	for k, v := range meta {
		all[k] = v
	}
	keys := make([]string, 0, len(all))
	for k := range all {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if err := w.Set(k, all[k]); err != nil {
			return err
		}
	}
	return nil
}

func encode(w *gguf.Writer, t quant.Type, x tensor) error {
	rows := max(x.rows, 1)
	if x.rows == 0 {
		t = quant.F32
	}
	row := make([]byte, t.RowBytes(x.cols))
	for r := range rows {
		if err := quant.EncodeRow(t, row, x.values[r*x.cols:][:x.cols]); err != nil {
			return fmt.Errorf("%s as %v: %w", x.name, t, err)
		}
		if _, err := w.Write(row); err != nil {
			return err
		}
	}
	return nil
}
