package nn

import (
	"fmt"

	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/layout"
)

// Attention describes grouped-query attention with a key-value cache. Roles: attn.q, attn.k, attn.v,
// attn.o with optional biases; attn.q_norm and attn.k_norm if QKNorm; attn.sinks, a score for each head, if Sinks.
type Attention struct {
	Heads, KVHeads, HeadDim int
	QKNorm                  *RMS // norm of each head of q and k before the rotation; nil for none
	NormWhole               bool // QKNorm is over all heads together
	Sinks                   bool
	Rope                    *Rope // nil for a layer without positions
	Window                  int   // a position sees itself and the Window−1 before it; 0: all
}

type attention struct {
	desc           Attention
	layer, hidden  int
	q, k, v, o     linear
	qNorm, kNorm   norm
	sinks          *layout.Vector
	kernel         kernel.Attention
	qWidth, kWidth int
}

func (d Attention) bind(b *binder, hidden int) (*attention, error) {
	if d.Heads <= 0 || d.KVHeads <= 0 || d.HeadDim <= 0 || d.Heads%d.KVHeads != 0 {
		return nil, fmt.Errorf("layer %d: %d heads cannot share %d key-value heads of %d values", b.layer, d.Heads, d.KVHeads, d.HeadDim)
	}
	a := &attention{desc: d, layer: b.layer, hidden: hidden, qWidth: d.Heads * d.HeadDim, kWidth: d.KVHeads * d.HeadDim}
	a.kernel = kernel.Attention{Heads: d.Heads, Scale: invSqrt(d.HeadDim), Window: d.Window}
	b.cache = append(b.cache, CacheLayer{d.KVHeads, d.HeadDim, d.HeadDim})
	b.model.Attention = append(b.model.Attention, layout.AttentionLayer{
		Heads: d.Heads, KVHeads: d.KVHeads, KDim: d.HeadDim, VDim: d.HeadDim, Window: d.Window,
	})
	var err error
	for _, p := range []struct {
		to         *linear
		role       string
		rows, cols int
	}{
		{&a.q, "attn.q", a.qWidth, hidden}, {&a.k, "attn.k", a.kWidth, hidden},
		{&a.v, "attn.v", a.kWidth, hidden}, {&a.o, "attn.o", hidden, a.qWidth},
	} {
		if *p.to, err = b.linear(p.role, p.rows, p.cols); err != nil {
			return nil, err
		}
	}
	if d.Sinks {
		if a.sinks, err = b.vector("attn.sinks.weight", d.Heads); err != nil {
			return nil, err
		}
	}
	if d.QKNorm != nil {
		q, k := a.normWidths()
		if a.qNorm, err = b.norm("attn.q_norm", *d.QKNorm, q); err != nil {
			return nil, err
		}
		a.kNorm, err = b.norm("attn.k_norm", *d.QKNorm, k)
	}
	return a, err
}

// normWidths is how many values of q and k are normed together.
func (a *attention) normWidths() (q, k int) {
	if a.desc.NormWhole {
		return a.qWidth, a.kWidth
	}
	return a.desc.HeadDim, a.desc.HeadDim
}

// scratch adds what forward takes from the arena for n rows.
func (a *attention) scratch(s *sizes, n int) {
	mark := s.mark()
	s.acts(n, a.hidden, a.q.m, a.k.m, a.v.m)
	s.floats(n * (a.qWidth + 2*a.kWidth))
	s.floats(n * a.qWidth)
	s.acts(n, a.qWidth, a.o.m)
	s.reset(mark)
}

// forward writes the block's output for all rows of the batch to dst; x is the normed input.
func (a *attention) forward(r *run, dst, x []float32) error {
	in := r.acts(x, a.hidden, a.q.m, a.k.m, a.v.m)
	q, k, v := r.floats(r.rows*a.qWidth), r.floats(r.rows*a.kWidth), r.floats(r.rows*a.kWidth)
	if err := r.linears(in, output{a.q, q}, output{a.k, k}, output{a.v, v}); err != nil {
		return err
	}
	a.place(r, q, k, v)
	out := r.floats(r.rows * a.qWidth)
	a.attend(r, q, out)
	return r.linear(a.o, r.acts(out, a.qWidth, a.o.m), dst)
}

// place norms and rotates the heads of q and k, and rounds keys and values into the caches.
func (a *attention) place(r *run, q, k, v []float32) {
	for i, s := range r.batch.Segments {
		kv := &r.views[i]
		kv.k, kv.v = s.Cache.View(a.layer, kv.k[:0], kv.v[:0])
	}
	r.tasks.placing = placing{a, r.table(a.desc.Rope), q, k, v}
	r.each(a.qWidth+2*a.kWidth, &r.tasks.placing)
}

// position norms and rotates the heads of one row.
func (a *attention) position(r *run, table *ropeTable, row int, q, k []float32) {
	if a.desc.QKNorm != nil {
		qw, kw := a.normWidths()
		r.normHeads(a.qNorm, q, qw)
		r.normHeads(a.kNorm, k, kw)
	}
	if table != nil {
		table.rotate(a.desc.Rope, row, q, a.desc.Heads, a.desc.HeadDim)
		table.rotate(a.desc.Rope, row, k, a.desc.KVHeads, a.desc.HeadDim)
	}
}

// store rounds one row's keys and values into its cache.
func (a *attention) store(r *run, row int, k, v []float32) {
	i := 0
	for row >= r.batch.Segments[i].Rows() {
		row -= r.batch.Segments[i].Rows()
		i++
	}
	s, view := r.batch.Segments[i], &r.views[i]
	t, tokens := s.Cache.Format()
	pos := s.First + row
	ok := a.storeRow(view.k[pos/tokens], k, t, tokens, pos%tokens)
	ok = a.storeRow(view.v[pos/tokens], v, t, tokens, pos%tokens) && ok
	if !ok {
		r.fail(s, &CacheRangeError{Layer: a.layer, Position: pos, Type: t})
	}
}

// storeRow writes one position of all heads into a block [KVHeads][tokens][HeadDim].
func (a *attention) storeRow(block []byte, x []float32, t kernel.CacheType, tokens, at int) bool {
	d := a.desc.HeadDim
	size := t.RowBytes(d)
	finite := true
	for h := range a.desc.KVHeads {
		finite = t.Store(block[(h*tokens+at)*size:][:size], x[h*d:][:d]) && finite
	}
	return finite
}

// attend runs the attention kernel over all segments of the batch.
func (a *attention) attend(r *run, q, out []float32) {
	row := 0
	for i, s := range r.batch.Segments {
		t, tokens := s.Cache.Format()
		n := s.Rows()
		r.segs[i] = kernel.Segment{
			Q: q[row*a.qWidth:][:n*a.qWidth], QStride: a.qWidth,
			Out: out[row*a.qWidth:][:n*a.qWidth], OutStride: a.qWidth,
			Rows: n, First: s.First, Mask: s.Mask, Spans: s.Spans,
			KV: kernel.KVBlocks{Type: t, Tokens: tokens, KVHeads: a.desc.KVHeads, KDim: a.desc.HeadDim, VDim: a.desc.HeadDim,
				K: r.views[i].k, V: r.views[i].v},
		}
		row += n
	}
	k := a.kernel
	if a.sinks != nil {
		k.Sinks = r.env.Pager.Vector(a.sinks)
	}
	k.Run(r.env.Pool, r.attnScratch, r.segs)
}

// CacheRangeError says that a key or value is beyond what the cache's type can hold.
type CacheRangeError struct {
	Layer, Position int
	Type            kernel.CacheType
}

func (e *CacheRangeError) Error() string {
	if e.Type == kernel.CacheF32 {
		return fmt.Sprintf("layer %d, position %d: a key or value is not finite", e.Layer, e.Position)
	}
	return fmt.Sprintf("layer %d, position %d: a key or value is not finite in the %s cache: try --kv f32", e.Layer, e.Position, e.Type)
}
