package kernel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spillway/spillway/internal/quant"
)

// attnItem is what docs/numerics.md folds: of a tile, a span, or a row.
type attnItem struct {
	m, l float32
	o    []float32
}

// joined folds b into a by the definition.
func (a attnItem) joined(b attnItem) attnItem {
	if b.o == nil {
		return a
	}
	if a.o == nil {
		return b
	}
	r := attnItem{m: a.m}
	if b.m > a.m {
		r.m = b.m
	}
	alpha, beta := Exp(a.m-r.m), Exp(b.m-r.m)
	r.l = fma32(a.l, alpha, float32(b.l*beta))
	for d := range a.o {
		r.o = append(r.o, fma32(a.o[d], alpha, float32(b.o[d]*beta)))
	}
	return r
}

// defineTile is one tile of one query vector, written without regard to speed.
func defineTile(q []float32, keys, values [][]float32, base int, sees func(int) bool, scale float32) attnItem {
	var t attnItem
	var at []int
	var s []float32
	for p := base; p < min(base+64, len(keys)); p++ {
		if !sees(p) {
			continue
		}
		var sum [8]float32
		for i := range q {
			sum[i%8] = fma32(q[i], keys[p][i], sum[i%8])
		}
		for i := len(q); i%8 != 0; i++ {
			sum[i%8] = fma32(0, 0, sum[i%8])
		}
		x := total(&sum) * scale
		if len(s) == 0 || x > t.m {
			t.m = x
		}
		at, s = append(at, p), append(s, x)
	}
	if len(s) == 0 {
		return t
	}
	t.o = make([]float32, len(values[0]))
	var l [8]float32
	for i, x := range s {
		p := Exp(x - t.m)
		l[at[i]%8] += p
		for d, v := range values[at[i]] {
			t.o[d] = fma32(p, v, t.o[d])
		}
	}
	t.l = total(&l)
	return t
}

func defineAttention(q []float32, keys, values [][]float32, sees func(int) bool, scale float32, sink *float32) []float32 {
	var row attnItem
	for span := 0; span < len(keys); span += 1024 {
		var s attnItem
		for base := span; base < min(span+1024, len(keys)); base += 64 {
			s = s.joined(defineTile(q, keys, values, base, sees, scale))
		}
		row = row.joined(s)
	}
	if sink != nil {
		row = row.joined(attnItem{m: *sink, l: 1, o: make([]float32, len(values[0]))})
	}
	out := make([]float32, len(values[0]))
	for d := range row.o {
		out[d] = row.o[d] / row.l
	}
	return out
}

// plainAttention is softmax attention in float64, to show that the definition computes attention.
func plainAttention(q []float32, keys, values [][]float32, sees func(int) bool, scale float32, sink *float32) []float64 {
	var l float64
	if sink != nil {
		l = math.Exp(float64(*sink))
	}
	out := make([]float64, len(values[0]))
	for p := range keys {
		if !sees(p) {
			continue
		}
		var s float64
		for i := range q {
			s += float64(q[i]) * float64(keys[p][i])
		}
		w := math.Exp(s * float64(scale))
		l += w
		for d, v := range values[p] {
			out[d] += w * float64(v)
		}
	}
	for d := range out {
		out[d] /= l
	}
	return out
}

// attnCase is a whole sequence with its cache.
type attnCase struct {
	attn   Attention
	shape  AttentionShape
	typ    CacheType
	length int
	mask   MaskKind
	spans  []Span
	q      []float32     // [length][Heads][KDim]
	k, v   [][][]float32 // [KVHeads][length][dim]
}

func newAttnCase(r *rand.Rand, typ CacheType, shape AttentionShape, length, window int) *attnCase {
	c := &attnCase{shape: shape, typ: typ, length: length}
	c.attn = Attention{Heads: shape.Heads, Scale: float32(1 / math.Sqrt(float64(shape.KDim))), Window: window}
	c.q = randomFloats(r, length*shape.Heads*shape.KDim, typ)
	for range shape.KVHeads {
		var k, v [][]float32
		for range length {
			k = append(k, randomFloats(r, shape.KDim, typ))
			v = append(v, randomFloats(r, shape.VDim, typ))
		}
		c.k, c.v = append(c.k, k), append(c.v, v)
	}
	return c
}

// randomFloats are normal values that typ can hold.
func randomFloats(r *rand.Rand, n int, typ CacheType) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return held(typ, x)
}

// held is what the cache makes of x, whose length need not be a multiple of 32.
func held(typ CacheType, x []float32) []float32 {
	padded := append(clone(x), make([]float32, -len(x)&31)...)
	widenRowGo(typ, padded, appendCache(nil, typ, padded))
	return padded[:len(x)]
}

func appendCache(b []byte, typ CacheType, x []float32) []byte {
	row := make([]byte, typ.RowBytes(len(x)))
	typ.Store(row, x)
	return append(b, row...)
}

func appendValues(b []byte, typ quant.Type, x []float32) []byte {
	for _, v := range x {
		switch typ {
		case quant.F16:
			b = binary.LittleEndian.AppendUint16(b, quant.F32ToF16(v))
		case quant.BF16:
			b = binary.LittleEndian.AppendUint16(b, quant.F32ToBF16(v))
		default:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	return b
}

// blocks lays the cache out in blocks of the given number of positions. What lies behind the last
// position is garbage, as in a real block: NaN.
func (c *attnCase) blocks(tokens int) KVBlocks {
	kv := KVBlocks{Type: c.typ, Tokens: tokens, KVHeads: c.shape.KVHeads, KDim: c.shape.KDim, VDim: c.shape.VDim}
	fill := func(rows [][][]float32, dim, first int) []byte {
		var b []byte
		for h := range rows {
			for p := first; p < first+tokens; p++ {
				if p < c.length {
					b = appendCache(b, c.typ, rows[h][p])
					continue
				}
				b = append(b, bytes.Repeat([]byte{0xff}, c.typ.RowBytes(dim))...)
			}
		}
		return b
	}
	for first := 0; first < c.length; first += tokens {
		kv.K = append(kv.K, fill(c.k, c.shape.KDim, first))
		kv.V = append(kv.V, fill(c.v, c.shape.VDim, first))
	}
	return kv
}

// sees is the mask as a predicate, written apart from Attention.visible.
func (c *attnCase) sees(row, key int) bool {
	near := c.attn.Window == 0 || (row-key < c.attn.Window && key-row < c.attn.Window)
	switch c.mask {
	case Bidirectional:
		return near
	case Spans:
		for _, s := range c.spans {
			if s.Start <= row && row < s.End && s.Start <= key && key < s.End {
				return true
			}
		}
	}
	return key <= row && near
}

// run computes the rows from cuts[i] to cuts[i+1] in one batch each or all in one.
func (c *attnCase) run(threads, tokens int, cuts []int, together bool, extra int) []float32 {
	p := NewPool(threads)
	defer p.Close()
	rowQ, rowOut := c.shape.Heads*c.shape.KDim, c.shape.Heads*c.shape.VDim
	out := make([]float32, c.length*rowOut)
	for i := range out {
		out[i] = -77
	}
	scratch := make([]byte, AttentionScratch(c.shape, threads, c.length)+extra)
	kv := c.blocks(tokens)
	var segs []Segment
	for i := 1; i < len(cuts); i++ {
		a, b := cuts[i-1], cuts[i]
		segs = append(segs, Segment{Q: c.q[a*rowQ : b*rowQ], QStride: rowQ, Out: out[a*rowOut : b*rowOut],
			OutStride: rowOut, Rows: b - a, First: a, KV: kv, Mask: c.mask, Spans: c.spans})
		if !together {
			c.attn.Run(p, scratch, segs)
			segs = segs[:0]
		}
	}
	c.attn.Run(p, scratch, segs)
	return out
}

// define computes the rows from first on, and if plain in float64 too.
func (c *attnCase) define(first int, plain bool) (bitsWanted []float32, float64Wanted []float64) {
	s := c.shape
	for row := first; row < c.length; row++ {
		for h := range s.Heads {
			q := c.q[(row*s.Heads+h)*s.KDim:][:s.KDim]
			kvh := h / (s.Heads / s.KVHeads)
			sees := func(key int) bool { return c.sees(row, key) }
			var sink *float32
			if c.attn.Sinks != nil {
				sink = &c.attn.Sinks[h]
			}
			bitsWanted = append(bitsWanted, defineAttention(q, c.k[kvh], c.v[kvh], sees, c.attn.Scale, sink)...)
			if plain {
				float64Wanted = append(float64Wanted, plainAttention(q, c.k[kvh], c.v[kvh], sees, c.attn.Scale, sink)...)
			}
		}
	}
	return bitsWanted, float64Wanted
}

func firstDifference(got, want []float32) string {
	for i := range want {
		if !same(got[i], want[i]) {
			return fmt.Sprintf("value %d is %v (%08x), want %v (%08x)", i, got[i], bits(got[i]), want[i], bits(want[i]))
		}
	}
	return ""
}

// eachISA runs f under every instruction set of this machine.
func eachISA(t *testing.T, f func(t *testing.T)) {
	for _, isa := range ISAs() {
		t.Run(isa, func(t *testing.T) {
			defer Force(isa)()
			f(t)
		})
	}
}

func attnShapes() map[string]func(r *rand.Rand) *attnCase {
	return map[string]func(r *rand.Rand) *attnCase{
		"f16": func(r *rand.Rand) *attnCase {
			return newAttnCase(r, CacheF16, AttentionShape{6, 2, 64, 64}, 150, 0)
		},
		"f32 window": func(r *rand.Rand) *attnCase {
			return newAttnCase(r, CacheF32, AttentionShape{2, 2, 16, 40}, 200, 16)
		},
		"odd dims": func(r *rand.Rand) *attnCase {
			return newAttnCase(r, CacheF16, AttentionShape{3, 1, 20, 12}, 130, 0)
		},
		"bf16": func(r *rand.Rand) *attnCase {
			return newAttnCase(r, CacheBF16, AttentionShape{2, 1, 24, 72}, 90, 70)
		},
		"f32": func(r *rand.Rand) *attnCase {
			return newAttnCase(r, CacheF32, AttentionShape{5, 1, 32, 80}, 130, 0)
		},
		"fp8": func(r *rand.Rand) *attnCase {
			return newAttnCase(r, CacheFP8, AttentionShape{8, 2, 64, 80}, 140, 0)
		},
		"q8_0": func(r *rand.Rand) *attnCase {
			return newAttnCase(r, CacheQ8, AttentionShape{4, 2, 64, 96}, 140, 0)
		},
		"q8_0 alone": func(r *rand.Rand) *attnCase {
			return newAttnCase(r, CacheQ8, AttentionShape{2, 2, 96, 128}, 100, 37)
		},
		"sinks": func(r *rand.Rand) *attnCase {
			c := newAttnCase(r, CacheF16, AttentionShape{4, 2, 32, 32}, 150, 40)
			c.attn.Sinks = []float32{0.5, -3, 4, 90}
			return c
		},
		"wide": func(r *rand.Rand) *attnCase {
			return newAttnCase(r, CacheF16, AttentionShape{1, 1, 128, 128}, 130, 0)
		},
		"two spans": func(r *rand.Rand) *attnCase {
			return newAttnCase(r, CacheF16, AttentionShape{1, 1, 8, 8}, 1060, 0)
		},
		"bidirectional": func(r *rand.Rand) *attnCase {
			c := newAttnCase(r, CacheF32, AttentionShape{2, 2, 16, 16}, 140, 30)
			c.mask = Bidirectional
			return c
		},
		"image spans": func(r *rand.Rand) *attnCase {
			c := newAttnCase(r, CacheF16, AttentionShape{2, 1, 16, 16}, 200, 20)
			c.mask, c.spans = Spans, []Span{{3, 70}, {100, 104}}
			return c
		},
	}
}

func TestAttentionIsDefinition(t *testing.T) {
	for name, make := range attnShapes() {
		c := make(rand.New(rand.NewPCG(11, 12)))
		want, plain := c.define(0, true)
		for i, w := range plain {
			if math.Abs(float64(want[i])-w) > 2e-6*math.Max(1, math.Abs(w)) {
				t.Fatalf("%s: the definition gives %v where softmax attention is %v", name, want[i], w)
			}
		}
		t.Run(name, func(t *testing.T) {
			eachISA(t, func(t *testing.T) {
				for _, tokens := range []int{16, 32, 64} {
					got := c.run(1+tokens/32, tokens, []int{0, c.length}, true, 0)
					if d := firstDifference(got, want); d != "" {
						t.Fatalf("blocks of %d: %s", tokens, d)
					}
				}
			})
		})
	}
}

// cutsFor cuts a sequence at random points, but never inside a span or, if bidirectional, at all.
func (c *attnCase) cutsFor(r *rand.Rand) []int {
	cuts := []int{0}
	for at := 0; c.mask != Bidirectional; {
		at += 1 + r.IntN(1+r.IntN(120))
		for _, s := range c.spans {
			if s.Start < at && at < s.End {
				at = s.End
			}
		}
		if at >= c.length {
			break
		}
		cuts = append(cuts, at)
	}
	return append(cuts, c.length)
}

func TestAttentionSplits(t *testing.T) {
	for name, make := range attnShapes() {
		t.Run(name, func(t *testing.T) {
			eachISA(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(13, 14))
				c := make(r)
				want := c.run(1, 16, []int{0, c.length}, true, 0)
				for range 4 {
					cuts := c.cutsFor(r)
					got := c.run(1+r.IntN(4), 16<<r.IntN(3), cuts, r.IntN(2) == 0, r.IntN(3)*10000)
					if d := firstDifference(got, want); d != "" {
						t.Fatalf("cuts %v: %s", cuts, d)
					}
				}
			})
		})
	}
}

// Decode rows at the end of a long context take the path with stored partials.
func TestAttentionLongDecode(t *testing.T) {
	for _, window := range []int{0, 1300} {
		c := newAttnCase(rand.New(rand.NewPCG(15, 16)), CacheF16, AttentionShape{4, 2, 8, 8}, 2100, window)
		want, _ := c.define(2090, false)
		eachISA(t, func(t *testing.T) {
			for _, cuts := range [][]int{{2090, 2091, 2092, 2099, 2100}, {2090, 2095, 2100}, {2090, 2098, 2100}} {
				for _, extra := range []int{0, 500, 3000, 1 << 20} {
					got := c.run(2, 16, cuts, true, extra)[2090*32:]
					if d := firstDifference(got, want); d != "" {
						t.Fatalf("window %d, cuts %v, %d bytes more: %s", window, cuts, extra, d)
					}
				}
			}
		})
	}
}

// NaN, infinities, huge values and −0 stay where the definition puts them, under every instruction set.
func TestAttentionAdversarial(t *testing.T) {
	special := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 6e4, -6e4,
		fromBits(0x80000000), 6e-8, -6e-8}
	r := rand.New(rand.NewPCG(17, 18))
	for round := range 12 {
		c := newAttnCase(r, []CacheType{CacheF16, CacheF32}[round%2], AttentionShape{2, 1, 24, 24}, 140, 0)
		for range 1 + round%4 {
			x := special[r.IntN(len(special))]
			switch r.IntN(3) {
			case 0:
				c.q[r.IntN(len(c.q))] = x
			case 1:
				c.k[0][r.IntN(c.length)][r.IntN(24)] = x
			case 2:
				for d := range 24 { // a whole row of values, so that sums of one sign of zero occur
					c.v[0][r.IntN(c.length)][d] = x
				}
			}
		}
		want, _ := c.define(0, false)
		eachISA(t, func(t *testing.T) {
			if d := firstDifference(c.run(2, 16, []int{0, 3, 70, c.length}, true, 0), want); d != "" {
				t.Errorf("round %d: %s", round, d)
			}
		})
	}
}

func TestAttentionAllocatesNothing(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	s := AttentionShape{4, 2, 32, 32}
	for _, rows := range []int{1, 20} {
		segs := []Segment{benchSegment(CacheQ8, s, 3000, rows)}
		scratch := make([]byte, AttentionScratch(s, 2, 3000))
		a := Attention{Heads: 4, Scale: 0.125}
		if n := testing.AllocsPerRun(50, func() { a.Run(p, scratch, segs) }); n >= 1 {
			t.Errorf("%d rows: %v allocations", rows, n)
		}
	}
}
