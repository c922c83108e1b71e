package kernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"unsafe"
)

func TestPlacesAreOrders(t *testing.T) {
	for name, table := range map[string]*[groupValues]uint8{"lanes": &lanePlaces, "words": &wordPlaces} {
		var seen [groupValues]bool
		for _, p := range table {
			seen[p] = true
		}
		for p, ok := range seen {
			if !ok {
				t.Errorf("%s: place %d is empty", name, p)
			}
		}
	}
	for k := range groupValues { // the sums of a block of 32 must stay in its lane or half
		if lane := int(lanePlaces[k]) % 16 / 2; lane != k/32 {
			t.Errorf("value %d is in lane %d", k, lane)
		}
		if half := int(wordPlaces[k]) % 16 / 8; half != k/128 {
			t.Errorf("value %d is in half %d", k, half)
		}
	}
}

// The assembly knows these numbers.
func TestGroupLayout(t *testing.T) {
	var a actGroup
	var p panelGroup
	for _, c := range []struct {
		what      string
		got, want uintptr
	}{
		{"actGroup", unsafe.Sizeof(a), 672}, {"scale", unsafe.Offsetof(a.scale), 512},
		{"offset", unsafe.Offsetof(a.offset), 544}, {"sum32", unsafe.Offsetof(a.sum32), 576},
		{"sum16", unsafe.Offsetof(a.sum16), 608}, {"panelGroup", unsafe.Sizeof(p), 640},
		{"panel scale", unsafe.Offsetof(p.scale), 512}, {"panel min", unsafe.Offsetof(p.min), 576},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.what, c.got, c.want)
		}
	}
}

// oneBlock quantizes a block of 32 with the instruction set in use.
func oneBlock(x []float32) (scale float32, q [32]int16) {
	a := MakeActs(make([]byte, ActsBytes(1, len(x), true)), 1, len(x), true)
	a.SetRow(0, x)
	for k := range q {
		q[k] = a.groups[0].q[lanePlaces[k]]
	}
	return a.groups[0].scale[0], q
}

// The rounding agrees with the definition in docs/numerics.md, computed with exact numbers.
func TestActsDefinition(t *testing.T) {
	for _, isa := range ISAs() {
		t.Run(isa, func(t *testing.T) {
			defer Force(isa)()
			rng := rand.New(rand.NewPCG(11, 12))
			x := make([]float32, 32)
			for e := -149; e <= 127; e++ {
				for range 8 {
					for i := range x {
						x[i] = float32(math.Ldexp(rng.Float64()*4-2, e))
					}
					checkBlock(t, x)
				}
				clear(x)
				x[rng.IntN(32)] = float32(math.Ldexp(1, e)) // powers of two
				checkBlock(t, x)
				x[rng.IntN(32)] = -math.Float32frombits(math.Float32bits(float32(math.Ldexp(1, e+1))) - 1) // and just below
				checkBlock(t, x)
			}
		})
	}
}

func checkBlock(t *testing.T, x []float32) {
	t.Helper()
	top := 0.0
	for _, v := range x {
		top = max(top, math.Abs(float64(v)))
	}
	if math.IsInf(top, 0) {
		return
	}
	_, e := math.Frexp(top) // 2^(e−1) ≤ top < 2^e
	want := math.Ldexp(1, e-15)
	if top < 0x1p-100 {
		want = 0
	}
	scale, q := oneBlock(x)
	if float64(scale) != want {
		t.Fatalf("top %g: scale %g, want %g", top, scale, want)
	}
	for i, v := range x {
		w := int64(0)
		if want != 0 {
			w = roundedRatio(float64(v), want)
		}
		if int64(q[i]) != min(max(w, -32767), 32767) {
			t.Fatalf("%g at scale %g: %d, want %d", v, scale, q[i], w)
		}
	}
}

// roundedRatio returns v/scale, rounded half to even, by exact arithmetic.
func roundedRatio(v, scale float64) int64 {
	r := new(big.Rat).Quo(new(big.Rat).SetFloat64(v), new(big.Rat).SetFloat64(scale))
	twice := new(big.Rat).Mul(r, big.NewRat(2, 1))
	floor := new(big.Int).Div(new(big.Int).Add(twice.Num(), twice.Denom()), new(big.Int).Mul(twice.Denom(), big.NewInt(2)))
	if twice.IsInt() && twice.Num().Bit(0) == 1 && floor.Bit(0) == 1 { // a tie that went to the odd side
		floor.Sub(floor, big.NewInt(1))
	}
	return floor.Int64()
}

func TestActsTiesAndLimits(t *testing.T) {
	for _, isa := range ISAs() {
		restore := Force(isa)
		x := make([]float32, 32)
		x[0], x[1], x[2], x[3], x[4] = 32767.75, 0.5, 1.5, 2.5, -32767.9
		if scale, q := oneBlock(x); scale != 1 || q[0] != 32767 || q[1] != 0 || q[2] != 2 || q[3] != 2 || q[4] != -32767 {
			t.Errorf("%s: scale %v, q %v", isa, scale, q)
		}
		for _, bad := range []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())} {
			x[5] = bad
			scale, q := oneBlock(x)
			if scale == scale || q != [32]int16{} {
				t.Errorf("%s: %v: scale %v, q %v", isa, bad, scale, q)
			}
		}
		restore()
	}
}

// Every instruction set fills all of a group alike, words included.
func TestActsSameBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for _, cols := range []int{1, 31, 32, 100, 256, 576, 1000} {
		x := make([]float32, cols)
		for round := range 20 {
			fillWild(rng, x, round%3 == 0)
			var want Acts
			for i, isa := range ISAs() {
				restore := Force(isa)
				got := MakeActs(make([]byte, ActsBytes(1, cols, true)), 1, cols, true)
				got.SetRow(0, x)
				restore()
				if i == 0 {
					want = got
				}
				sameActs(t, &got, &want)
			}
		}
	}
}

func sameActs(t *testing.T, a, b *Acts) {
	t.Helper()
	diffFloats(t, "f32", a.F32, b.F32)
	for i := range a.groups {
		g, h := &a.groups[i], &b.groups[i]
		diffFloats(t, "scales", g.scale[:], h.scale[:])
		diffFloats(t, "offsets", g.offset[:], h.offset[:])
		if g.q != h.q || g.sum32 != h.sum32 || g.sum16 != h.sum16 {
			t.Fatalf("group %d differs:\n%v\n%v", i, g, h)
		}
	}
	for i := range a.words {
		if a.words[i] != b.words[i] {
			t.Fatalf("word %d: %d, want %d", i, a.words[i], b.words[i])
		}
	}
}

func TestActsForms(t *testing.T) {
	x := []float32{1, 2, 3, 4, 5, 6}
	a := MakeActs(make([]byte, ActsBytes(3, 2, false)), 3, 2, false)
	p := NewPool(2)
	defer p.Close()
	a.SetRows(p, x, 2)
	if a.Integer() || a.Stride != 256 || a.F32[256] != 3 || a.F32[513] != 6 || a.F32[514] != 0 {
		t.Errorf("float rows: %+v", a)
	}
	b := MakeActs(make([]byte, ActsBytes(3, 2, true)), 3, 2, true)
	b.SetRows(p, x, 2)
	if b.words != nil {
		t.Error("three rows have words")
	}
	c := b.Limit(1)
	if !c.Integer() || c.Rows != 1 || len(c.F32) != 256 || c.groups[0].sum32[0] != b.groups[0].sum32[0] {
		t.Errorf("first row: %+v", c)
	}
}
