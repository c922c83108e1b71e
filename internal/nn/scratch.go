package nn

import (
	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/layout"
)

// sizes adds up what a forward pass takes from its arena, without one.
type sizes struct {
	exact     bool
	now, peak int
}

func (s *sizes) mark() int      { return s.now }
func (s *sizes) reset(mark int) { s.now = mark }

func (s *sizes) bytes(n int) {
	s.now = (s.now+63)&^63 + n
	s.peak = max(s.peak, s.now)
}

func (s *sizes) floats(n int) { s.bytes(4 * n) }

func (s *sizes) acts(rows, cols int, ms ...*layout.Matrix) {
	s.bytes(kernel.ActsBytes(rows, cols, integer(s.exact, ms)))
}

// Scratch says what shapes the arena of a forward pass.
type Scratch struct {
	Rows, HeadRows, Context, Threads int
	Exact                            bool
}

// ScratchBytes is what the arena of a pass over at most the given rows must hold.
func (m *Model) ScratchBytes(c Scratch) int { return m.bodyBytes(c) + m.headBytes(c) }

// PlanScratch sets the layout's scratch per row and returns what does not depend on the rows.
func (m *Model) PlanScratch(c Scratch) (fixed int64) {
	const many = 512
	at := func(rows, headRows int) int {
		c.Rows, c.HeadRows = rows, headRows
		return m.ScratchBytes(c)
	}
	none := at(0, 0)
	m.Layout.ScratchPerRow = int64(at(many, 0)-none)/many + 1
	m.Layout.ScratchPerHeadRow = int64(at(0, many)-none)/many + 1
	return int64(none)
}

// bodyBytes is what the layers need.
func (m *Model) bodyBytes(c Scratch) int {
	s := &sizes{exact: c.Exact}
	s.bytes(kernel.ScratchBytes(c.Threads, m.Layout.MaxCols))
	s.bytes(m.attentionScratch(c.Threads, c.Context))
	for _, r := range m.ropes {
		s.floats(r.tableFloats(c.Rows) / 2)
		s.floats(r.tableFloats(c.Rows) / 2)
	}
	s.floats(c.Rows * m.Layout.Hidden)
	s.floats(c.Rows * m.Layout.Hidden)
	mark := s.mark()
	for _, b := range m.blocks {
		s.reset(mark)
		b.mixer.scratch(s, c.Rows)
		b.ffn.scratch(s, c.Rows)
	}
	s.now = s.peak
	adapterScratch(s)
	// Every take from the arena begins at a multiple of 64; that is not linear in the rows.
	return s.peak + 64*maxTakes
}

// maxTakes bounds how many buffers of an arena live at once.
const maxTakes = 32

// headBytes is what the head needs. It comes on top: the layers' buffers are free by then, but what
// is planned for rows and for head rows is added up.
func (m *Model) headBytes(c Scratch) int {
	if m.head == nil {
		return 0
	}
	s := &sizes{exact: c.Exact}
	s.floats(c.HeadRows * m.Layout.Vocab)
	s.acts(c.HeadRows, m.Layout.Hidden, m.head)
	return s.peak
}

// attentionScratch is the scratch of the attention kernel, whichever layer runs.
func (m *Model) attentionScratch(threads, context int) int {
	n := 0
	for _, b := range m.blocks {
		d := b.mixer.desc
		shape := kernel.AttentionShape{Heads: d.Heads, KVHeads: d.KVHeads, KDim: d.HeadDim, VDim: d.HeadDim}
		n = max(n, kernel.AttentionScratch(shape, threads, context))
	}
	return n
}
