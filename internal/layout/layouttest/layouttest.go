// Package layouttest makes models without files, for tests.
package layouttest

import (
	"fmt"
	"math/rand/v2"

	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/quant"
	"pgregory.net/rapid"
)

// Shape is a llama-like model.
type Shape struct {
	Layers, Hidden, FFN, KVDim, Vocab int
	Type                              quant.Type
	Tied                              bool
}

// Shapes that tests plan for.
var (
	SmolLM2   = Shape{Layers: 30, Hidden: 576, FFN: 1536, KVDim: 192, Vocab: 49152, Type: quant.Q4_1, Tied: true}
	TinyLlama = Shape{Layers: 22, Hidden: 2048, FFN: 5632, KVDim: 256, Vocab: 32000, Type: quant.F16}
	Llama7B   = Shape{Layers: 32, Hidden: 4096, FFN: 11008, KVDim: 4096, Vocab: 32000, Type: quant.F16}
)

// builder lays tensors out in a file as they are added.
type builder struct {
	m   *layout.Model
	end []int64 // of each file
}

func (b *builder) place(file int, n, align int64) int64 {
	for len(b.end) <= file {
		b.end = append(b.end, 1000)
	}
	at := (b.end[file] + align - 1) / align * align
	b.end[file] = at + n
	return at
}

func (b *builder) matrix(name string, t quant.Type, rows, cols int) *layout.Matrix {
	x := &layout.Matrix{Name: name, Type: t, Rows: rows, Cols: cols, ID: len(b.m.Matrices)}
	b.m.Matrices = append(b.m.Matrices, x)
	return x
}

// Model lays the shape out in one file in the order of llama.cpp's converter.
func (s Shape) Model() *layout.Model {
	b := &builder{m: &layout.Model{Family: "llama", Layers: s.Layers, Hidden: s.Hidden, Vocab: s.Vocab}}
	put := func(x *layout.Matrix) *layout.Matrix { x.Offset = b.place(0, x.Bytes(), 32); return x }
	norm := func(name string) {
		v := &layout.Vector{Name: name, Type: quant.F32, Len: s.Hidden, ID: len(b.m.Vectors)}
		v.Offset = b.place(0, int64(4*v.Len), 32)
		b.m.Vectors = append(b.m.Vectors, v)
	}
	var head *layout.Matrix
	if !s.Tied {
		head = put(b.matrix("output.weight", s.Type, s.Vocab, s.Hidden))
	}
	embed := put(b.matrix("token_embd.weight", s.Type, s.Vocab, s.Hidden))
	if s.Tied {
		head = embed
	}
	b.m.Bundles = append(b.m.Bundles, layout.Bundle{Name: "embed", Kind: layout.Embedding, Layer: -1, Matrices: []*layout.Matrix{embed}})
	for i := range s.Layers {
		mk := func(name string, rows, cols int) *layout.Matrix {
			return put(b.matrix(fmt.Sprintf("blk.%d.%s.weight", i, name), s.Type, rows, cols))
		}
		norm(fmt.Sprintf("blk.%d.attn_norm", i))
		down, gate, up := mk("ffn_down", s.Hidden, s.FFN), mk("ffn_gate", s.FFN, s.Hidden), mk("ffn_up", s.FFN, s.Hidden)
		norm(fmt.Sprintf("blk.%d.ffn_norm", i))
		k, o := mk("attn_k", s.KVDim, s.Hidden), mk("attn_output", s.Hidden, s.Hidden)
		q, v := mk("attn_q", s.Hidden, s.Hidden), mk("attn_v", s.KVDim, s.Hidden)
		b.m.Bundles = append(b.m.Bundles,
			layout.Bundle{Name: fmt.Sprintf("layer.%d.attn", i), Kind: layout.Attention, Layer: i, Matrices: []*layout.Matrix{q, k, v, o}},
			layout.Bundle{Name: fmt.Sprintf("layer.%d.ffn", i), Kind: layout.FeedForward, Layer: i, Matrices: []*layout.Matrix{gate, up, down}})
	}
	norm("output_norm")
	b.m.Bundles = append(b.m.Bundles, layout.Bundle{Name: "head", Kind: layout.Head, Layer: -1, Matrices: []*layout.Matrix{head}})
	b.m.KVValuesPerToken = int64(2 * s.Layers * s.KVDim)
	b.m.MaxCols, b.m.MaxRows = max(s.FFN, s.Hidden), max(s.FFN, s.Hidden)
	b.m.ScratchPerRow = int64(4 * (4*s.Hidden + 3*s.FFN))
	b.m.ScratchPerHeadRow = int64(4 * s.Vocab)
	for _, x := range b.m.Sweep() {
		b.m.FlopsPerToken += 2 * int64(x.Rows) * int64(x.Cols)
		b.m.Parameters += int64(x.Rows) * int64(x.Cols)
	}
	return b.m
}

// DrawExperts adds experts to a model: to some of its layers, or to all, of any formats and sizes, their matrices
// together or apart.
func DrawExperts(t *rapid.T, m *layout.Model) {
	m.Layers = max(m.Layers, 1)
	b := &builder{m: m, end: FileBytes(m)}
	count := rapid.IntRange(1, 9).Draw(t, "experts")
	used := rapid.IntRange(1, count).Draw(t, "used")
	for i := range m.Layers {
		if len(m.Experts) > 0 && rapid.IntRange(0, 3).Draw(t, "dense") == 0 {
			continue
		}
		l := layout.ExpertLayer{Layer: i, Used: used}
		for k := range rapid.IntRange(2, layout.MaxStacks).Draw(t, "stacks") {
			l.Stacks = append(l.Stacks, layout.Stack{
				Name: fmt.Sprintf("blk.%d.%d.experts", i, k), Type: rapid.SampledFrom(types).Draw(t, "type"),
				Rows: rapid.IntRange(1, 150).Draw(t, "rows"), Cols: 256 * rapid.IntRange(1, 2).Draw(t, "cols"), At: make([]layout.Place, count),
			})
		}
		b.scatterExperts(t, &l)
		m.Experts = append(m.Experts, l)
	}
}

// scatterExperts gives experts places: stack by stack, or expert by expert.
func (b *builder) scatterExperts(t *rapid.T, l *layout.ExpertLayer) {
	files := max(len(b.end), 1)
	align := rapid.SampledFrom([]int64{1, 32, 4096}).Draw(t, "expert alignment")
	put := func(stack, expert, file int) {
		l.Stacks[stack].At[expert] = layout.Place{File: int32(file), Offset: b.place(file, l.Stacks[stack].Bytes(), align)}
	}
	if rapid.Bool().Draw(t, "stacked") {
		for k := range l.Stacks {
			file := rapid.IntRange(0, files-1).Draw(t, "file")
			for e := range l.Count() {
				put(k, e, file)
			}
		}
		return
	}
	for e := range l.Count() {
		for k := range l.Stacks {
			put((k+e)%len(l.Stacks), e, e%files)
		}
	}
}

// FileBytes is the length that each file of a model needs.
func FileBytes(m *layout.Model) []int64 {
	var end []int64
	grow := func(file int, to int64) {
		for len(end) <= file {
			end = append(end, 0)
		}
		end[file] = max(end[file], to)
	}
	for _, x := range m.Matrices {
		grow(x.File, x.Offset+x.Bytes())
	}
	for _, v := range m.Vectors {
		grow(v.File, v.Offset+int64(v.Type.RowBytes(v.Len)))
	}
	for i := range m.Experts {
		for k := range m.Experts[i].Stacks {
			x := &m.Experts[i].Stacks[k]
			for _, at := range x.At {
				grow(int(at.File), at.Offset+x.Bytes())
			}
		}
	}
	return end
}

var types = []quant.Type{quant.F32, quant.F16, quant.Q4_0, quant.Q8_0, quant.Q4_K, quant.Q6_K}

// Draw makes a small random model: any sizes and formats, one to three files, the tensors in any
// order in them.
func Draw(t *rapid.T) *layout.Model {
	b := &builder{m: &layout.Model{Family: "random", Layers: rapid.IntRange(0, 6).Draw(t, "layers")}}
	m := b.m
	m.Hidden = 256
	mk := func(name string) *layout.Matrix {
		return b.matrix(name, rapid.SampledFrom(types).Draw(t, "type"),
			rapid.IntRange(1, 700).Draw(t, "rows"), 256*rapid.IntRange(1, 3).Draw(t, "cols"))
	}
	embed := mk("embed")
	m.Bundles = append(m.Bundles, layout.Bundle{Name: "embed", Kind: layout.Embedding, Layer: -1, Matrices: []*layout.Matrix{embed}})
	bundle := func(name string, kind layout.Kind, layer int) {
		x := layout.Bundle{Name: name, Kind: kind, Layer: layer}
		for i := range rapid.IntRange(1, 4).Draw(t, "matrices") {
			x.Matrices = append(x.Matrices, mk(fmt.Sprintf("%s.%d", name, i)))
		}
		m.Bundles = append(m.Bundles, x)
	}
	for i := range m.Layers {
		bundle(fmt.Sprintf("layer.%d.attn", i), layout.Attention, i)
		bundle(fmt.Sprintf("layer.%d.ffn", i), layout.FeedForward, i)
	}
	head := embed
	if !rapid.Bool().Draw(t, "tied") {
		head = mk("head")
	}
	m.Bundles = append(m.Bundles, layout.Bundle{Name: "head", Kind: layout.Head, Layer: -1, Matrices: []*layout.Matrix{head}})
	for i := range rapid.IntRange(0, 5).Draw(t, "vectors") {
		m.Vectors = append(m.Vectors, &layout.Vector{Name: fmt.Sprintf("norm.%d", i), Type: quant.F32,
			Len: rapid.IntRange(1, 9000).Draw(t, "values"), ID: i})
	}
	b.scatter(t)
	m.FlopsPerToken = 1000
	m.ScratchPerRow = int64(rapid.IntRange(0, 20000).Draw(t, "scratch"))
	m.ScratchPerHeadRow = int64(rapid.IntRange(0, 20000).Draw(t, "head scratch"))
	return m
}

// scatter gives every tensor a place: in order, reversed or at random.
func (b *builder) scatter(t *rapid.T) {
	files := rapid.IntRange(1, 3).Draw(t, "files")
	align := rapid.SampledFrom([]int64{1, 32, 4096}).Draw(t, "tensor alignment")
	order := make([]int, len(b.m.Matrices)+len(b.m.Vectors))
	for i := range order {
		order[i] = i
	}
	switch rapid.IntRange(0, 2).Draw(t, "order") {
	case 1:
		for i := range len(order) / 2 {
			order[i], order[len(order)-1-i] = order[len(order)-1-i], order[i]
		}
	case 2:
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "shuffle"), 0))
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	for n, i := range order {
		file := n * files / len(order)
		if i < len(b.m.Matrices) {
			x := b.m.Matrices[i]
			x.File, x.Offset = file, b.place(file, x.Bytes(), align)
			continue
		}
		v := b.m.Vectors[i-len(b.m.Matrices)]
		v.File, v.Offset = file, b.place(file, int64(4*v.Len), align)
	}
}

// SweptBytes is the size of all matrices that one sweep passes, each counted once.
func SweptBytes(m *layout.Model) int64 {
	var n int64
	for _, b := range m.Bundles {
		if b.Kind == layout.Embedding {
			continue
		}
		for _, x := range b.Matrices {
			n += x.Bytes()
		}
	}
	return n
}
