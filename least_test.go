package spillway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/checkpoint/gguf"
	"github.com/spillway/spillway/internal/machine"
	"github.com/spillway/spillway/internal/quant"
)

// llamaShape is the geometry of a llama whose file a test makes; with experts it is a mixture that uses two of them.
type llamaShape struct{ layers, hidden, heads, kvHeads, headDim, ffn, experts int }

const (
	vocab32k = 32000
	// programAlone is the most that the runtime pool of the program takes for such a model; captest runs
	// the program itself.
	programAlone = 20 * machine.MiB
)

// TestLeastOfLargeModels checks that the least memory depends neither on the size of the model nor on
// its largest tensor. The files have headers and vocabularies; the weights are holes.
func TestLeastOfLargeModels(t *testing.T) {
	for _, c := range []struct {
		name  string
		shape llamaShape
		most  int64 // besides the cache
	}{
		{"1.1B", llamaShape{22, 2048, 32, 4, 64, 5632, 0}, 64 * machine.MiB},
		{"7B", llamaShape{32, 4096, 32, 32, 128, 11008, 0}, 160 * machine.MiB},
		{"47B of Mixtral's shape, 93 GB", llamaShape{32, 4096, 32, 8, 128, 14336, 8}, 160 * machine.MiB},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.gguf")
			c.shape.write(t, path)
			rt, err := New(Options{Memory: 1, Threads: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer rt.Close()
			var small *TooSmallError
			if _, err := rt.Open(context.Background(), path, ModelOptions{Context: 512}); !errors.As(err, &small) {
				t.Fatalf("a budget of one byte: %v", err)
			}
			cache := int64(2*2*512) * int64(c.shape.layers*c.shape.kvHeads*c.shape.headDim)
			// What this test program takes for itself does not count; the real one stays below programAlone.
			least := small.Least - small.Pools[budget.Runtime] + programAlone
			t.Logf("least %s, of it %s for the cache", machine.FormatSize(least), machine.FormatSize(cache))
			if least > c.most+cache {
				t.Errorf("the least is %s, at most %s are to do", machine.FormatSize(least), machine.FormatSize(c.most+cache))
			}
		})
	}
}

// write makes a sparse file.
func (s llamaShape) write(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := gguf.NewWriter(f)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tokens, merges := s.vocabulary()
	for _, kv := range []struct {
		key   string
		value any
	}{
		{"general.architecture", "llama"}, {"llama.block_count", uint32(s.layers)}, {"llama.context_length", uint32(4096)},
		{"llama.embedding_length", uint32(s.hidden)}, {"llama.feed_forward_length", uint32(s.ffn)},
		{"llama.attention.head_count", uint32(s.heads)}, {"llama.attention.head_count_kv", uint32(s.kvHeads)},
		{"llama.attention.layer_norm_rms_epsilon", float32(1e-5)},
		{"tokenizer.ggml.model", "gpt2"}, {"tokenizer.ggml.pre", "llama-bpe"},
		{"tokenizer.ggml.tokens", tokens}, {"tokenizer.ggml.merges", merges},
	} {
		must(w.Set(kv.key, kv.value))
	}
	if s.experts > 0 {
		must(w.Set("llama.expert_count", uint32(s.experts)))
		must(w.Set("llama.expert_used_count", uint32(2)))
	}
	var bytes int64
	add := func(name string, typ quant.Type, shape ...int) {
		must(w.Add(name, typ, shape...))
		n := int64(typ.BlockBytes())
		for _, d := range shape {
			n *= int64(d)
		}
		bytes += (n + 31) &^ 31
	}
	add("token_embd.weight", quant.F16, vocab32k, s.hidden)
	for i := range s.layers {
		for _, m := range s.matrices() {
			add(fmt.Sprintf("blk.%d.%s.weight", i, m.name), quant.F16, m.shape...)
		}
		add(fmt.Sprintf("blk.%d.attn_norm.weight", i), quant.F32, s.hidden)
		add(fmt.Sprintf("blk.%d.ffn_norm.weight", i), quant.F32, s.hidden)
	}
	add("output_norm.weight", quant.F32, s.hidden)
	add("output.weight", quant.F16, vocab32k, s.hidden)
	must(w.Begin())
	_, err = w.Write(make([]byte, 64<<10)) // more than the writer holds back: the header is out
	must(err)
	info, err := f.Stat()
	must(err)
	must(f.Truncate((info.Size()+31)&^31 + bytes))
}

type sparseMatrix struct {
	name  string
	shape []int
}

// matrices are those of a layer.
func (s llamaShape) matrices() []sparseMatrix {
	all := []sparseMatrix{
		{"attn_q", []int{s.heads * s.headDim, s.hidden}}, {"attn_k", []int{s.kvHeads * s.headDim, s.hidden}},
		{"attn_v", []int{s.kvHeads * s.headDim, s.hidden}}, {"attn_output", []int{s.hidden, s.heads * s.headDim}},
	}
	if s.experts > 0 {
		return append(all, sparseMatrix{"ffn_gate_inp", []int{s.experts, s.hidden}}, sparseMatrix{"ffn_gate_exps", []int{s.experts, s.ffn, s.hidden}},
			sparseMatrix{"ffn_up_exps", []int{s.experts, s.ffn, s.hidden}}, sparseMatrix{"ffn_down_exps", []int{s.experts, s.hidden, s.ffn}})
	}
	return append(all, sparseMatrix{"ffn_gate", []int{s.ffn, s.hidden}}, sparseMatrix{"ffn_up", []int{s.ffn, s.hidden}}, sparseMatrix{"ffn_down", []int{s.hidden, s.ffn}})
}

// vocabulary is 256 bytes and words of two to four letters, each merged from two shorter ones.
func (llamaShape) vocabulary() (tokens, merges []string) {
	for b := range 256 {
		r := rune(b)
		if b <= 0x20 || b >= 0x7f && b <= 0xa0 || b == 0xad {
			r = rune(0x100 + len(tokens)) // any letter that is not taken; the bytes themselves do not matter here
		}
		tokens = append(tokens, string(r))
	}
	letters := "abcdefghijklmnopqrstuvwxyz"
	grow := func(words []string) (longer []string) {
		for _, w := range words {
			for _, l := range letters {
				if len(tokens) == vocab32k {
					return longer
				}
				tokens, merges = append(tokens, w+string(l)), append(merges, w+" "+string(l))
				longer = append(longer, w+string(l))
			}
		}
		return longer
	}
	words := grow(grow(grow([]string{"a", "b", "c"})))
	for len(tokens) < vocab32k {
		words = grow(words)
	}
	return tokens, merges
}
