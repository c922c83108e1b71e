package kernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func bits(x float32) uint32     { return math.Float32bits(x) }
func fromBits(b uint32) float32 { return math.Float32frombits(b) }

// same reports whether a and b are the same value bit for bit, all NaNs being one value.
func same(a, b float32) bool { return bits(a) == bits(b) || (a != a && b != b) }

// bigFMA is a·b + c by exact arithmetic, for finite arguments and a non-zero result.
func bigFMA(a, b, c float32) float32 {
	x := new(big.Float).SetPrec(2000).SetFloat64(float64(a))
	x.Mul(x, new(big.Float).SetFloat64(float64(b)))
	x.Add(x, new(big.Float).SetFloat64(float64(c)))
	f, _ := x.Float32()
	return f
}

// ties returns arguments whose exact a·b + c lies next to the middle between two float32 values, so
// close that float64 takes it for the middle: (1+u)(1−u) = 1 − u², u = 2^-23, times half a last bit.
func ties(r *rand.Rand) (a, b, c float32) {
	c = fromBits(r.Uint32N(0x20000000) + 0x30000000)
	half := fromBits(bits(c)&0x7f800000) * 0x1p-24
	a, b = 1+0x1p-23, half*(1-0x1p-23)
	if r.IntN(2) == 0 {
		b = -b
	}
	if r.IntN(2) == 0 {
		b, c = -b, -c
	}
	return a, b, c
}

func TestFMA32Ties(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	wrongTwice := 0
	for range 200000 {
		a, b, c := ties(r)
		want := bigFMA(a, b, c)
		if got := fma32(a, b, c); got != want {
			t.Fatalf("fma32(%x, %x, %x) = %x, want %x", a, b, c, got, want)
		}
		if float32(math.FMA(float64(a), float64(b), float64(c))) != want {
			wrongTwice++
		}
	}
	if wrongTwice == 0 {
		t.Error("no argument was a tie that rounding twice gets wrong: the test proves nothing")
	}
}

// The processor's own VFMADD, inside attnFold, agrees on the same ties.
func TestFMA32TiesISA(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	n := 4096
	x, add, want := make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range x {
		var a float32
		a, x[i], add[i] = ties(r)
		want[i] = fma32(x[i], a, add[i])
	}
	eachISA(t, func(t *testing.T) {
		got := clone(x)
		active.vector.attnFold(got, add, 1+0x1p-23, 1)
		if d := firstDifference(got, want); d != "" {
			t.Error(d)
		}
	})
}

func TestFMA32Random(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200000 {
		a, b, c := fromBits(r.Uint32()), fromBits(r.Uint32()), fromBits(r.Uint32())
		if p := float64(a) * float64(b); p != 0 && r.IntN(2) == 0 { // near cancellation
			c = -float32(p) * (1 + 0x1p-23*float32(r.IntN(5)-2))
		}
		if a-a != 0 || b-b != 0 || c-c != 0 {
			continue
		}
		want := bigFMA(a, b, c)
		if want == 0 { // big.Float has no rule for the sign of an exact zero
			continue
		}
		if got := fma32(a, b, c); got != want {
			t.Fatalf("fma32(%x, %x, %x) = %x, want %x", a, b, c, got, want)
		}
	}
}

func TestFMA32Special(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	negZero := fromBits(0x80000000)
	for _, c := range []struct{ a, b, c, want float32 }{
		{inf, 1, 1, inf}, {inf, 0, 1, nan}, {inf, 1, -inf, nan}, {1, 1, -inf, -inf}, {nan, 1, 1, nan},
		{0, 0, negZero, 0}, {negZero, 1, negZero, negZero}, {1, 1, -1, 0}, {0x1p127, 2, 0, inf},
		{0x1p127, 2, -0x1p127, 0x1p127}, {0x1p-149, 0.5, 0, 0}, {0x1p-149, -0.5, 0, negZero},
		{0x1p-149, 0.75, 0, 0x1p-149}, {0x1p-149, 0.5, 0x1p-149, 0x1p-148},
	} {
		if got := fma32(c.a, c.b, c.c); !same(got, c.want) {
			t.Errorf("fma32(%x, %x, %x) = %x, want %x", c.a, c.b, c.c, got, c.want)
		}
	}
}
