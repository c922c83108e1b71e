package nn_test

import (
	"context"
	"errors"
	"github.com/spillway/spillway/internal/budget"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/spillway/spillway/internal/kernel"
	"github.com/spillway/spillway/internal/kv"
	"github.com/spillway/spillway/internal/layout"
	"github.com/spillway/spillway/internal/nn"
	"github.com/spillway/spillway/internal/nn/nntest"
	"github.com/spillway/spillway/internal/quant"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a tiny model that runs, with caches for its sequences.
type bench struct {
	*nntest.Machine
	t     *testing.T
	cache *kv.Cache
}

// start runs d on random weights of a type; with an f32 cache if exact.
func start(t *testing.T, d nn.Decoder, w *nntest.Weights, exact bool) *bench {
	t.Helper()
	m := nntest.Start(t, d, w, nntest.Options{Exact: exact})
	typ := kernel.CacheF16
	if exact {
		typ = kernel.CacheF32
	}
	return &bench{m, t, openCache(t, m.Ledger, kv.Shape{Layers: m.Model.Cache, Type: typ})}
}

func openCache(t *testing.T, l *budget.Ledger, s kv.Shape) *kv.Cache {
	t.Helper()
	c, err := kv.New(l, s, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sequence is a new sequence with room for n positions.
func (b *bench) sequence(n int) *kv.Sequence {
	b.t.Helper()
	s := b.cache.NewSequence()
	if err := s.Grow(n); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { s.Release() })
	return s
}

// prompt is a segment for all of ids in a cache of its own, every row of which reaches the head.
func (b *bench) prompt(ids []int32) *nn.Segment {
	return segment(b.sequence(len(ids)), 0, ids)
}

func segment(cache *kv.Sequence, first int, ids []int32) *nn.Segment {
	s := &nn.Segment{Cache: cache, First: first, IDs: ids, RopeLength: 512}
	for i := range ids {
		s.Head = append(s.Head, i)
	}
	return s
}

// forward runs a batch and returns the logits of each segment.
func (b *bench) forward(segs ...*nn.Segment) [][]float32 {
	b.t.Helper()
	out, err := b.Model.Forward(context.Background(), b.Env, &nn.Batch{Segments: segs})
	if err != nil {
		b.t.Fatal(err)
	}
	logits := make([][]float32, len(segs))
	for i, s := range segs {
		n := len(s.Head) * b.Model.Layout.Vocab
		logits[i], out = slices.Clone(out[:n]), out[n:]
	}
	if len(out) > 0 {
		b.t.Fatalf("%d values are nobody's", len(out))
	}
	return logits
}

// one runs a segment alone.
func (b *bench) one(s *nn.Segment) []float32 {
	b.t.Helper()
	return b.forward(s)[0]
}

func tokens(seed uint64, n int) []int32 {
	random := rand.New(rand.NewPCG(seed, 2))
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(random.IntN(96))
	}
	return ids
}

func rope() *nn.Rope { return &nn.Rope{Dim: 16, Base: 100} }

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// near fails unless got is want within rounding of f32.
func near(t *testing.T, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d values, expected %d", len(got), len(want))
	}
	var diff, top float64
	for i, w := range want {
		diff = math.Max(diff, math.Abs(float64(got[i])-float64(w))) // NaN stays
		top = math.Max(top, math.Abs(float64(w)))
	}
	if !(diff <= 1e-5*top) {
		t.Errorf("relative error %.3g", diff/top)
	}
}

// sight is who sees whom, and at which angles keys and queries turn.
type sight struct {
	name   string
	rope   *nn.Rope
	window int
	set    func(*nn.Segment)
	sees   func(row, key int) bool
	angle  func(row, i int) float64
	plain  bool // equal to the causal case
}

// sights are the masks and positions of a sequence of n tokens.
func sights(n int) []sight {
	image := []kernel.Span{{Start: 5, End: 12}, {Start: 20, End: 33}}
	inside := func(row, key int) bool {
		return slices.ContainsFunc(image, func(s kernel.Span) bool {
			return s.Start <= row && row < s.End && s.Start <= key && key < s.End
		})
	}
	streams := make([][3]int32, n) // as Qwen2-VL numbers a small image
	for i := range streams {
		streams[i] = [3]int32{int32(i / 6), int32(i % 6), int32(i * 2 % 7)}
	}
	sectioned := &nn.Rope{Dim: 16, Base: 100, Sections: [3]int{3, 2, 3}}
	stream := []int{0, 0, 0, 1, 1, 2, 2, 2}
	return []sight{
		{name: "causal", rope: rope(), sees: causal, plain: true},
		{name: "bidirectional", rope: rope(), set: func(s *nn.Segment) { s.Mask = kernel.Bidirectional },
			sees: func(row, key int) bool { return true }},
		{name: "spans", rope: rope(), set: func(s *nn.Segment) { s.Mask, s.Spans = kernel.Spans, image },
			sees: func(row, key int) bool { return causal(row, key) || inside(row, key) }},
		{name: "window", rope: rope(), window: 7, sees: func(row, key int) bool { return key <= row && key > row-7 }},
		{name: "bidirectional window", rope: rope(), window: 7, set: func(s *nn.Segment) { s.Mask = kernel.Bidirectional },
			sees: func(row, key int) bool { return key < row+7 && key > row-7 }},
		{name: "window and spans", rope: rope(), window: 4, set: func(s *nn.Segment) { s.Mask, s.Spans = kernel.Spans, image },
			sees: func(row, key int) bool { return key <= row && key > row-4 || inside(row, key) }},
		{name: "one stream of positions", rope: rope(), set: func(s *nn.Segment) { s.Positions = streams }, sees: causal,
			angle: func(row, i int) float64 { return float64(streams[row][0]) * frequency(sectioned, i) }},
		{name: "three streams of positions", rope: sectioned, set: func(s *nn.Segment) { s.Positions = streams }, sees: causal,
			angle: func(row, i int) float64 { return float64(streams[row][stream[i]]) * frequency(sectioned, i) }},
		{name: "three equal streams", rope: sectioned, sees: causal, plain: true},
		{name: "half of a head rotates", rope: &nn.Rope{Dim: 8, Base: 100}, sees: causal},
	}
}

// Masks, positions and embeddings against a computation in float64.
func TestForwardAgainstFloat64(t *testing.T) {
	ids := tokens(1, 40)
	for _, c := range sights(len(ids)) {
		t.Run(c.name, func(t *testing.T) {
			d, w := nntest.Tiny(c.rope), nntest.NewWeights(quant.F32, 1)
			for i := range d.Blocks {
				d.Blocks[i].Mixer.Window = c.window
			}
			b := start(t, d, w, true)
			s := b.prompt(ids)
			if c.set != nil {
				c.set(s)
			}
			if c.angle == nil {
				c.angle = plain(d)
			}
			got := b.one(s)
			ref := reference{d: d, w: w, sees: c.sees, angle: c.angle}
			near(t, got, ref.logits(ref.embeddings(ids)))
			if base := start(t, nntest.Tiny(rope()), nntest.NewWeights(quant.F32, 1), true); sameBits(got, base.one(base.prompt(ids))) != c.plain {
				t.Errorf("the same logits as the causal case: %v, expected %v", !c.plain, c.plain)
			}
		})
	}
}

// Embeddings and positions that say what ids and First say give the same bits.
func TestEmbedsAndPositionsInsteadOfIDs(t *testing.T) {
	d, w := nntest.Tiny(rope()), nntest.NewWeights(quant.Q8_0, 1)
	b := start(t, d, w, false)
	ids := tokens(2, 21)
	want := b.one(b.prompt(ids))
	s := b.prompt(ids)
	s.Embeds, s.N, s.IDs = reference{d: d, w: w}.embeddings(ids), len(ids), nil
	if !sameBits(b.one(s), want) {
		t.Error("embeddings of the same ids give other logits")
	}
	s = b.prompt(ids)
	for i := range ids {
		s.Positions = append(s.Positions, [3]int32{int32(i), int32(i), int32(i)})
	}
	if !sameBits(b.one(s), want) {
		t.Error("the same positions, given one by one, give other logits")
	}
}

// A batch is worth what its segments are alone, however they are cut.
func TestBatchCompany(t *testing.T) {
	for _, typ := range []quant.Type{quant.F32, quant.Q8_0, quant.Q4_0, quant.F16} {
		t.Run(typ.String(), func(t *testing.T) {
			b := start(t, nntest.Tiny(rope()), nntest.NewWeights(typ, 3), false)
			prompts := [][]int32{tokens(1, 37), tokens(2, 1), tokens(3, 20)}
			var alone [][]float32
			for _, ids := range prompts {
				alone = append(alone, b.one(b.prompt(ids)))
			}
			together := b.forward(b.prompt(prompts[0]), b.prompt(prompts[1]), b.prompt(prompts[2]))
			for i := range prompts {
				if !sameBits(together[i], alone[i]) {
					t.Errorf("prompt %d has other logits in company", i)
				}
			}
			long := b.sequence(len(prompts[0]))
			var pieces []float32
			for at := 0; at < len(prompts[0]); {
				n := min(1+at%11, len(prompts[0])-at)
				got := b.forward(b.prompt(prompts[2]), segment(long, at, prompts[0][at:][:n]), b.prompt(prompts[1]))
				pieces = append(pieces, got[1]...)
				at += n
			}
			if !sameBits(pieces, alone[0]) {
				t.Error("a prompt in pieces has other logits")
			}
		})
	}
}

// Only the wanted rows reach the head, and they are the same as among all.
func TestHeadRows(t *testing.T) {
	b := start(t, nntest.Tiny(rope()), nntest.NewWeights(quant.F32, 1), false)
	ids, vocab := tokens(4, 9), b.Model.Layout.Vocab
	all := b.one(b.prompt(ids))
	s, none := b.prompt(ids), b.prompt(ids)
	s.Head, none.Head = []int{2, 8}, nil
	got := b.forward(none, s)
	if len(got[0]) != 0 || !sameBits(got[1], slices.Concat(all[2*vocab:3*vocab], all[8*vocab:])) {
		t.Error("rows 2 and 8 differ from those among all")
	}
}

// What was cached beyond the cut leaves no trace.
func TestCutAndContinue(t *testing.T) {
	b := start(t, nntest.Tiny(rope()), nntest.NewWeights(quant.Q8_0, 1), false)
	ids, other := tokens(5, 60), tokens(6, 60)
	want := b.one(b.prompt(ids))
	for _, cut := range []int{0, 1, 15, 16, 17, 48, 59} {
		seq := b.sequence(len(other))
		b.one(segment(seq, 0, slices.Concat(ids[:cut], other[cut:])))
		if err := errors.Join(seq.Cut(cut), seq.Grow(len(ids))); err != nil {
			t.Fatal(err)
		}
		if got := b.one(segment(seq, cut, ids[cut:])); !sameBits(got, want[cut*b.Model.Layout.Vocab:]) {
			t.Errorf("cut at %d: other logits than without the detour", cut)
		}
	}
}

// lowRank is a random update of a matrix; it adds scale·B·A to values, the merged weights.
func lowRank(seed uint64, m *layout.Matrix, rank int, scale float32, values []float32) nn.LowRank {
	random := rand.New(rand.NewPCG(seed, 3))
	p := nn.LowRank{Rank: rank, A: make([]float32, rank*m.Cols), B: make([]float32, m.Rows*rank)}
	for _, x := range [][]float32{p.A, p.B} {
		for i := range x {
			x[i] = float32(random.NormFloat64() / 8)
		}
	}
	for i := range m.Rows {
		for j := range m.Cols {
			sum := 0.0
			for r := range rank {
				sum += float64(p.B[i*rank+r]) * float64(p.A[r*m.Cols+j])
			}
			values[i*m.Cols+j] += float32(sum * float64(scale))
		}
	}
	return p
}

// An adapter on every matrix, the head too, is what merged weights would be, and its neighbours in
// the batch do not notice it.
func TestAdapter(t *testing.T) {
	for _, rank := range []int{1, 5, nn.MaxRank} {
		d, w := nntest.Tiny(rope()), nntest.NewWeights(quant.F32, 1)
		b := start(t, d, w, true)
		ids := tokens(7, 19)
		want := b.one(b.prompt(ids))
		a := &nn.Adapter{ID: 3, Scale: 0.5, Parts: map[*layout.Matrix]nn.LowRank{}}
		for i, m := range b.Model.Layout.Matrices {
			if m != b.Model.Layout.Bundles[0].Matrices[0] {
				a.Parts[m] = lowRank(uint64(i), m, rank, a.Scale, w.Values[m.Name])
			}
		}
		if err := a.Check(); err != nil {
			t.Fatal(err)
		}
		adapted := b.prompt(ids)
		adapted.Adapter = a
		got := b.forward(b.prompt(ids), adapted, b.prompt(ids))
		if !sameBits(got[0], want) || !sameBits(got[2], want) {
			t.Errorf("rank %d: a neighbour's logits changed", rank)
		}
		ref := reference{d: d, w: w, sees: causal, angle: plain(d)} // on the merged values
		near(t, got[1], ref.logits(ref.embeddings(ids)))
	}
}

// The arena of a pass, not a byte larger than planned, is enough for the largest batch with updates of
// the largest rank on every matrix. Arenas panic when they are not.
func TestScratchIsEnough(t *testing.T) {
	for _, typ := range []quant.Type{quant.F32, quant.Q8_0} {
		for _, rows := range []int{1, 2, 7, 64} {
			m := nntest.Start(t, nntest.Tiny(rope()), nntest.NewWeights(typ, 1), nntest.Options{Rows: rows, HeadRows: 1, Threads: 3})
			b := &bench{m, t, openCache(t, m.Ledger, kv.Shape{Layers: m.Model.Cache, Type: kernel.CacheF16})}
			s := b.prompt(tokens(1, rows))
			s.Head = []int{rows - 1}
			s.Adapter = &nn.Adapter{Scale: 1, Parts: map[*layout.Matrix]nn.LowRank{}}
			for _, x := range m.Model.Layout.Matrices[1:] {
				s.Adapter.Parts[x] = nn.LowRank{Rank: nn.MaxRank, A: make([]float32, nn.MaxRank*x.Cols), B: make([]float32, x.Rows*nn.MaxRank)}
			}
			b.one(s)
		}
	}
}

func TestAdapterThatDoesNotFit(t *testing.T) {
	b := start(t, nntest.Tiny(rope()), nntest.NewWeights(quant.F32, 1), true)
	m := b.Model.Layout.Matrices[1]
	for what, p := range map[string]nn.LowRank{
		"rank 0":   {},
		"rank 257": {Rank: 257, A: make([]float32, 257*m.Cols), B: make([]float32, 257*m.Rows)},
		"3 and":    {Rank: 1, A: make([]float32, 3), B: make([]float32, m.Rows)},
	} {
		err := (&nn.Adapter{ID: 7, Parts: map[*layout.Matrix]nn.LowRank{m: p}}).Check()
		if err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), m.Name) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A value beyond f16 ends its own segment and says where; the others keep their bits.
func TestCacheOverflow(t *testing.T) {
	b := start(t, nntest.Tiny(rope()), nntest.NewWeights(quant.F32, 1), false)
	ids := tokens(8, 20)
	want := b.one(b.prompt(ids))
	values := b.Model.Layout.Bundles[3].Matrices[2] // layer 1, v
	if values.Name != nntest.Key(1, "attn.v.weight") {
		t.Fatalf("the matrix is %s", values.Name)
	}
	seq := b.sequence(len(ids))
	b.one(segment(seq, 0, ids[:12]))
	large := segment(seq, 12, ids[12:])
	large.Adapter = &nn.Adapter{Scale: 1e9, Parts: map[*layout.Matrix]nn.LowRank{
		values: lowRank(1, values, 2, 0, make([]float32, values.Rows*values.Cols)),
	}}
	before := b.prompt(ids)
	got := b.forward(before, large)
	if before.Err != nil || !sameBits(got[0], want) {
		t.Errorf("the neighbour has other logits, or an error: %v", before.Err)
	}
	var overflow *nn.CacheRangeError
	if !errors.As(large.Err, &overflow) || overflow.Layer != 1 || overflow.Position != 12 || overflow.Type != kernel.CacheF16 {
		t.Errorf("the segment's error is %v, expected one at layer 1 and position 12", large.Err)
	}
}

// Every type but f32 has a way out, which the error names.
func TestCacheRangeErrorNamesTheWayOut(t *testing.T) {
	for typ, want := range map[kernel.CacheType]string{
		kernel.CacheFP8: "layer 3, position 7: a key or value is not finite in the fp8 cache: try --kv f32",
		kernel.CacheF32: "layer 3, position 7: a key or value is not finite",
	} {
		if e := (&nn.CacheRangeError{Layer: 3, Position: 7, Type: typ}); e.Error() != want {
			t.Errorf("%v, expected %s", e, want)
		}
	}
}

// Values of the smaller types overflow as those of f16 do.
func TestCacheOverflowOfTypes(t *testing.T) {
	for typ, factor := range map[kernel.CacheType]float32{
		kernel.CacheBF16: float32(math.Inf(1)), kernel.CacheFP8: 1e5, kernel.CacheF32: float32(math.Inf(1)),
	} {
		d := nntest.Tiny(rope())
		m := nntest.Start(t, d, nntest.NewWeights(quant.F32, 1), nntest.Options{})
		b := &bench{m, t, openCache(t, m.Ledger, kv.Shape{Layers: m.Model.Cache, Type: typ})}
		ids := tokens(8, 20)
		if fine := b.prompt(ids); b.one(fine) == nil || fine.Err != nil {
			t.Errorf("%v: %v without a large value", typ, fine.Err)
		}
		values := m.Model.Layout.Bundles[3].Matrices[2]
		large := b.prompt(ids)
		large.Adapter = &nn.Adapter{Scale: factor, Parts: map[*layout.Matrix]nn.LowRank{
			values: lowRank(1, values, 2, 0, make([]float32, values.Rows*values.Cols)),
		}}
		b.forward(large)
		var overflow *nn.CacheRangeError
		if !errors.As(large.Err, &overflow) || overflow.Layer != 1 || overflow.Position != 0 || overflow.Type != typ {
			t.Errorf("%v: the error is %v, expected one at layer 1, position 0", typ, large.Err)
		}
	}
}

// stretch is a scaling that depends on the sequence's length.
type stretch struct{}

func (stretch) Length(n int) int { return max(n, 64) }

func (stretch) Frequencies(dim int, base float64, length int) ([]float32, float32) {
	return kernel.InvFreq(dim, base*float64(length)), 1
}

// Every sequence of a batch rotates by its own length, and lengths that rotate alike are told so.
func TestRopeLength(t *testing.T) {
	r := &nn.Rope{Dim: 16, Base: 100, Scaling: stretch{}}
	b := start(t, nntest.Tiny(r), nntest.NewWeights(quant.F32, 1), true)
	ids := tokens(9, 12)
	short, long := b.prompt(ids), b.prompt(ids)
	short.RopeLength, long.RopeLength = 64, 400
	got := b.forward(short, long)
	for i, length := range []float64{64, 400} {
		d := nntest.Tiny(&nn.Rope{Dim: 16, Base: 100 * length})
		alone := start(t, d, nntest.NewWeights(quant.F32, 1), true)
		if !sameBits(got[i], alone.one(alone.prompt(ids))) {
			t.Errorf("a length of %v: other logits than with its base alone", length)
		}
	}
	if m := b.Model; m.RopeLength(10) != m.RopeLength(64) || m.RopeLength(65) == m.RopeLength(64) {
		t.Errorf("lengths 10, 64, 65 map to %d, %d, %d", m.RopeLength(10), m.RopeLength(64), m.RopeLength(65))
	}
}

// Divisors from the checkpoint (llama3 scaling in GGUF files) divide the frequencies.
func TestRopeFactors(t *testing.T) {
	d, w := nntest.Tiny(&nn.Rope{Dim: 16, Base: 100, Factors: "rope_freqs.weight"}), nntest.NewWeights(quant.F32, 1)
	b := start(t, d, w, true)
	ids := tokens(10, 30)
	factors := w.Values[nntest.Key(-1, "rope_freqs.weight")]
	ref := reference{d: d, w: w, sees: causal, angle: func(row, i int) float64 {
		return float64(row) * frequency(d.Blocks[0].Mixer.Rope, i) / float64(factors[i])
	}}
	near(t, b.one(b.prompt(ids)), ref.logits(ref.embeddings(ids)))
}
