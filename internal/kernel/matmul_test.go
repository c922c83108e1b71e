package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spillway/spillway/internal/quant"
)

// matmulTypes are the types that MatMul takes without exact, in the order of their numbers.
func matmulTypes() []quant.Type {
	types := []quant.Type{quant.F32, quant.F16, quant.BF16}
	for t := range intFormats {
		types = append(types, t)
	}
	slices.Sort(types)
	return types
}

// halfOffsets are where blocks hold f16 numbers.
var halfOffsets = map[quant.Type][]int{
	quant.Q4_0: {0}, quant.Q4_1: {0, 2}, quant.Q5_0: {0}, quant.Q5_1: {0, 2}, quant.Q8_0: {0},
	quant.IQ4NL: {0}, quant.Q2_K: {80, 82}, quant.Q3_K: {108}, quant.Q4_K: {0, 2}, quant.Q5_K: {0, 2},
	quant.Q6_K: {208},
	quant.IQ1S: {0}, quant.IQ2XXS: {0}, quant.IQ2XS: {0}, quant.IQ2S: {0}, quant.IQ3XXS: {0}, quant.IQ3S: {0},
	quant.IQ4XS: {0}, quant.TQ1_0: {52}, quant.TQ2_0: {64}, quant.Q1_0: {0}, quant.Q2_0: {0},
}

// randomWeights returns rows of random bits whose scales are ordinary, or, if wild, any bits at all.
func randomWeights(rng *rand.Rand, t quant.Type, rows, cols int, wild bool) Weights {
	w := Weights{Type: t, Rows: rows, Cols: cols}
	w.Data = make([]byte, w.rowBytes()*rows+1)[1:] // at an odd address
	for i := range w.Data {
		w.Data[i] = byte(rng.Uint32())
	}
	if wild {
		return w
	}
	if t.IsFloat() {
		x := make([]float32, cols)
		for i := range rows {
			fillNormal(rng, x)
			if err := quant.EncodeRow(t, w.row(i), x); err != nil {
				panic(err)
			}
		}
		return w
	}
	for at := 0; at < len(w.Data); at += t.BlockBytes() {
		for _, o := range halfOffsets[t] {
			h := quant.F32ToF16(float32(rng.NormFloat64() * 0.01))
			w.Data[at+o], w.Data[at+o+1] = byte(h), byte(h>>8)
		}
		tameScales(rng, t, w.Data[at:at+t.BlockBytes()])
	}
	return w
}

func fillNormal(rng *rand.Rand, x []float32) {
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
}

// fillWild writes values of all sizes, with now and then a block of zeros, huge or tiny values, and
// with nonFinite a few infinities and NaNs.
func fillWild(rng *rand.Rand, x []float32, nonFinite bool) {
	for i := range x {
		switch rng.IntN(8) {
		case 0:
			x[i] = 0
		case 1:
			x[i] = float32(math.Copysign(0, -1))
		case 2:
			x[i] = math.Float32frombits(rng.Uint32() &^ (1 << 30)) // below 2
		default:
			x[i] = float32(rng.NormFloat64() * math.Pow(2, float64(i/32%9*12-60)))
		}
	}
	if len(x) > 100 {
		big := math.Float32frombits(0x7f7fffff)
		x[40], x[41] = big, -big
	}
	if nonFinite {
		x[rng.IntN(len(x))] = float32(math.Inf(1))
		x[rng.IntN(len(x))] = math.Float32frombits(0xffc12345)
	}
}

func makeActs(rows, cols int, x []float32) *Acts {
	a := MakeActs(make([]byte, ActsBytes(rows, cols, true)), rows, cols, true)
	for r := range rows {
		a.SetRow(r, x[r*cols:])
	}
	return &a
}

// row returns the bytes of row i.
func (w *Weights) row(i int) []byte { return w.Data[i*w.rowBytes() : (i+1)*w.rowBytes()] }

func runMatMul(threads int, w Weights, a *Acts, exact bool) []float32 {
	p := NewPool(threads)
	defer p.Close()
	out := make([]float32, a.Rows*w.Rows)
	MatMul(p, make([]byte, ScratchBytes(threads, w.Cols)), w, a, out, w.Rows, exact)
	return out
}

func sameFloat(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

func diffFloats(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !sameFloat(got[i], want[i]) {
			t.Fatalf("%s: value %d is %x (%v), want %x (%v)", what, i,
				math.Float32bits(got[i]), got[i], math.Float32bits(want[i]), want[i])
		}
	}
}

// The pure Go products agree with float64 products of the decoded weights: a check that shares
// nothing with the kernels.
func TestMatMulAgainstDecodedRows(t *testing.T) {
	defer Force("go")()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, typ := range matmulTypes() {
		for _, cols := range []int{256, 512, 1280} {
			w := randomWeights(rng, typ, 5, cols, false)
			x := make([]float32, 2*cols)
			fillNormal(rng, x)
			a := makeActs(2, cols, x)
			for _, exact := range []bool{false, true} {
				checkAgainstDecoded(t, w, x, runMatMul(1, w, a, exact), Integer(typ, exact))
			}
		}
	}
}

func checkAgainstDecoded(t *testing.T, w Weights, x, got []float32, integer bool) {
	t.Helper()
	row := make([]float32, w.Cols)
	for i := range w.Rows {
		if err := quant.DecodeRow(w.Type, row, w.row(i)); err != nil {
			t.Fatal(err)
		}
		for r := range len(x) / w.Cols {
			want, size := 0.0, 0.0
			for k, v := range row {
				p := float64(v) * float64(x[r*w.Cols+k])
				want += p
				size += p * p
			}
			// 16-bit activations are off by up to 2^-16 of a block's largest value, in any direction.
			tolerance := 1e-6 * math.Sqrt(size) * 4
			if integer {
				tolerance += 1.0 / (1 << 15) * math.Sqrt(size) * 6
			}
			if d := math.Abs(float64(got[r*w.Rows+i]) - want); d > tolerance {
				t.Errorf("%v, %d columns: row %d is %v, want %v ± %v", w.Type, w.Cols, i, got[r*w.Rows+i], want, tolerance)
			}
		}
	}
}

// Every instruction set, number of threads, batch and split of rows gives the bits of the pure Go
// loops with one row at a time.
func TestMatMulSameBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, typ := range matmulTypes() {
		for _, cols := range testCols(typ) {
			for mode := range 3 {
				t.Run(fmt.Sprintf("%v/%d/%d", typ, cols, mode), func(t *testing.T) {
					checkSameBits(t, rng, typ, cols, mode)
				})
			}
		}
	}
}

func testCols(t quant.Type) []int {
	if t.BlockValues() == 256 {
		return []int{256, 512, 1024, 4096, 6400 + 256}
	}
	if t.IsFloat() {
		return []int{1, 7, 8, 13, 32, 100, 576, 1029, 4096, 4099}
	}
	switch t.BlockValues() {
	case 128:
		return []int{128, 256, 384, 896, 4096, 6400 + 128}
	case 64:
		return []int{64, 192, 256, 320, 576, 1472, 4096, 6400 + 64}
	}
	return []int{32, 64, 224, 256, 288, 576, 1504, 4096, 6400 + 32}
}

func checkSameBits(t *testing.T, rng *rand.Rand, typ quant.Type, cols, mode int) {
	rows, batch := 1+rng.IntN(21), 1+rng.IntN(7)
	w := randomWeights(rng, typ, rows, cols, mode > 0)
	x := make([]float32, batch*cols)
	for r := range batch {
		if mode == 0 {
			fillNormal(rng, x[r*cols:(r+1)*cols])
		} else {
			fillWild(rng, x[r*cols:(r+1)*cols], mode == 2 && r%2 == 1)
		}
	}
	for _, exact := range []bool{false, true} {
		want := referenceMatMul(w, x, exact)
		for _, isa := range ISAs() {
			restore := Force(isa)
			a := makeActs(batch, cols, x)
			for threads := 1; threads <= 3; threads++ {
				diffFloats(t, fmt.Sprint(isa, threads, exact), runMatMul(threads, w, a, exact), want)
			}
			checkSplit(t, rng, w, a, exact, want)
			restore()
		}
	}
}

// checkSplit computes the product in random runs of weight rows and rows of activations.
func checkSplit(t *testing.T, rng *rand.Rand, w Weights, a *Acts, exact bool, want []float32) {
	p := NewPool(2)
	defer p.Close()
	scratch := make([]byte, ScratchBytes(2, w.Cols))
	out := make([]float32, len(want))
	for i := 0; i < w.Rows; {
		n := 1 + rng.IntN(w.Rows-i)
		part := Weights{Type: w.Type, Rows: n, Cols: w.Cols, Data: w.Data[i*w.rowBytes() : (i+n)*w.rowBytes()]}
		for r := range a.Rows {
			one := MakeActs(make([]byte, ActsBytes(1, a.Cols, true)), 1, a.Cols, true)
			one.SetRow(0, a.F32[r*a.Stride:][:a.Cols])
			MatMul(p, scratch, part, &one, out[r*w.Rows+i:], w.Rows, exact)
		}
		i += n
	}
	diffFloats(t, ISA()+" split", out, want)
}

// referenceMatMul applies the definitions row by row.
func referenceMatMul(w Weights, x []float32, exact bool) []float32 {
	defer Force("go")()
	batch := len(x) / w.Cols
	out := make([]float32, batch*w.Rows)
	a := makeActs(batch, w.Cols, x)
	padded := (w.Cols + 7) &^ 7
	for i := range w.Rows {
		decoded := make([]float32, padded)
		if err := quant.DecodeRow(w.Type, decoded[:w.Cols], w.row(i)); err != nil {
			panic(err)
		}
		groups := make([]panelGroup, a.Stride/groupValues)
		f := intFormats[w.Type]
		for r := range batch {
			var s sums
			if Integer(w.Type, exact) {
				f.unpackGo(groups, w.row(i), workspace{mem: make([]byte, tailBytes)})
				f.addGroups(&s, groups, a.row(r))
			} else {
				s.addFloats(decoded, a.F32[r*a.Stride:][:padded])
			}
			out[r*w.Rows+i] = s.total()
		}
	}
	return out
}

// Every pattern of the f16 numbers in blocks gives the same bits, NaN, infinite and subnormal ones too.
func TestMatMulEveryScale(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	x := make([]float32, 2*groupValues)
	fillNormal(rng, x)
	x[3], x[70], x[200] = 0x1p-140, 0x1p-90, 0x1p100
	for typ, offsets := range halfOffsets {
		blocks := groupValues / typ.BlockValues()
		for _, o := range offsets {
			w := randomWeights(rng, typ, 1<<16/blocks, groupValues, false)
			for i := range 1 << 16 {
				w.Data[i*typ.BlockBytes()+o] = byte(i)
				w.Data[i*typ.BlockBytes()+o+1] = byte(i >> 8)
			}
			for batch := 1; batch <= 2; batch++ {
				restore := Force("go")
				want := runMatMul(2, w, makeActs(batch, groupValues, x), false)
				restore()
				got := runMatMul(2, w, makeActs(batch, groupValues, x), false)
				diffFloats(t, fmt.Sprint(typ, " ", o), got, want)
			}
		}
	}
}

// Sums at the limits of int32: all weights and activations at their largest.
func TestMatMulLargestSums(t *testing.T) {
	for _, typ := range matmulTypes() {
		for _, fill := range []byte{0x00, 0xff, 0x80, 0x7f} {
			for _, sign := range []float32{1, -1} {
				checkConstant(t, typ, fill, sign*32767)
			}
		}
	}
}

func checkConstant(t *testing.T, typ quant.Type, fill byte, v float32) {
	w := randomWeights(rand.New(rand.NewPCG(1, 1)), typ, 3, 512, false)
	for i := range w.Data {
		at := i % typ.BlockBytes()
		if !slices.Contains(halfOffsets[typ], at) && !slices.Contains(halfOffsets[typ], at-1) {
			w.Data[i] = fill
		}
	}
	x := make([]float32, 2*512)
	for i := range x {
		x[i] = v
	}
	want := referenceMatMul(w, x, false)
	for batch := 1; batch <= 2; batch++ {
		got := runMatMul(1, w, makeActs(batch, 512, x), false)
		diffFloats(t, fmt.Sprint(typ, fill, v), got, want[:len(got)])
	}
}

// A batch's activations, cut to one row, take another loop than a single row's; the bits are the same.
func TestMatMulLimitedBatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	x := make([]float32, 5*512)
	fillNormal(rng, x)
	for _, typ := range matmulTypes() {
		w := randomWeights(rng, typ, 9, 512, false)
		a := makeActs(5, 512, x)
		one := a.Limit(1)
		diffFloats(t, typ.String(), runMatMul(2, w, &one, false), runMatMul(2, w, makeActs(1, 512, x), false))
	}
}

func TestMatMulAllocatesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	p := NewPool(2)
	defer p.Close()
	for _, typ := range []quant.Type{quant.F16, quant.Q4_K, quant.Q5_0} {
		w := randomWeights(rng, typ, 64, 256, false)
		a := makeActs(1, 256, make([]float32, 256))
		out, scratch := make([]float32, 64), make([]byte, ScratchBytes(2, 256))
		if n := testing.AllocsPerRun(100, func() { MatMul(p, scratch, w, a, out, 64, false) }); n >= 1 {
			t.Errorf("%v: %v allocations", typ, n)
		}
	}
}

// More rows of activations than meet a panel at a time, in a matrix of two blocks of columns.
func TestMatMulLargeBatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 52))
	const batch = blockRows + 5
	for _, typ := range []quant.Type{quant.F16, quant.Q6_K} {
		cols := panelCols(floatGroup) + groupValues
		if !typ.IsFloat() {
			cols = panelCols(intGroup) + groupValues
		}
		x := make([]float32, batch*cols)
		fillNormal(rng, x)
		a := makeActs(batch, cols, x)
		w := randomWeights(rng, typ, 6, cols, false)
		got := runMatMul(2, w, a, false)
		for _, r := range []int{0, blockRows - 1, blockRows, batch - 1} {
			want := runMatMul(1, w, makeActs(1, cols, x[r*cols:(r+1)*cols]), false)
			diffFloats(t, fmt.Sprint(typ, r), got[r*w.Rows:(r+1)*w.Rows], want)
		}
	}
}

// What does not fit together is refused before anything is read.
func TestMatMulRefuses(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	w := randomWeights(rand.New(rand.NewPCG(1, 2)), quant.Q8_0, 4, 64, false)
	a := makeActs(2, 64, make([]float32, 128))
	floats := MakeActs(make([]byte, ActsBytes(2, 64, false)), 2, 64, false)
	scratch, out := make([]byte, ScratchBytes(1, 64)), make([]float32, 8)
	short, narrow, odd := w, w, w
	short.Data = w.Data[:len(w.Data)-1]
	narrow.Cols = 32
	odd.Type = quant.Q8_K
	for name, f := range map[string]func(){
		"short weights":  func() { MatMul(p, scratch, short, a, out, 4, false) },
		"other columns":  func() { MatMul(p, scratch, narrow, a, out, 4, false) },
		"no such loop":   func() { MatMul(p, scratch, odd, a, out, 4, false) },
		"short output":   func() { MatMul(p, scratch, w, a, out[:7], 4, false) },
		"short scratch":  func() { MatMul(p, scratch[:100], w, a, out, 4, false) },
		"no 16-bit form": func() { MatMul(p, scratch, w, &floats, out, 4, false) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("accepted")
				}
			}()
			f()
		})
	}
}
