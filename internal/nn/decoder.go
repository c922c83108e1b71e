// Package nn holds the kinds of layers that models are made of. A family describes its layers with
// the types of this package; Bind finds their weights and gives the model as plain data
// (layout.Model) and as code that runs batches of token rows (Model.Forward).
package nn

import (
	"fmt"

	"github.com/spillway/spillway/internal/layout"
)

// Decoder describes a causal language model.
type Decoder struct {
	Family  string
	Hidden  int // width of the residual stream
	Vocab   int
	Context int // trained limit in tokens
	Embed   Embedding
	Blocks  []Block
	Norm    RMS
	Head    Head
	Pooling Pooling
}

// Embedding describes the token embedding: role "embed", [Vocab × Hidden].
type Embedding struct{}

// Head describes the output projection: role "head", [Vocab × Hidden]; tied to the embedding if Tied.
// An embedding model has no head: None.
type Head struct{ Tied, None bool }

// Pooling says how an embedding model makes one vector of its hidden states.
type Pooling uint8

// Ways of pooling.
const (
	PoolNone Pooling = iota // not an embedding model
	PoolLast                // the last token's hidden state, scaled to length 1
	PoolMean                // the mean of all hidden states, scaled to length 1
)

// Block describes one layer: x += Mixer(Norm(x)); x += FFN(FFNNorm(x)).
type Block struct {
	Norm    RMS
	Mixer   Attention
	FFNNorm RMS
	FFN     FeedForward
}

// FeedForward describes the second half of a layer: GatedMLP or MoE.
type FeedForward interface {
	bind(b *binder, hidden int) (feedForward, error)
}

// feedForward is a bound FeedForward.
type feedForward interface {
	scratch(s *sizes, n int)
	forward(r *run, dst, x []float32) error
}

// RMS describes a root-mean-square norm with a weight.
type RMS struct{ Eps float32 }

// Repeat builds n blocks.
func Repeat(n int, f func(i int) Block) []Block {
	blocks := make([]Block, n)
	for i := range blocks {
		blocks[i] = f(i)
	}
	return blocks
}

// Source finds weights by layer and role, such as (3, "attn.q.weight"). Layer −1 is outside the
// layers. A missing weight is reported by ok = false; a weight of the wrong shape is an error.
type Source interface {
	Matrix(layer int, role string, rows, cols int) (m *layout.Matrix, ok bool, err error)
	Vector(layer int, role string, n int) (v *layout.Vector, ok bool, err error)
	// Stack finds a matrix of every expert of a layer, such as "ffn.experts.down". The biases of all of
	// them are one vector, the experts one after the other.
	Stack(layer int, role string, experts, rows, cols int) (s *layout.Stack, ok bool, err error)
}

// binder collects the weights of a model in the order of a sweep.
type binder struct {
	src    Source
	layer  int
	model  *layout.Model
	bundle *layout.Bundle
	cache  []CacheLayer
}

func (b *binder) begin(name string, kind layout.Kind) {
	b.model.Bundles = append(b.model.Bundles, layout.Bundle{Name: name, Kind: kind, Layer: b.layer})
	b.bundle = &b.model.Bundles[len(b.model.Bundles)-1]
}

func (b *binder) where(role string) string {
	if b.layer < 0 {
		return role
	}
	return fmt.Sprintf("layer %d: %s", b.layer, role)
}

// matrix adds a required matrix to the current bundle.
func (b *binder) matrix(role string, rows, cols int) (*layout.Matrix, error) {
	m, ok, err := b.src.Matrix(b.layer, role, rows, cols)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, &MissingError{Weight: b.where(role)}
	}
	b.add(m)
	return m, nil
}

func (b *binder) add(m *layout.Matrix) {
	m.ID = len(b.model.Matrices)
	b.model.Matrices = append(b.model.Matrices, m)
	b.bundle.Matrices = append(b.bundle.Matrices, m)
	if m.Order != nil {
		m.Order.ID = len(b.model.Vectors)
		b.model.Vectors = append(b.model.Vectors, m.Order)
	}
	b.model.MaxCols = max(b.model.MaxCols, m.Cols)
	b.model.Parameters += int64(m.Rows) * int64(m.Cols)
	if b.bundle.Kind != layout.Embedding {
		b.model.FlopsPerToken += 2 * int64(m.Rows) * int64(m.Cols)
	}
	if b.bundle.Kind == layout.Attention || b.bundle.Kind == layout.FeedForward {
		b.model.MaxRows = max(b.model.MaxRows, m.Rows)
	}
}

// optional returns a vector, or nil if the checkpoint has none of that role.
func (b *binder) optional(role string, n int) (*layout.Vector, error) {
	v, ok, err := b.src.Vector(b.layer, role, n)
	if err != nil || !ok {
		return nil, err
	}
	v.ID = len(b.model.Vectors)
	b.model.Vectors = append(b.model.Vectors, v)
	b.model.Parameters += int64(v.Len)
	return v, nil
}

// vector returns a required vector.
func (b *binder) vector(role string, n int) (*layout.Vector, error) {
	v, err := b.optional(role, n)
	if err == nil && v == nil {
		err = &MissingError{Weight: b.where(role)}
	}
	return v, err
}

// linear is a matrix with an optional bias.
type linear struct {
	m    *layout.Matrix
	bias *layout.Vector
}

func (b *binder) linear(role string, rows, cols int) (linear, error) {
	m, err := b.matrix(role+".weight", rows, cols)
	if err != nil {
		return linear{}, err
	}
	bias, err := b.optional(role+".bias", rows)
	return linear{m, bias}, err
}

// norm is a bound RMS norm.
type norm struct {
	weight *layout.Vector
	eps    float32
}

func (b *binder) norm(role string, d RMS, n int) (norm, error) {
	v, err := b.vector(role+".weight", n)
	return norm{v, d.Eps}, err
}

// MissingError says that a checkpoint lacks a weight that its family needs.
type MissingError struct{ Weight string }

func (e *MissingError) Error() string { return "the checkpoint has no weight for " + e.Weight }

// Model is a decoder whose weights are found. It holds no weights itself.
type Model struct {
	Layout *layout.Model
	Cache  []CacheLayer // what each layer keeps per token
	desc   Decoder
	embed  *layout.Matrix
	blocks []block
	norm   norm
	head   *layout.Matrix // nil for embedding models
	ropes  []*Rope        // every rotation that a layer uses, once
}

type block struct {
	norm    norm
	mixer   *attention
	ffnNorm norm
	ffn     feedForward
}

// Pooling is how an embedding model pools; PoolNone for language models.
func (m *Model) Pooling() Pooling { return m.desc.Pooling }

// Bind finds the weights of d in src.
func Bind(d Decoder, src Source) (*Model, error) {
	lm := &layout.Model{Family: d.Family, Layers: len(d.Blocks), Hidden: d.Hidden, Vocab: d.Vocab, Context: d.Context}
	b := &binder{src: src, layer: -1, model: lm}
	m := &Model{Layout: lm, desc: d}
	var err error
	b.begin("embedding", layout.Embedding)
	if m.embed, err = b.matrix("embed.weight", d.Vocab, d.Hidden); err != nil {
		return nil, err
	}
	for i, desc := range d.Blocks {
		b.layer = i
		blk, err := bindBlock(b, desc, d.Hidden)
		if err != nil {
			return nil, err
		}
		m.blocks = append(m.blocks, blk)
	}
	b.layer = -1
	if m.norm, err = b.norm("final_norm", d.Norm, d.Hidden); err != nil {
		return nil, err
	}
	if err := m.bindHead(b); err != nil {
		return nil, err
	}
	m.Cache = b.cache
	for _, c := range m.Cache {
		lm.KVValuesPerToken += int64(c.KVHeads) * int64(c.KDim+c.VDim)
	}
	return m, m.bindRopes(b)
}

func (m *Model) bindHead(b *binder) (err error) {
	d := m.desc
	if d.Head.None {
		return nil
	}
	b.begin("head", layout.Head)
	if !d.Head.Tied {
		m.head, err = b.matrix("head.weight", d.Vocab, d.Hidden)
		return err
	}
	m.head = m.embed
	b.bundle.Matrices = append(b.bundle.Matrices, m.embed)
	b.model.FlopsPerToken += 2 * int64(d.Vocab) * int64(d.Hidden)
	return nil
}

func bindBlock(b *binder, d Block, hidden int) (block, error) {
	var blk block
	var err error
	b.begin(fmt.Sprintf("layer.%d.attn", b.layer), layout.Attention)
	if blk.norm, err = b.norm("attn_norm", d.Norm, hidden); err != nil {
		return blk, err
	}
	if blk.mixer, err = d.Mixer.bind(b, hidden); err != nil {
		return blk, err
	}
	b.begin(fmt.Sprintf("layer.%d.ffn", b.layer), layout.FeedForward)
	if blk.ffnNorm, err = b.norm("ffn_norm", d.FFNNorm, hidden); err != nil {
		return blk, err
	}
	blk.ffn, err = d.FFN.bind(b, hidden)
	return blk, err
}
