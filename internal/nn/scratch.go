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

// PlanScratch sets the layout's scratch per row and returns what does not depend on the rows. Their
// sum is never less than ScratchBytes, and hardly more.
func (m *Model) PlanScratch(c Scratch) (fixed int64) {
	perRow, body := line(func(rows int) int { c.Rows = rows; return m.bodyBytes(c) })
	perHeadRow, head := line(func(rows int) int { c.HeadRows = rows; return m.headBytes(c) })
	m.Layout.ScratchPerRow, m.Layout.ScratchPerHeadRow = int64(perRow), int64(perHeadRow)
	return int64(body + head)
}

// line is the lowest line above f whose slope is f's for many rows. Buffers are rounded up, so that f
// is not a line itself.
func line(f func(rows int) int) (slope, fixed int) {
	const many = 512
	slope = (f(2*many) - f(many) + many - 1) / many
	for n := range many + 1 {
		fixed = max(fixed, f(n)-n*slope)
	}
	return slope, fixed
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
	mark = s.mark()
	adapterScratch(s)
	s.reset(mark)
	orderScratch(s, c.Rows, m.Layout.Matrices)
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
	orderScratch(s, c.HeadRows, []*layout.Matrix{m.head})
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
