package kernel

import (
	"math"
	"slices"
	"unsafe"
)

// attnState is the running softmax of several query vectors ("lines"): the maximum m, the sum l and
// the unscaled output o ([lines][vPad]). l is 0 for a line that has met no key.
type attnState struct{ m, l, o []float32 }

// attnWorker is the working memory of one thread, cut from the scratch space. A line is one query
// vector: row-major rows of a unit × query heads of one key-value head. Loops may take lines in blocks
// of four: what lies behind the last one is computed too, and never read.
type attnWorker struct {
	attn       Attention
	shape      AttentionShape
	group      int       // query heads of a key-value head
	kPad, vPad int       // head dimensions, padded to multiples of 8 and 16
	q          []float32 // [lines][kPad], see queryAt
	k, v       []byte    // the tile, widened: [64][kPad] and [64][vPad] float32
	keys, vals attnRows  // the tile, as the loops see it
	scores     []float32 // [lines][64]: scores, then probabilities
	tile       attnState // of one tile; o is not used
	alpha      []float32 // factors of what was there and of what is added
	beta       []float32
	span, row  attnState
	lo, hi     []int32 // positions within the tile that a line sees
	sees       []Span  // the positions that each row sees
	fromAll    int     // all rows see the positions [fromAll, toAll)
	toAll      int
	all        bool // lo and hi say that all lines see the whole tile
}

func (s AttentionShape) workerFloats() int {
	n := roundUp8(s.lines())
	k, v := roundUp8(s.KDim), roundUp16(s.VDim)
	return n*(k+attnTile+2*v+10) + attnTile*(k+v)
}

func (w *attnWorker) start(a Attention, s AttentionShape, mem []float32) {
	n := roundUp8(s.lines())
	w.attn, w.shape = a, s
	w.group, w.kPad, w.vPad = s.Heads/s.KVHeads, roundUp8(s.KDim), roundUp16(s.VDim)
	take := func(n int) []float32 {
		x := mem[:n:n]
		mem = mem[n:]
		return x
	}
	w.k, w.v = bytesOf(take(attnTile*w.kPad)), bytesOf(take(attnTile*w.vPad))
	w.q, w.scores = take(n*w.kPad), take(n*attnTile)
	w.span = attnState{take(n), take(n), take(n * w.vPad)}
	w.row = attnState{take(n), take(n), take(n * w.vPad)}
	w.tile = attnState{m: take(n), l: take(n)}
	w.alpha, w.beta = take(n), take(n)
	w.lo, w.hi = int32sOf(take(n)), int32sOf(take(n))
	w.sees = slices.Grow(w.sees[:0], s.groupRows())[:s.groupRows()]
}

// end forgets the scratch space and the cache.
func (w *attnWorker) end() { *w = attnWorker{sees: w.sees} }

func int32sOf(f []float32) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(f))), len(f))
}

func bytesOf(f []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f))), 4*len(f))
}

// part computes one span of a key-value head and stores it.
func (w *attnWorker) part(u *attnUnit, head, span int) {
	w.loadQueries(u, head)
	w.runSpan(u, head, u.firstSpan+span, &w.span)
	w.storePartial(u, head, span)
}

// whole computes a key-value head over all spans.
func (w *attnWorker) whole(u *attnUnit, head int) {
	w.loadQueries(u, head)
	w.runSpan(u, head, u.firstSpan, &w.row)
	for span := u.firstSpan + 1; span < u.firstSpan+u.spans; span++ {
		w.runSpan(u, head, span, &w.span)
		w.foldSpan(w.lines(u), &w.span)
	}
	w.writeOut(u, head)
}

func (w *attnWorker) lines(u *attnUnit) int { return u.rows * w.group }

// loadQueries copies the query vectors of one key-value head, padded, into blocks of four lines.
func (w *attnWorker) loadQueries(u *attnUnit, head int) {
	dim := w.shape.KDim
	for line := range w.lines(u) {
		row, g := line/w.group, line%w.group
		from := (u.row+row)*u.seg.QStride + (head*w.group+g)*dim
		q := u.seg.Q[from : from+dim]
		to := w.q[queryAt(line, 0, w.kPad):]
		for len(q) >= 8 {
			v := *(*[8]float32)(q) // a copy of its own: the two might overlap
			*(*[8]float32)(to) = v
			q, to = q[8:], to[min(32, len(to)):]
		}
		if len(q) > 0 {
			clear(to[copy(to[:8], q):8])
		}
	}
	w.all = false
	w.fromAll, w.toAll = 0, math.MaxInt
	for row := range u.rows {
		lo, hi := w.attn.visible(u.seg, u.seg.First+u.row+row)
		w.sees[row] = Span{lo, hi}
		w.fromAll, w.toAll = max(w.fromAll, lo), min(w.toAll, hi)
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
	if w.fromAll <= base && base+attnTile <= w.toAll {
		w.seeAll()
		return 0, attnTile
	}
	w.all = false
	lo = attnTile
	line := 0
	for _, x := range w.sees[:u.rows] {
		l, h := max(x.Start-base, 0), min(x.End-base, attnTile)
		if l < h {
			lo, hi = min(lo, l), max(hi, h)
		} else {
			l, h = 0, 0
		}
		for range w.group {
			w.lo[line], w.hi[line] = int32(l), int32(h)
			line++
		}
	}
	for ; line%4 != 0; line++ { // so that the last block sees one range
		w.lo[line], w.hi[line] = w.lo[line-1], w.hi[line-1]
	}
	return lo, hi
}

func (w *attnWorker) seeAll() {
	if w.all {
		return
	}
	w.all = true
	for i := range w.lo {
		w.lo[i], w.hi[i] = 0, attnTile
	}
}

func (w *attnWorker) runTile(u *attnUnit, head, base, lo, hi int, st *attnState) {
	n, kv, ops := w.lines(u), &u.seg.KV, &active.vector
	lo, hi = lo/attnGroup, (hi+attnGroup-1)/attnGroup
	w.load(&w.keys, kv, kv.K, head, base, lo, hi, n, w.shape.KDim, w.kPad, w.k)
	ops.attnScores(w.scores, w.q, &w.keys, lo, hi, n, w.kPad)
	ops.attnSoftmax(w.scores, w.lo, w.hi, w.tile.m, w.tile.l, n, w.attn.Scale)
	w.factors(n, st, w.tile.m, w.tile.l)
	w.load(&w.vals, kv, kv.V, head, base, lo, hi, n, w.shape.VDim, w.vPad, w.v)
	ops.attnValues(st.o, w.scores, &w.vals, w.lo, w.hi, w.alpha, w.beta, n, w.vPad, w.vPad)
}

// load makes the groups [lo, hi) of a tile ready for the loops: as they lie in the cache if those take
// them so, else widened to float32 in wide, rows of pad values with zeros behind dim. The same groups of
// the next tile are asked for, by the loops or here: a cache in blocks is too scattered for the processor
// to guess what comes next.
func (w *attnWorker) load(a *attnRows, kv *KVBlocks, blocks [][]byte, head, base, lo, hi, n, dim, pad int, wide []byte) {
	row := kv.Type.RowBytes(dim)
	direct := dim == pad && (kv.Type == CacheF32 || n <= active.vector.attnDirect)
	a.typ, a.stride = kv.Type, row
	if !direct {
		a.typ, a.stride = cacheTile, 4*pad
	}
	for g := lo; g < hi; g++ {
		pos := base + g*attnGroup
		src := kv.group(blocks, head, pos, row)
		next := kv.group(blocks, head, pos+attnTile, row)
		if direct {
			a.group[g], a.next[g] = src, next
			continue
		}
		active.vector.prefetch(next)
		dst := wide[g*attnGroup*a.stride:][:attnGroup*a.stride]
		a.group[g], a.next[g] = dst, dst
		widenRows(kv.Type, floatsAt(dst), src, dim, pad)
	}
}

// group returns 16 rows of a head from position pos on, nil if there are none.
func (kv *KVBlocks) group(blocks [][]byte, head, pos, row int) []byte {
	b := pos / kv.Tokens
	if b >= len(blocks) || blocks[b] == nil {
		return nil
	}
	from := (head*kv.Tokens + pos%kv.Tokens) * row
	return blocks[b][from : from+attnGroup*row]
}

// floatsAt views aligned bytes as float32.
func floatsAt(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// widenRows widens a group of rows of n values, with zeros up to pad.
func widenRows(t CacheType, dst []float32, src []byte, n, pad int) {
	stride := t.RowBytes(n)
	if n == pad {
		active.vector.widen(t, dst, src, attnGroup, n, stride)
		return
	}
	for r := range attnGroup {
		d := dst[r*pad:][:pad]
		active.vector.widen(t, d, src[r*stride:], 1, n, stride)
		clear(d[n:])
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
		if w.attn.Sinks != nil {
			w.addSink(line, w.attn.Sinks[head*w.group+g])
		}
		if w.row.l[line] == 0 {
			clear(dst)
			continue
		}
		active.vector.divide(dst, w.row.o[line*w.vPad:][:dim], w.row.l[line])
	}
}

// addSink joins a key without a value to a line: the item (score, 1, 0).
func (w *attnWorker) addSink(line int, score float32) {
	o := w.row.o[line*w.vPad:][:w.vPad]
	m, l := w.row.m[line], w.row.l[line]
	if l == 0 {
		clear(o)
		w.row.l[line] = 1
		return
	}
	top := m
	if score > top {
		top = score
	}
	alpha, beta := Exp(m-top), Exp(score-top)
	w.row.l[line] = fma32(l, alpha, beta)
	none := w.span.o[:w.vPad]
	clear(none)
	active.vector.attnFold(o, none, alpha, beta)
}
