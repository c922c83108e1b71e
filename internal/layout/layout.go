// Package layout describes a model as plain data: matrices, vectors, bundles and their order,
// bytes, operations and state. Planner, pager, inspect, synth and the roofline read it; nothing
// here runs.
package layout

import "github.com/spillway/spillway/internal/quant"

// Matrix is a weight of Rows × Cols values (outputs × inputs), stored row by row without gaps.
// It may be a view: a range of rows of a larger tensor.
type Matrix struct {
	Name   string     // name in the checkpoint, for errors and pictures
	Type   quant.Type // number format of every row
	Rows   int        // outputs
	Cols   int        // inputs, a multiple of Type.BlockValues()
	File   int        // index into the catalog's files
	Offset int64      // of row 0, bytes from the start of the file
	ID     int        // position in Model.Matrices
	// Order is nil, or Cols numbers: column k meets input Order[k]. (GPTQ sorts columns by groups.)
	Order *Vector
}

// RowBytes is the size of one row in bytes.
func (m *Matrix) RowBytes() int64 { return int64(m.Type.RowBytes(m.Cols)) }

// Bytes is the size of the whole matrix in bytes.
func (m *Matrix) Bytes() int64 { return m.RowBytes() * int64(m.Rows) }

// Vector is a small weight (norm, bias, rope factors) that is decoded to f32 at load and stays.
type Vector struct {
	Name   string
	Type   quant.Type
	Len    int
	File   int
	Offset int64
	ID     int // position in Model.Vectors
}

// Kind says what a bundle is for.
type Kind uint8

// Kinds of bundles.
const (
	Embedding Kind = iota // read by rows, as tokens need them
	Attention
	FeedForward
	Head // the output projection; may be the same bytes as the embedding
)

func (k Kind) String() string {
	return [...]string{"embedding", "attention", "feed-forward", "head"}[k]
}

// Bundle is the matrices that are always needed together, in the order in which a sweep uses them.
type Bundle struct {
	Name     string // such as "layer.3.attn"
	Kind     Kind
	Layer    int // -1 outside the layers
	Matrices []*Matrix
}

// Model is everything that planning needs to know.
type Model struct {
	Family   string
	Matrices []*Matrix // by ID
	Vectors  []*Vector // by ID
	// Bundles in the order of a sweep. An Embedding bundle is first and is not swept; with tied
	// weights the Head bundle holds the same *Matrix.
	Bundles []Bundle
	// Experts of the layers that have some, in the order of a sweep. They are no part of any bundle.
	Experts []ExpertLayer

	Layers     int
	Hidden     int
	Vocab      int
	Context    int // trained limit in tokens
	Parameters int64

	// Attention of each layer that has a key-value cache.
	Attention []AttentionLayer

	KVValuesPerToken int64 // values (not bytes) that one token adds to the key-value cache
	MaxCols          int   // widest input row of any matrix
	MaxRows          int   // tallest matrix apart from the head
	FlopsPerToken    int64 // multiplications and additions of the matrices, per token that reaches the head
	// ReadScratch is the bytes that a read of a file that puts its content together needs at least; 0
	// if there is no such file. See pager.Config.
	ReadScratch int64
	// Exchanged says that matrices lie inputs × outputs on the drive: a tile of few rows costs nearly what a
	// tile of many does.
	Exchanged bool
	// ScratchPerRow is the bytes of activations that one row of a batch needs at its peak.
	ScratchPerRow int64
	// ScratchPerHeadRow is the bytes that each row that reaches the head needs besides.
	ScratchPerHeadRow int64
}

// VectorBytes is the size of all vectors in f32.
func (m *Model) VectorBytes() int64 {
	var n int64
	for _, v := range m.Vectors {
		n += int64(v.Len) * 4
	}
	return n
}
