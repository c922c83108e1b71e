package kernel

import (
	"encoding/binary"
	"unsafe"

	"github.com/spillway/spillway/internal/quant"
)

// attnState is the running softmax of several query vectors ("lines"): the maximum m, the sum l and
// the unscaled output o ([lines][vPad]). l is 0 for a line that has met no key.
type attnState struct{ m, l, o []float32 }

// attnWorker is the working memory of one thread, cut from the scratch space. A line is one query
// vector: row-major rows of a unit × query heads of one key-value head.
type attnWorker struct {
	attn       Attention
	shape      AttentionShape
	group      int       // query heads of a key-value head
	kPad, vPad int       // head dimensions, padded to a multiple of 8 with zeros
	q          []float32 // [lines][kPad]
	k          []float32 // [64][kPad]
	v          []float32 // column chunks of [64][width], see valueChunk
	scores     []float32 // [lines][64]: scores, then probabilities
	tile       attnState // of one tile; o is not used
	alpha      []float32 // factors of what was there and of what is added
	beta       []float32
	span, row  attnState
	lo, hi     []int32 // positions within the tile that a line sees
}

func (s AttentionShape) workerFloats() int {
	n := roundUp8(s.lines())
	k, v := roundUp8(s.KDim), roundUp8(s.VDim)
	return n*(k+attnTile+2*v+10) + attnTile*(k+v)
}

func newAttnWorker(a Attention, s AttentionShape, mem []float32) *attnWorker {
	n := roundUp8(s.lines())
	w := &attnWorker{attn: a, shape: s, group: s.Heads / s.KVHeads, kPad: roundUp8(s.KDim), vPad: roundUp8(s.VDim)}
	take := func(n int) []float32 {
		x := mem[:n:n]
		mem = mem[n:]
		return x
	}
	w.k, w.v = take(attnTile*w.kPad), take(attnTile*w.vPad)
	w.q, w.scores = take(n*w.kPad), take(n*attnTile)
	w.span = attnState{take(n), take(n), take(n * w.vPad)}
	w.row = attnState{take(n), take(n), take(n * w.vPad)}
	w.tile = attnState{m: take(n), l: take(n)}
	w.alpha, w.beta = take(n), take(n)
	w.lo, w.hi = int32sOf(take(n)), int32sOf(take(n))
	return w
}

func int32sOf(f []float32) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(f))), len(f))
}

// do computes one task of a unit: a key-value head over all spans, or one span of it.
func (w *attnWorker) do(u *attnUnit, task int) {
	if u.split {
		head, span := task/u.spans, task%u.spans
		w.loadQueries(u, head)
		w.runSpan(u, head, u.firstSpan+span, &w.span)
		w.storePartial(u, head, span)
		return
	}
	w.loadQueries(u, task)
	w.runSpan(u, task, u.firstSpan, &w.row)
	for span := u.firstSpan + 1; span < u.firstSpan+u.spans; span++ {
		w.runSpan(u, task, span, &w.span)
		w.foldSpan(w.lines(u), &w.span)
	}
	w.writeOut(u, task)
}

func (w *attnWorker) lines(u *attnUnit) int { return u.rows * w.group }

// loadQueries copies the query vectors of one key-value head, padded.
func (w *attnWorker) loadQueries(u *attnUnit, head int) {
	dim := w.shape.KDim
	for line := range w.lines(u) {
		row, g := line/w.group, line%w.group
		from := (u.row+row)*u.seg.QStride + (head*w.group+g)*dim
		dst := w.q[line*w.kPad : (line+1)*w.kPad]
		clear(dst[copy(dst, u.seg.Q[from:from+dim]):])
	}
}

// runSpan runs the tiles of one span in rising order into st, which starts empty.
func (w *attnWorker) runSpan(u *attnUnit, head, span int, st *attnState) {
	clear(st.l)
	clear(st.m)
	for base := span * attnSpan; base < (span+1)*attnSpan; base += attnTile {
		if lo, hi := w.bounds(u, base); lo < hi {
			w.runTile(u, head, base, lo, hi, st)
		}
	}
}

// bounds sets the range of each line in the tile at base and returns the union of the ranges.
func (w *attnWorker) bounds(u *attnUnit, base int) (lo, hi int) {
	lo = attnTile
	for row := range u.rows {
		l, h := w.attn.visible(u.seg, u.seg.First+u.row+row)
		l, h = max(l-base, 0), min(h-base, attnTile)
		if l < h {
			lo, hi = min(lo, l), max(hi, h)
		} else {
			l, h = 0, 0
		}
		for g := range w.group {
			w.lo[row*w.group+g], w.hi[row*w.group+g] = int32(l), int32(h)
		}
	}
	return lo, hi
}

func (w *attnWorker) runTile(u *attnUnit, head, base, lo, hi int, st *attnState) {
	n := w.lines(u)
	w.load(&u.seg.KV, head, base, lo, hi)
	ops := active.vector
	for g := lo / 8; g < (hi+7)/8; g++ {
		w.prefetch(&u.seg.KV, head, base+attnTile, g)
		ops.attnScores(w.scores[g*8:], w.q, w.k[g*8*w.kPad:], n, w.kPad)
	}
	ops.attnSoftmax(w.scores, w.lo, w.hi, w.tile.m, w.tile.l, n, w.attn.Scale)
	w.factors(n, st, w.tile.m, w.tile.l)
	for col := 0; col < w.vPad; {
		width := valueChunk(w.vPad - col)
		ops.attnValues(st.o[col:], w.scores, w.v[col*attnTile:], w.lo, w.hi, w.alpha, w.beta, n, w.vPad, width)
		col += width
	}
}

// prefetch asks for one eighth of the tile at base: 16 rows of keys or of values. A cache in blocks is
// too scattered for the processor to guess what comes next.
func (w *attnWorker) prefetch(kv *KVBlocks, head, base, eighth int) {
	pos := base + eighth%4*16
	blocks, dim := kv.K, w.shape.KDim
	if eighth >= 4 {
		blocks, dim = kv.V, w.shape.VDim
	}
	b, in := pos/kv.Tokens, pos%kv.Tokens
	if b >= len(blocks) || blocks[b] == nil {
		return
	}
	row := kv.Type.RowBytes(dim)
	from := (head*kv.Tokens + in) * row
	active.vector.prefetch(blocks[b][from:min(from+16*row, len(blocks[b]))])
}

// valueChunk is the width of the next column chunk of the value tile: 64, 32, 16 or 8 columns.
func valueChunk(left int) int {
	width := 64
	for width > left {
		width /= 2
	}
	return width
}

// load widens the positions [lo, hi) of the tile at base to float32.
func (w *attnWorker) load(kv *KVBlocks, head, base, lo, hi int) {
	kRow, vRow := kv.Type.RowBytes(w.shape.KDim), kv.Type.RowBytes(w.shape.VDim)
	for at := lo; at < hi; {
		b, in := (base+at)/kv.Tokens, (base+at)%kv.Tokens
		rows := min(kv.Tokens-in, hi-at)
		from := head*kv.Tokens + in
		k := kv.K[b][from*kRow : (from+rows)*kRow]
		widenRows(kv.Type, w.k[at*w.kPad:], k, rows, w.shape.KDim, w.kPad, w.shape.KDim)
		v := kv.V[b][from*vRow : (from+rows)*vRow]
		w.loadValues(kv.Type, v, at, rows)
		at += rows
	}
}

// loadValues widens rows of values into the column chunks.
func (w *attnWorker) loadValues(t quant.Type, v []byte, at, rows int) {
	size := t.RowBytes(1)
	for col := 0; col < w.shape.VDim; {
		width := valueChunk(w.vPad - col)
		dst := w.v[col*attnTile+at*width:]
		widenRows(t, dst, v[col*size:], rows, min(width, w.shape.VDim-col), width, w.shape.VDim)
		col += width
	}
}

// widenRows converts rows of n values of t, which lie srcStride values apart, to float32 rows that
// lie dstStride apart, with zeros up to the stride.
func widenRows(t quant.Type, dst []float32, src []byte, rows, n, dstStride, srcStride int) {
	if t == quant.F16 && n == dstStride {
		active.vector.widenF16(dst, src, rows, n, srcStride)
		return
	}
	size := t.RowBytes(1)
	for r := range rows {
		d := dst[r*dstStride : (r+1)*dstStride]
		s := src[r*srcStride*size:][:n*size]
		widen(t, d[:n], s)
		clear(d[n:])
	}
}

func widen(t quant.Type, dst []float32, src []byte) {
	if t == quant.F32 {
		active.vector.widenF32(dst, src)
		return
	}
	wide := quant.F16ToF32
	if t == quant.BF16 {
		wide = quant.BF16ToF32
	}
	for i := range dst {
		dst[i] = wide(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

// factors sets alpha and beta for adding (m, l) to st, and st's new maximum and sum. Where (m, l) is
// empty st stays and alpha is 1, beta 0; where st was empty alpha is −1.
func (w *attnWorker) factors(n int, st *attnState, m, l []float32) {
	active.vector.attnFactors(st.m, st.l, m, l, w.alpha, w.beta, n)
}

// foldSpan adds a span to the row state.
func (w *attnWorker) foldSpan(n int, span *attnState) {
	w.factors(n, &w.row, span.m, span.l)
	for line := range n {
		if span.l[line] == 0 {
			continue
		}
		o, add := w.row.o[line*w.vPad:][:w.vPad], span.o[line*w.vPad:][:w.vPad]
		active.vector.attnFold(o, add, w.alpha[line], w.beta[line])
	}
}

// partialAt returns the stored partials of one key-value head and span: a line's are m, l, six
// unused values, and o.
func (w *attnWorker) partialAt(u *attnUnit, head, span int) []float32 {
	n := w.lines(u) * w.shape.partialFloats()
	return u.partial[(head*u.spans+span)*n:][:n]
}

func (w *attnWorker) storePartial(u *attnUnit, head, span int) {
	mem, size := w.partialAt(u, head, span), w.shape.partialFloats()
	for line := range w.lines(u) {
		p := mem[line*size:][:size]
		p[0], p[1] = w.span.m[line], w.span.l[line]
		copy(p[8:], w.span.o[line*w.vPad:][:w.vPad])
	}
}

// fold joins the stored spans of one key-value head and writes the result.
func (w *attnWorker) fold(u *attnUnit, head int) {
	n, size := w.lines(u), w.shape.partialFloats()
	clear(w.row.l)
	clear(w.row.m)
	for span := range u.spans {
		mem := w.partialAt(u, head, span)
		for line := range n {
			p := mem[line*size:][:size]
			w.span.m[line], w.span.l[line] = p[0], p[1]
			copy(w.span.o[line*w.vPad:][:w.vPad], p[8:])
		}
		w.foldSpan(n, &w.span)
	}
	w.writeOut(u, head)
}

// writeOut divides by the sums; a row that saw no key is 0.
func (w *attnWorker) writeOut(u *attnUnit, head int) {
	dim := w.shape.VDim
	for line := range w.lines(u) {
		row, g := line/w.group, line%w.group
		to := (u.row+row)*u.seg.OutStride + (head*w.group+g)*dim
		dst := u.seg.Out[to : to+dim]
		if w.row.l[line] == 0 {
			clear(dst)
			continue
		}
		active.vector.divide(dst, w.row.o[line*w.vPad:][:dim], w.row.l[line])
	}
}
