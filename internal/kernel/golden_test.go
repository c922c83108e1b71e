package kernel

import (
	"encoding/binary"
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/quant"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/goldens.txt anew; docs/numerics.md says what that means")

// source makes numbers that depend on nothing but the seed: SplitMix64 (Steele et al., 2014).
type source uint64

func (s *source) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// floats returns n values in [−4, 4), with exponents from a wide range.
func (s *source) floats(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		u := s.next()
		x[i] = float32(int32(u)) * 0x1p-29 / float32(int(1)<<(u>>60))
	}
	return x
}

// goldenLine is one section's values, as bits.
type goldenLine struct {
	name  string
	words []uint32
}

func (g goldenLine) String() string {
	var b strings.Builder
	b.WriteString(g.name)
	if len(g.words) > 96 { // long results are kept as a digest and their first values
		h := fnv.New64a()
		for _, w := range g.words {
			h.Write(binary.LittleEndian.AppendUint32(nil, w))
		}
		fmt.Fprintf(&b, " fnv64a:%016x", h.Sum64())
		g.words = g.words[:8]
	}
	for _, w := range g.words {
		fmt.Fprintf(&b, " %08x", w)
	}
	return b.String()
}

// floatWords are the bits of x, with one NaN for all.
func floatWords(x ...float32) []uint32 {
	var w []uint32
	for _, v := range x {
		if v != v {
			v = fromBits(canonicalNaN)
		}
		w = append(w, bits(v))
	}
	return w
}

func halfWords(h []uint16) []uint32 {
	var w []uint32
	for _, v := range h {
		w = append(w, uint32(v))
	}
	return w
}

// byteWords packs bytes, four in a word.
func byteWords(b []byte) []uint32 {
	var w []uint32
	for b = append(b, make([]byte, -len(b)&3)...); len(b) > 0; b = b[4:] {
		w = append(w, binary.LittleEndian.Uint32(b))
	}
	return w
}

func doubleWords(x ...float64) []uint32 {
	var w []uint32
	for _, v := range x {
		b := math.Float64bits(v)
		w = append(w, uint32(b>>32), uint32(b))
	}
	return w
}

// TestGoldens compares every section of docs/numerics.md with the bits that are committed, under every
// instruction set.
func TestGoldens(t *testing.T) {
	const path = "testdata/goldens.txt"
	sections := func() string {
		var lines []string
		for _, f := range []func() []goldenLine{goldenScalars, goldenElementwise, goldenRope, goldenCache,
			goldenFloatProducts, goldenActivations, goldenBlockProducts, goldenAttention, goldenExperts} {
			for _, g := range f() {
				lines = append(lines, g.String())
			}
		}
		return strings.Join(lines, "\n") + "\n"
	}
	if *rewrite {
		defer Force("go")()
		if err := os.WriteFile(path, []byte(sections()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	eachISA(t, func(t *testing.T) {
		wantLines := strings.Split(strings.ReplaceAll(string(want), "\r\n", "\n"), "\n")
		got := strings.Split(sections(), "\n")
		if len(got) != len(wantLines) {
			t.Errorf("%d lines, %d are committed", len(got), len(wantLines))
		}
		for i := range min(len(got), len(wantLines)) {
			if got[i] != wantLines[i] {
				t.Errorf("got  %s\nwant %s", got[i], wantLines[i])
			}
		}
	})
}

func goldenScalars() []goldenLine {
	s := source(1)
	var fma, exp []float32
	for range 8 {
		x := s.floats(3)
		fma = append(fma, fma32(x[0], x[1], x[2]))
	}
	fma = append(fma, fma32(1+0x1p-23, 0x1p-24*(1-0x1p-23), 1+0x1p-23), fma32(0x1p-149, 0.5, 0x1p-149))
	for _, x := range []float32{0, 1, -1, 0.5, -0.1, 10, -20, 1e-5, 88.72283, -87.33, -87.331, 89,
		float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		exp = append(exp, Exp(x))
	}
	sums := [8]float32{1, 1e8, -1e8, 3, 1e-3, -1e8, 1e8, 7}
	return []goldenLine{{"fma", floatWords(fma...)}, {"total", floatWords(total(&sums))}, {"exp", floatWords(exp...)},
		{"ln", doubleWords(ln(10000), ln(0.3), ln(1), ln(500000))},
		{"exp64", doubleWords(exp64(-9.21), exp64(0.5), exp64(1))}}
}

func goldenElementwise() []goldenLine {
	s := source(2)
	x, w, up := s.floats(37), s.floats(37), s.floats(37)
	norm, plain, silu, unit := make([]float32, 37), make([]float32, 37), make([]float32, 37), clone(x)
	RMSNorm(norm, x, w, 1e-5)
	RMSNorm(plain, x, nil, 1e-6)
	SiLUMul(silu, x, up)
	Normalize(unit)
	biased := s.floats(24)
	Add(biased[:12], x)
	Add(biased[12:], x)
	Scale(biased, 0.3)
	scaled := clone(x)
	AddScaled(scaled, 0.7, w)
	return []goldenLine{{"rms-norm", floatWords(norm...)}, {"rms-norm-plain", floatWords(plain...)},
		{"silu-mul", floatWords(silu...)}, {"normalize", floatWords(unit...)}, {"bias-scale", floatWords(biased...)},
		{"add-scaled", floatWords(scaled...)}}
}

func goldenExperts() []goldenLine {
	s := source(11)
	scores, gate, up := s.floats(21), s.floats(13), s.floats(13)
	for i := range gate {
		gate[i], up[i] = gate[i]*8, up[i]*8
	}
	ids, clamped, unit := make([]int32, 5), make([]float32, 13), s.floats(9)
	TopK(ids, scores)
	chosen := make([]float32, 5)
	for i, id := range ids {
		chosen[i] = float32(id)
	}
	Softmax(scores)
	ClampedSwiGLU(clamped, gate, up, 1.702, 7)
	Unit(unit)
	return []goldenLine{{"top-k", floatWords(chosen...)}, {"softmax", floatWords(scores...)}, {"unit", floatWords(unit...)},
		{"sigmoid", floatWords(Sigmoid(0.7), Sigmoid(-90), Sigmoid(3))}, {"clamped-swiglu", floatWords(clamped...)}}
}

func goldenRope() []goldenLine {
	plain, linear, llama3, divided := InvFreq(24, 500000), InvFreq(24, 10000), InvFreq(24, 500000), InvFreq(24, 10000)
	RopeLinear(linear, 4)
	Llama3Rope{Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalLength: 512}.Apply(llama3)
	RopeDivide(divided, []float32{1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5})
	yarn := YaRN{Factor: 4, OriginalLength: 64}
	loose := YaRN{Factor: 32, OriginalLength: 4096, NoTruncate: true, MScale: 1, MScaleAllDim: 0.8}
	lines := []goldenLine{{"rope-frequencies", floatWords(plain...)}, {"rope-linear", floatWords(linear...)},
		{"rope-llama3", floatWords(llama3...)}, {"rope-factors", floatWords(divided...)},
		{"rope-dynamic-base", doubleWords(DynamicNTKBase(10000, 6, 16, 300, 256))},
		{"rope-yarn", floatWords(append(yarn.Frequencies(24, 1e6), yarn.Attention())...)},
		{"rope-yarn-loose", floatWords(append(loose.Frequencies(24, 150000), loose.Attention())...)}}
	s := source(3)
	for _, pos := range []int{0, 1, 1000, 131071} {
		cos, sin := make([]float32, 12), make([]float32, 12)
		RopeAngles(cos, sin, pos, plain, 1.25)
		halves := s.floats(26)
		pairs := clone(halves)
		Rope(halves, cos, sin, false)
		Rope(pairs, cos, sin, true)
		at := fmt.Sprintf("-%d", pos)
		lines = append(lines, goldenLine{"rope-angles" + at, floatWords(append(cos, sin...)...)},
			goldenLine{"rope-halves" + at, floatWords(halves...)}, goldenLine{"rope-pairs" + at, floatWords(pairs...)})
	}
	return lines
}

func goldenCache() []goldenLine {
	s := source(4)
	x := append(s.floats(20), 65504, 65519, 65520, 1e-7, 3e-8, 2.9e-8, float32(math.Inf(-1)))
	f16 := make([]uint16, len(x))
	ToF16(f16, x)
	lines := []goldenLine{{"to-f16", halfWords(f16)}}
	x = append(s.floats(52), 0, 448, -464, 300, 0x1p-6, 0x1.1p-7, 0x1p-9, 0x1p-10, 0x1.8p-10, 17, -18, 19)
	for _, t := range []CacheType{CacheBF16, CacheFP8, CacheQ8} {
		row := make([]byte, t.RowBytes(len(x)))
		finite := t.Store(row, x)
		lines = append(lines, goldenLine{fmt.Sprintf("to-%v-%t", t, finite), byteWords(row)})
	}
	return lines
}

// multiply is MatMul on 3 rows of weights and 2 of activations.
func multiply(t quant.Type, cols int, data []byte, x []float32, exact bool) []float32 {
	p := NewPool(1)
	defer p.Close()
	a := MakeActs(make([]byte, ActsBytes(2, cols, true)), 2, cols, true)
	a.SetRows(p, x, cols)
	out := make([]float32, 6)
	w := Weights{Type: t, Rows: 3, Cols: cols, Data: data}
	MatMul(p, make([]byte, ScratchBytes(1, cols)), w, &a, out, 3, exact)
	return out
}

func goldenFloatProducts() []goldenLine {
	var lines []goldenLine
	for _, t := range []quant.Type{quant.F32, quant.F16, quant.BF16} {
		for _, cols := range []int{5, 576} {
			s := source(5)
			w, x := s.floats(3*cols), s.floats(2*cols)
			out := multiply(t, cols, appendValues(nil, t, w), x, false)
			lines = append(lines, goldenLine{fmt.Sprintf("product-%v-%d", t, cols), floatWords(out...)})
		}
	}
	return lines
}

// goldenActivations shows the 16-bit form of a row through Q8_0 weights that pick one value each: the
// products are as·q.
func goldenActivations() []goldenLine {
	s := source(6)
	x := s.floats(96)
	for i := range 64 {
		x[32+i] *= 1e-20
	}
	x[40], x[70] = 3e-31, 0x1p-101
	clear(x[71:])
	clear(x[64:70])
	lines := []goldenLine{{"activations", floatWords(pickEach(x)...)}}
	x[3], x[41] = float32(math.Inf(1)), 0x1.fffffep+99
	return append(lines, goldenLine{"activations-infinite", floatWords(pickEach(x)...)})
}

func pickEach(x []float32) []float32 {
	p := NewPool(1)
	defer p.Close()
	n := len(x)
	var weights []byte
	for pick := range n {
		for at := 0; at < n; at += 32 {
			block := make([]byte, 34)
			block[1] = 0x3c // d = 1
			if at <= pick && pick < at+32 {
				block[2+pick-at] = 1
			}
			weights = append(weights, block...)
		}
	}
	a := MakeActs(make([]byte, ActsBytes(1, n, true)), 1, n, true)
	a.SetRow(0, x)
	out := make([]float32, n)
	w := Weights{Type: quant.Q8_0, Rows: n, Cols: n, Data: weights}
	MatMul(p, make([]byte, ScratchBytes(1, n)), w, &a, out, n, false)
	return out
}

// blockHalves are where a block's f16 numbers lie.
var blockHalves = []struct {
	t  quant.Type
	at []int
}{
	{quant.Q4_0, []int{0}}, {quant.Q4_1, []int{0, 2}}, {quant.Q5_0, []int{0}}, {quant.Q5_1, []int{0, 2}},
	{quant.Q8_0, []int{0}}, {quant.IQ4NL, []int{0}}, {quant.Q2_K, []int{80, 82}}, {quant.Q3_K, []int{108}},
	{quant.Q4_K, []int{0, 2}}, {quant.Q5_K, []int{0, 2}}, {quant.Q6_K, []int{208}},
	{quant.IQ1S, []int{0}}, {quant.IQ1M, nil}, {quant.IQ2XXS, []int{0}}, {quant.IQ2XS, []int{0}}, {quant.IQ2S, []int{0}},
	{quant.IQ3XXS, []int{0}}, {quant.IQ3S, []int{0}}, {quant.IQ4XS, []int{0}}, {quant.TQ1_0, []int{52}}, {quant.TQ2_0, []int{64}},
	{quant.Q1_0, []int{0}}, {quant.Q2_0, []int{0}}, {quant.MXFP4, nil}, {quant.NVFP4, nil},
}

// randomBlocks are blocks of any bits with small f16 numbers.
func randomBlocks(s *source, t quant.Type, halves []int, values int) []byte {
	b := make([]byte, t.RowBytes(values))
	for i := range b {
		b[i] = byte(s.next())
	}
	for at := 0; at < len(b); at += t.BlockBytes() {
		for _, h := range halves {
			binary.LittleEndian.PutUint16(b[at+h:], uint16(0x2000+s.next()%0x1000))
		}
		goldenScales(s, t, b[at:at+t.BlockBytes()])
	}
	return b
}

func goldenBlockProducts() []goldenLine {
	var lines []goldenLine
	for _, f := range blockHalves {
		cols := 512
		if n := f.t.BlockValues(); n < 256 {
			cols = 256 + n
		}
		s := source(7)
		data, x := randomBlocks(&s, f.t, f.at, 3*cols), s.floats(2*cols)
		lines = append(lines, goldenLine{"product-" + f.t.String(), floatWords(multiply(f.t, cols, data, x, false)...)},
			goldenLine{"product-exact-" + f.t.String(), floatWords(multiply(f.t, cols, data, x, true)...)})
		x[cols+1] = float32(math.NaN())
		lines = append(lines, goldenLine{"product-nan-" + f.t.String(), floatWords(multiply(f.t, cols, data, x, false)...)})
	}
	return lines
}

// goldenCase is a whole sequence made from a seed alone.
func goldenCase(seed source, typ CacheType, shape AttentionShape, length, window int) *attnCase {
	c := &attnCase{shape: shape, typ: typ, length: length}
	c.attn = Attention{Heads: shape.Heads, Scale: 0.25, Window: window}
	c.q = seed.floats(length * shape.Heads * shape.KDim)
	for range shape.KVHeads {
		var k, v [][]float32
		for range length {
			k, v = append(k, seed.floats(shape.KDim)), append(v, seed.floats(shape.VDim))
		}
		c.k, c.v = append(c.k, k), append(c.v, v)
	}
	return c
}

func goldenAttention() []goldenLine {
	one := goldenCase(8, CacheF16, AttentionShape{2, 1, 20, 12}, 150, 0)
	window := goldenCase(9, CacheF32, AttentionShape{2, 2, 16, 16}, 90, 20)
	image := goldenCase(10, CacheF16, AttentionShape{1, 1, 16, 16}, 80, 0)
	image.mask, image.spans = Spans, []Span{{10, 70}}
	both := goldenCase(11, CacheBF16, AttentionShape{1, 1, 16, 16}, 80, 0)
	both.mask = Bidirectional
	long := goldenCase(12, CacheF16, AttentionShape{1, 1, 8, 8}, 1100, 0)
	all := func(c *attnCase) []uint32 { return floatWords(c.run(1, 16, []int{0, c.length}, true, 0)...) }
	fp8 := goldenCase(13, CacheFP8, AttentionShape{2, 1, 16, 16}, 70, 0)
	q8 := goldenCase(14, CacheQ8, AttentionShape{2, 1, 64, 32}, 70, 0)
	sinks := goldenCase(15, CacheF16, AttentionShape{2, 1, 16, 16}, 70, 16)
	sinks.attn.Sinks = []float32{0.75, -2}
	return []goldenLine{{"attention-fp8", all(fp8)}, {"attention-q8_0", all(q8)}, {"attention-sinks", all(sinks)},
		{"attention-causal", all(one)}, {"attention-window", all(window)}, {"attention-spans", all(image)},
		{"attention-bidirectional", all(both)}, {"attention-two-spans", all(long)}}
}
