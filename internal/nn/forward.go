package nn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/pager"
	"github.com/spillway/spillway/internal/policy"
	"github.com/spillway/spillway/internal/quant"
)

// Env is what a forward pass runs on.
type Env struct {
	Pool  *kernel.Pool
	Pager *pager.Pager
	Arena *mem.Arena // of at least Model.ScratchBytes
	Exact bool       // quantized weights are decoded to f32
	// Context is the most positions that a sequence may have; it bounds the stored partials of attention.
	Context int
	// Routing hears which experts a pass chose in each layer, by position in Layout.Experts: the ids of rows of
	// answers, then of prompts, in a row those of the highest scores first. Both are valid during the call. Nil for none.
	Routing func(layer int, v policy.Visit, ids []int32)

	kept *run // of the last pass
}

// lists are what passes leave for the next one, so that it need not allocate them.
type lists struct {
	inputs   []kernel.Acts // of the layer that runs
	together []kernel.Output
	segs     []kernel.Segment
	views    []cacheView
	tables   []ropeTable
	demands  []policy.Demand
	indices  []int32
	sorted   []int32
	guessed  []int32
	ids      []int32     // of the rows that are embedded,
	embedded [][]float32 // and where each goes
}

// mostInputs is for how many inputs of a layer's products there is room.
const mostInputs = 32

// keptRows is up to how many rows the lists of a pass's rows are kept: those of longer ones, of prompts, are made anew.
const keptRows = 64

// begin is the state of a new pass. Only one runs on an Env.
func (e *Env) begin(m *Model, b *Batch) *run {
	r := e.kept
	if r == nil || r.m != m {
		r = &run{m: m, env: e}
		r.runTask, r.visitRow = r.doTask, r.embedRow // once, so that a pass allocates nothing
		e.kept = r
	}
	r.batch, r.rows, r.head, r.at, r.stream = b, b.Rows(), false, 0, nil
	r.inputs = slices.Grow(r.inputs[:0], mostInputs)
	r.segs = slices.Grow(r.segs[:0], len(b.Segments))[:len(b.Segments)]
	r.views = slices.Grow(r.views[:0], len(b.Segments))[:len(b.Segments)]
	r.tables = slices.Grow(r.tables[:0], len(m.ropes))[:len(m.ropes)]
	return r
}

// end keeps the run for the next pass, without what it points to.
func (r *run) end() {
	clear(r.inputs[:cap(r.inputs)])
	clear(r.together[:cap(r.together)])
	clear(r.segs)
	clear(r.embedded[:cap(r.embedded)])
	if cap(r.ids) > keptRows {
		r.ids, r.embedded = nil, nil
	}
	r.batch, r.stream, r.kernScratch, r.attnScratch, r.tasks = nil, nil, nil, nil, tasks{}
}

// run is the state of one forward pass.
type run struct {
	m           *Model
	env         *Env
	batch       *Batch
	sweep       pager.Sweep
	rows        int
	head        bool      // rows are those that reach the head
	at          int       // the block that runs
	stream      []float32 // what its feed-forward part adds to
	kernScratch []byte
	attnScratch []byte
	failures    sync.Mutex
	lists       // tables by position in m.ropes
	tasks       tasks
	task        rowTask
	runTask     func(worker, row int)
	visitRow    func(i int, raw []byte) error
}

type cacheView struct{ k, v [][]byte }

// Forward runs all rows of the batch through the model in one sweep over its weights. It returns
// the logits of the wanted rows (see Segment.Head), HeadRows × Vocab, or for an embedding model
// their hidden states, HeadRows × Hidden; they are valid until the next pass on this arena.
// An error ends the whole batch; what concerns one segment only is in its Err.
func (m *Model) Forward(ctx context.Context, env *Env, b *Batch) (out []float32, err error) {
	if b.Rows() == 0 {
		return nil, nil
	}
	r := env.begin(m, b)
	defer r.end()
	var skip []layout.Kind
	if b.HeadRows() == 0 {
		skip = append(skip, layout.Head)
	}
	if err = env.Pager.BeginAt(ctx, &r.sweep, skip...); err != nil {
		return nil, err
	}
	defer r.sweep.End()
	env.Arena.Reset(0)
	r.prepare()
	x, h := r.floats(r.rows*m.Layout.Hidden), r.floats(r.rows*m.Layout.Hidden)
	if err := r.embed(ctx, x); err != nil {
		return nil, err
	}
	r.tap("embed", m.Layout.Hidden, x)
	mark := env.Arena.Mark()
	for i := range m.blocks {
		env.Arena.Reset(mark)
		r.inputs = r.inputs[:0]
		if err := r.block(i, x, h); err != nil {
			return nil, err
		}
	}
	env.Arena.Reset(mark)
	return r.finish(x, h)
}

// prepare takes from the arena what lives for the whole pass.
func (r *run) prepare() {
	r.kernScratch = r.bytes(kernel.ScratchBytes(r.env.Pool.Threads(), r.m.Layout.MaxCols))
	r.attnScratch = r.bytes(r.m.attentionScratch(r.env.Pool.Threads(), r.env.Context))
	for i, rope := range r.m.ropes {
		half := rope.tableFloats(r.rows) / 2
		r.tables[i].cos, r.tables[i].sin = r.floats(half), r.floats(half)
		r.tables[i].fill(rope, r.batch, r.env.Pager.Vector)
	}
}

// rowsOf is how many of the rows are a segment's.
func (r *run) rowsOf(s *Segment) int {
	if r.head && s.Hidden {
		return 0
	}
	if r.head {
		return len(s.Head)
	}
	return s.Rows()
}

// embed writes the embedding of every row to x.
func (r *run) embed(ctx context.Context, x []float32) error {
	hidden := r.m.Layout.Hidden
	r.ids, r.embedded = slices.Grow(r.ids[:0], r.rows), slices.Grow(r.embedded[:0], r.rows)
	row := 0
	for _, s := range r.batch.Segments {
		dst := x[row*hidden:][:s.Rows()*hidden]
		row += s.Rows()
		if s.Embeds != nil {
			copy(dst, s.Embeds)
			continue
		}
		for i, id := range s.IDs {
			if id < 0 || int(id) >= r.m.Layout.Vocab {
				return fmt.Errorf("token %d is not in the vocabulary of %d", id, r.m.Layout.Vocab)
			}
			r.ids = append(r.ids, id)
			r.embedded = append(r.embedded, dst[i*hidden:][:hidden])
		}
	}
	return r.env.Pager.Rows(ctx, r.m.embed, r.ids, r.visitRow)
}

func (r *run) embedRow(i int, raw []byte) error {
	return quant.DecodeRow(r.m.embed.Type, r.embedded[i], raw)
}

// block runs layer i: x += mixer(norm(x)); x += ffn(norm(x)).
func (r *run) block(i int, x, h []float32) error {
	b, hidden := &r.m.blocks[i], r.m.Layout.Hidden
	mark := r.env.Arena.Mark()
	r.norm(b.norm, h, x, hidden)
	r.layerTap(i, "attn_norm", h)
	if err := b.mixer.forward(r, h, h); err != nil {
		return err
	}
	r.layerTap(i, "attn_out", h)
	r.add(x, h)
	r.env.Arena.Reset(mark)
	r.norm(b.ffnNorm, h, x, hidden)
	r.layerTap(i, "ffn_norm", h)
	r.at, r.stream = i, x
	if err := b.ffn.forward(r, h, h); err != nil {
		return err
	}
	r.layerTap(i, "ffn_out", h)
	r.add(x, h)
	r.layerTap(i, "out", x)
	return nil
}

// finish norms the wanted rows and multiplies them with the head.
func (r *run) finish(x, h []float32) ([]float32, error) {
	hidden, vocab := r.m.Layout.Hidden, r.m.Layout.Vocab
	if r.batch.Tap != nil {
		r.norm(r.m.norm, h, x, hidden)
		r.tap("final_norm", hidden, h)
	}
	n := r.normWanted(h, x, false)
	r.batch.Hidden = h[n*hidden:]
	r.batch.Hidden = r.batch.Hidden[:r.normWanted(r.batch.Hidden, x, true)*hidden]
	h = h[:n*hidden]
	if r.m.head == nil || n == 0 {
		return h, nil
	}
	r.rows, r.head = n, true
	logits := r.floats(n * vocab)
	if err := r.linear(linear{m: r.m.head}, r.acts(h, hidden, r.m.head), logits); err != nil {
		return nil, err
	}
	return logits, nil
}

// normWanted norms the rows whose logits, or whose hidden states, are wanted into dst, and returns how many.
func (r *run) normWanted(dst, x []float32, states bool) (n int) {
	hidden, row := r.m.Layout.Hidden, 0
	for _, s := range r.batch.Segments {
		for _, i := range s.Head {
			if s.Hidden == states {
				kernel.RMSNorm(dst[n*hidden:][:hidden], x[(row+i)*hidden:][:hidden], r.env.Pager.Vector(r.m.norm.weight), r.m.norm.eps)
				n++
			}
		}
		row += s.Rows()
	}
	return n
}

// integer says whether any of the matrices needs the 16-bit form of its input.
func integer(exact bool, ms []*layout.Matrix) bool {
	return slices.ContainsFunc(ms, func(m *layout.Matrix) bool { return kernel.Integer(m.Type, exact) })
}

// acts prepares x, rows × cols, as input of the matrices ms.
func (r *run) acts(x []float32, cols int, ms ...*layout.Matrix) *kernel.Acts {
	return r.actsOf(r.rows, x, cols, ms...)
}

// actsOf is acts for n rows.
func (r *run) actsOf(n int, x []float32, cols int, ms ...*layout.Matrix) *kernel.Acts {
	form := integer(r.env.Exact, ms)
	a := r.input(kernel.MakeActs(r.bytes(kernel.ActsBytes(n, cols, form)), n, cols, form))
	a.SetRows(r.env.Pool, x, cols)
	return a
}

// input gives a an address that is not on the heap for it alone.
func (r *run) input(a kernel.Acts) *kernel.Acts {
	r.inputs = append(r.inputs, a) // those before stay where they are, or are copied and stay, too
	return &r.inputs[len(r.inputs)-1]
}

// linear writes l's product with every row of in to out, rows × l.m.Rows, tile by tile as the
// weights arrive.
func (r *run) linear(l linear, in *kernel.Acts, out []float32) error {
	if err := r.product(l.m, in, out); err != nil {
		return err
	}
	r.correct(l, in, out)
	return nil
}

// correct adds bias and adapters to l's product.
func (r *run) correct(l linear, in *kernel.Acts, out []float32) {
	if l.bias != nil {
		r.tasks.adding = adding{x: out, y: r.env.Pager.Vector(l.bias), width: l.m.Rows}
		r.each(l.m.Rows, &r.tasks.adding)
	}
	r.adapt(l.m, in, out)
}

// output is a matrix of linears and where its product goes, rows × l.m.Rows.
type output struct {
	l   linear
	out []float32
}

// linears is linear for several matrices with one input. If they are in memory they are multiplied in one
// go: a matrix of a small model is not worth a start of the threads.
func (r *run) linears(in *kernel.Acts, parts ...output) error {
	if !r.env.Pager.Resident() || r.rows > fewRows {
		for _, p := range parts {
			if err := r.linear(p.l, in, p.out); err != nil {
				return err
			}
		}
		return nil
	}
	r.together = r.together[:0]
	for _, p := range parts {
		if p.l.m.Order != nil {
			if err := r.product(p.l.m, in, p.out); err != nil {
				return err
			}
			continue
		}
		for tile, err := range r.sweep.Tiles(p.l.m) {
			if err != nil {
				return err
			}
			w := kernel.Weights{Type: p.l.m.Type, Rows: tile.Rows, Cols: p.l.m.Cols, Data: tile.Bytes()}
			r.together = append(r.together, kernel.Output{W: w, Out: p.out[tile.Row0:], Stride: p.l.m.Rows})
		}
	}
	kernel.MatMulAll(r.env.Pool, r.kernScratch, in, r.env.Exact, r.together)
	for _, p := range parts {
		r.correct(p.l, in, p.out)
	}
	return nil
}

// fewRows is up to how many rows products are short.
const fewRows = 16

// product writes m's product with every row of in to out.
func (r *run) product(m *layout.Matrix, in *kernel.Acts, out []float32) error {
	mark, inputs := r.env.Arena.Mark(), len(r.inputs)
	defer func() { r.env.Arena.Reset(mark); r.inputs = r.inputs[:inputs] }()
	if m.Order != nil {
		in = r.ordered(m, in)
	}
	for tile, err := range r.sweep.Tiles(m) {
		if err != nil {
			return err
		}
		w := kernel.Weights{Type: m.Type, Rows: tile.Rows, Cols: m.Cols, Data: tile.Bytes()}
		kernel.MatMul(r.env.Pool, r.kernScratch, w, in, out[tile.Row0:], m.Rows, r.env.Exact)
	}
	return nil
}

func (r *run) norm(n norm, dst, x []float32, width int) {
	r.tasks.norming = norming{dst, x, r.env.Pager.Vector(n.weight), n.eps, width}
	r.each(width, &r.tasks.norming)
}

// normHeads norms each head of one row in place.
func (r *run) normHeads(n norm, x []float32, width int) {
	weight := r.env.Pager.Vector(n.weight)
	for at := 0; at < len(x); at += width {
		kernel.RMSNorm(x[at:][:width], x[at:][:width], weight, n.eps)
	}
}

func (r *run) add(x, y []float32) {
	width := r.m.Layout.Hidden
	r.tasks.adding = adding{x, y, width, width}
	r.each(width, &r.tasks.adding)
}

// fail ends a segment with the error of its first layer and position that has one. Rows may come from
// several threads.
func (r *run) fail(s *Segment, e *CacheRangeError) {
	r.failures.Lock()
	defer r.failures.Unlock()
	var before *CacheRangeError
	if errors.As(s.Err, &before) && (before.Layer < e.Layer || before.Layer == e.Layer && before.Position < e.Position) {
		return
	}
	s.Err = e
}

// table returns the cosines and sines of a rotation; nil for none.
func (r *run) table(rope *Rope) *ropeTable {
	for i, known := range r.m.ropes {
		if known == rope {
			return &r.tables[i]
		}
	}
	return nil
}

func (r *run) bytes(n int) []byte     { return r.env.Arena.Alloc(n, 64) }
func (r *run) floats(n int) []float32 { return mem.AsFloat32s(r.bytes(4 * n)) }
func (r *run) layerTap(i int, name string, x []float32) {
	if r.batch.Tap != nil {
		r.batch.Tap(fmt.Sprintf("layer.%d.%s", i, name), r.rows, r.m.Layout.Hidden, x)
	}
}

func (r *run) tap(name string, width int, x []float32) {
	if r.batch.Tap != nil {
		r.batch.Tap(name, r.rows, width, x)
	}
}

// TapNames lists the names of a model's intermediate values in the order in which they arise.
func (m *Model) TapNames() []string {
	names := []string{"embed"}
	for i := range m.blocks {
		parts := []string{"attn_norm", "attn_out", "ffn_norm", "ffn_out", "out"}
		if _, ok := m.blocks[i].ffn.(*moe); ok {
			parts = slices.Insert(parts, 3, "router.experts", "router.weights")
		}
		for _, part := range parts {
			names = append(names, fmt.Sprintf("layer.%d.%s", i, part))
		}
	}
	return append(names, "final_norm")
}
