package nn_test

import (
	"math"

	"github.com/spillway/spillway/internal/nn"
	"github.com/spillway/spillway/internal/nn/nntest"
)

// reference computes a decoder in float64, as plainly as it can be written.
type reference struct {
	d nn.Decoder
	w *nntest.Weights
	// sees says whether a row attends to a key; angle is that of the i-th rotated pair of a row.
	sees  func(row, key int) bool
	angle func(row, i int) float64
}

// causal is the usual mask.
func causal(row, key int) bool { return key <= row }

// plain is rotation by the row's own position.
func plain(d nn.Decoder) func(row, i int) float64 {
	rope := d.Blocks[0].Mixer.Rope
	return func(row, i int) float64 { return float64(row) * frequency(rope, i) }
}

func frequency(r *nn.Rope, i int) float64 { return math.Pow(r.Base, -2*float64(i)/float64(r.Dim)) }

// embeddings looks up the rows of ids.
func (r reference) embeddings(ids []int32) []float32 {
	var x []float32
	for _, id := range ids {
		x = append(x, r.w.Values[nntest.Key(-1, "embed.weight")][int(id)*r.d.Hidden:][:r.d.Hidden]...)
	}
	return x
}

// logits runs rows of embeddings and returns all logits, row by row.
func (r reference) logits(embeds []float32) []float32 {
	var x [][]float64
	for at := 0; at < len(embeds); at += r.d.Hidden {
		x = append(x, widen(embeds[at:][:r.d.Hidden]))
	}
	for i, b := range r.d.Blocks {
		r.attention(i, b, x)
		for _, row := range x {
			h := r.norm(i, "ffn_norm", b.FFNNorm, row)
			gate, up := r.product(i, "ffn.gate", h), r.product(i, "ffn.up", h)
			for j, g := range gate {
				gate[j] = g / (1 + math.Exp(-g)) * up[j]
			}
			addTo(row, r.product(i, "ffn.down", gate))
		}
	}
	var out []float32
	for _, row := range x {
		for _, v := range r.product(-1, "head", r.norm(-1, "final_norm", r.d.Norm, row)) {
			out = append(out, float32(v))
		}
	}
	return out
}

func (r reference) attention(layer int, b nn.Block, x [][]float64) {
	a := b.Mixer
	q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x))
	for i, row := range x {
		h := r.norm(layer, "attn_norm", b.Norm, row)
		q[i], k[i], v[i] = r.product(layer, "attn.q", h), r.product(layer, "attn.k", h), r.product(layer, "attn.v", h)
		r.rotate(a, i, q[i])
		r.rotate(a, i, k[i])
	}
	for i := range x {
		out := make([]float64, a.Heads*a.HeadDim)
		for head := range a.Heads {
			shared := head / (a.Heads / a.KVHeads) * a.HeadDim
			r.attend(out[head*a.HeadDim:][:a.HeadDim], i, q[i][head*a.HeadDim:], k, v, shared, a.HeadDim)
		}
		addTo(x[i], r.product(layer, "attn.o", out))
	}
}

// attend is one head of one row: softmax(q·k/√d)·v.
func (r reference) attend(out []float64, row int, q []float64, k, v [][]float64, at, dim int) {
	sum := 0.0
	for key := range k {
		if !r.sees(row, key) {
			continue
		}
		score := 0.0
		for j := range dim {
			score += q[j] * k[key][at+j]
		}
		p := math.Exp(score / math.Sqrt(float64(dim)))
		sum += p
		for j := range dim {
			out[j] += p * v[key][at+j]
		}
	}
	for j := range out {
		out[j] /= sum
	}
}

func (r reference) rotate(a nn.Attention, row int, x []float64) {
	if a.Rope == nil {
		return
	}
	half := a.Rope.Dim / 2
	for at := 0; at < len(x); at += a.HeadDim {
		for i := range half {
			s, c := math.Sincos(r.angle(row, i))
			lo, hi := x[at+i], x[at+i+half]
			x[at+i], x[at+i+half] = lo*c-hi*s, hi*c+lo*s
		}
	}
}

func (r reference) norm(layer int, role string, d nn.RMS, x []float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	f := 1 / math.Sqrt(sum/float64(len(x))+float64(d.Eps))
	out := make([]float64, len(x))
	for i, w := range r.w.Values[nntest.Key(layer, role+".weight")] {
		out[i] = x[i] * f * float64(w)
	}
	return out
}

func (r reference) product(layer int, role string, x []float64) []float64 {
	w := r.w.Values[nntest.Key(layer, role+".weight")]
	out := make([]float64, len(w)/len(x))
	for i := range out {
		for j, v := range x {
			out[i] += float64(w[i*len(x)+j]) * v
		}
	}
	return out
}

func addTo(x, y []float64) {
	for i, v := range y {
		x[i] += v
	}
}

func widen(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}
