package synth

import (
	"fmt"

	"github.com/spillway/spillway/internal/quant"
)

// A role says what a tensor is, for the rules of the mixes and for its statistics.
type role uint8

const (
	embedding role = iota
	output
	norm
	bias
	attnQ
	attnK
	attnV
	attnOut
	ffnGate
	ffnUp
	ffnDown
	router
)

// A tensor of rows × cols values; a vector has one row.
type tensor struct {
	gguf, hf string // names
	role     role
	layer    int
	rows     int
	cols     int
	typ      quant.Type
	replaced bool // typ is not what was asked for, whose blocks do not divide the row
	// heads is not 0 if the file wants the rows of each head in the order of interleaved rotation.
	heads int
	// experts is not 0 for a stack: rows are those of all experts, the experts one after the other.
	experts int
	// one is the expert whose rows a tensor holds, plus 1, and stack the name of the stack of all; 0 and empty for
	// others.
	one   int
	stack string
	// skew is not nil where routing is to be uneven.
	skew *skewing
	// routed says that it is the embedding of a model with experts.
	routed bool
}

func (t *tensor) rowBytes() int { return t.typ.RowBytes(t.cols) }
func (t *tensor) bytes() int64  { return int64(t.rows) * int64(t.rowBytes()) }
func (t *tensor) vector() bool  { return t.role == norm || t.role == bias }

// dims is the tensor's shape, outermost first.
func (t *tensor) dims() []int {
	switch {
	case t.experts > 0 && t.vector():
		return []int{t.experts, t.cols}
	case t.vector():
		return []int{t.cols}
	case t.experts > 0:
		return []int{t.experts, t.rows / t.experts, t.cols}
	}
	return []int{t.rows, t.cols}
}

// origin is the tensor, by its name in Hugging Face, and the row in it that row of this one is drawn as.
func (t *tensor) origin(row int) (name string, at int) {
	if t.one > 0 {
		return t.stack, (t.one-1)*t.rows + row
	}
	if t.stack != "" {
		return t.stack, row
	}
	return t.hf, t.source(row)
}

// source returns the row of the Hugging Face tensor that row of the file's tensor holds.
func (t *tensor) source(row int) int {
	if t.heads == 0 {
		return row
	}
	dim := t.rows / t.heads
	head, r := row/dim, row%dim
	return head*dim + r%2*(dim/2) + r/2
}

// tensors lists the tensors of a GGUF file, or of a folder, in the order of the file, without types.
func (s *Shape) tensors(folder bool) []tensor {
	q, kv := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	list := []tensor{{gguf: "token_embd.weight", hf: "model.embed_tokens.weight", role: embedding, rows: s.Vocab, cols: s.Hidden, routed: s.Mixture != nil}}
	for i := range s.Layers {
		add := func(gguf, hf string, r role, rows, cols int) {
			list = append(list, tensor{
				gguf: fmt.Sprintf("blk.%d.%s", i, gguf), hf: fmt.Sprintf("model.layers.%d.%s", i, hf),
				role: r, layer: i, rows: rows, cols: cols,
			})
		}
		add("attn_norm.weight", "input_layernorm.weight", norm, 1, s.Hidden)
		add("attn_q.weight", "self_attn.q_proj.weight", attnQ, q, s.Hidden)
		add("attn_k.weight", "self_attn.k_proj.weight", attnK, kv, s.Hidden)
		add("attn_v.weight", "self_attn.v_proj.weight", attnV, kv, s.Hidden)
		if s.qkvBias {
			add("attn_q.bias", "self_attn.q_proj.bias", bias, 1, q)
			add("attn_k.bias", "self_attn.k_proj.bias", bias, 1, kv)
			add("attn_v.bias", "self_attn.v_proj.bias", bias, 1, kv)
		}
		if s.qkNorm {
			heads, kvHeads := 1, 1
			if s.normWhole {
				heads, kvHeads = s.Heads, s.KVHeads
			}
			add("attn_q_norm.weight", "self_attn.q_norm.weight", norm, 1, heads*s.HeadDim)
			add("attn_k_norm.weight", "self_attn.k_norm.weight", norm, 1, kvHeads*s.HeadDim)
		}
		add("attn_output.weight", "self_attn.o_proj.weight", attnOut, s.Hidden, q)
		ffnNorm := "ffn_norm.weight"
		if s.oss {
			add("attn_output.bias", "self_attn.o_proj.bias", bias, 1, s.Hidden)
			add("attn_sinks.weight", "self_attn.sinks", bias, 1, s.Heads)
			ffnNorm = "post_attention_norm.weight"
		}
		add(ffnNorm, "post_attention_layernorm.weight", norm, 1, s.Hidden)
		if s.Mixture != nil {
			list = append(list, s.mixture(i, folder)...)
			continue
		}
		add("ffn_gate.weight", "mlp.gate_proj.weight", ffnGate, s.FFN, s.Hidden)
		add("ffn_up.weight", "mlp.up_proj.weight", ffnUp, s.FFN, s.Hidden)
		add("ffn_down.weight", "mlp.down_proj.weight", ffnDown, s.Hidden, s.FFN)
	}
	list = append(list, tensor{gguf: "output_norm.weight", hf: "model.norm.weight", role: norm, rows: 1, cols: s.Hidden})
	if !s.Tied {
		list = append(list, tensor{gguf: "output.weight", hf: "lm_head.weight", role: output, rows: s.Vocab, cols: s.Hidden})
	}
	return list
}

// permute marks the tensors whose rows GGUF files of this family hold in another order.
func (s *Shape) permute(list []tensor) {
	if !s.permuted {
		return
	}
	for i := range list {
		switch list[i].role {
		case attnQ:
			list[i].heads = s.Heads
		case attnK:
			list[i].heads = s.KVHeads
		}
	}
}
