package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// adversarial are values that find faults: NaNs of several kinds, infinities, both zeros, subnormal
// and huge numbers, and exp's borders.
var adversarial = []float32{
	float32(math.NaN()), fromBits(0xffc00000), fromBits(0x7f800001), fromBits(0x7fffffff), fromBits(0xff8001ff),
	float32(math.Inf(1)), float32(math.Inf(-1)), 0, fromBits(0x80000000), 0x1p-149, -0x1p-149, 0x1.8p-127,
	math.MaxFloat32, -math.MaxFloat32, 65504, 65519.996, 65520, -65520, 65536, 6.1e-5, 5.96e-8, 2.98e-8, 2.99e-8,
	-87.33, -87.330009, -87.4, 88.72283, 88.722839, 89, -104, 1, -1, 0.5, 1e-10, -1e-10, 1e20, -1e20,
}

// mixed returns n values: normal, any bits, and adversarial ones, in the given shares of 8.
func mixed(r *rand.Rand, n, anyBits, special int) []float32 {
	x := make([]float32, n)
	for i := range x {
		switch k := r.IntN(8); {
		case k < anyBits:
			x[i] = fromBits(r.Uint32())
		case k < anyBits+special:
			x[i] = adversarial[r.IntN(len(adversarial))]
		default:
			x[i] = float32(r.NormFloat64() * 4)
		}
	}
	return x
}

func clone(x []float32) []float32 { return append([]float32(nil), x...) }

// vectorCase runs one loop of a set on n values made from r and returns what it wrote.
type vectorCase struct {
	name string
	run  func(v *vectorOps, r *rand.Rand, n int, data func(n int) []float32) []float32
}

var vectorCases = []vectorCase{
	{"sumSquares", func(v *vectorOps, r *rand.Rand, n int, data func(int) []float32) []float32 {
		return []float32{v.sumSquares(data(n))}
	}},
	{"scaleWeight", func(v *vectorOps, r *rand.Rand, n int, data func(int) []float32) []float32 {
		dst := make([]float32, n)
		v.scaleWeight(dst, data(n), data(n), data(1)[0])
		return dst
	}},
	{"siluMul", func(v *vectorOps, r *rand.Rand, n int, data func(int) []float32) []float32 {
		dst := make([]float32, n)
		v.siluMul(dst, data(n), data(n))
		return dst
	}},
	{"add", func(v *vectorOps, r *rand.Rand, n int, data func(int) []float32) []float32 {
		dst := data(n)
		v.add(dst, data(n))
		return dst
	}},
	{"scale", func(v *vectorOps, r *rand.Rand, n int, data func(int) []float32) []float32 {
		dst := data(n)
		v.scale(dst, data(1)[0])
		return dst
	}},
	{"divide", func(v *vectorOps, r *rand.Rand, n int, data func(int) []float32) []float32 {
		dst := make([]float32, n)
		v.divide(dst, data(n), data(1)[0])
		return dst
	}},
	{"ropeHalves", func(v *vectorOps, r *rand.Rand, n int, data func(int) []float32) []float32 {
		x := data(2 * n)
		v.ropeHalves(x[:n], x[n:], data(n), data(n))
		return x
	}},
	{"ropePairs", func(v *vectorOps, r *rand.Rand, n int, data func(int) []float32) []float32 {
		x := data(2 * n)
		v.ropePairs(x, data(n), data(n))
		return x
	}},
	{"attnFold", func(v *vectorOps, r *rand.Rand, n int, data func(int) []float32) []float32 {
		x := data(n)
		f := data(2)
		v.attnFold(x, data(n), f[0], f[1])
		return x
	}},
}

func TestVectorIsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for _, c := range vectorCases {
		for n := range 76 {
			if n >= 72 { // the most that one call takes, and more
				n = 16384 + n - 73
			}
			share, seed := r.IntN(5), r.Uint64()
			out := func(v *vectorOps) []float32 {
				s := rand.New(rand.NewPCG(seed, 1))
				return c.run(v, s, n, func(n int) []float32 { return mixed(s, n, share/2, share/2) })
			}
			want := out(&goVector)
			for _, isa := range isaTable {
				if d := firstDifference(out(&isa.vector), want); d != "" {
					t.Fatalf("%s, %s, %d values: %s", isa.name, c.name, n, d)
				}
			}
		}
	}
}

// Exp is inside siluMul: with up = −x and gate = x every value of exp(−x) shows.
func TestSiLUEveryExponent(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	var x []float32
	for e := range uint32(256) {
		for range 64 {
			x = append(x, fromBits(e<<23|r.Uint32N(1<<23)|r.Uint32N(2)<<31))
		}
	}
	x = append(x, adversarial...)
	up, want := make([]float32, len(x)), make([]float32, len(x))
	for i := range up {
		up[i] = 1
	}
	siluMulGo(want, x, up)
	for i, v := range x {
		if exact := float64(v) / (1 + math.Exp(-float64(v))); v > -80 && v < 1e30 && ulps(want[i], exact) > 3 {
			t.Fatalf("silu(%v) = %v, want %v", v, want[i], exact)
		}
	}
	eachISA(t, func(t *testing.T) {
		got := make([]float32, len(x))
		SiLUMul(got, x, up)
		if d := firstDifference(got, want); d != "" {
			t.Error(d)
		}
	})
}

func TestElementwise(t *testing.T) {
	x := []float32{11, 22, 33, 14, 25, 36}
	Add(x, []float32{1, 1, 1, 1, 1, 1})
	Scale(x, 2)
	if x[0] != 24 || x[5] != 74 {
		t.Errorf("Add and Scale give %v", x)
	}
	y := []float32{fromBits(0xffc00001), 1, fromBits(0x7f800001)}
	Canonicalize(y)
	if bits(y[0]) != 0x7fc00000 || y[1] != 1 || bits(y[2]) != 0x7fc00000 {
		t.Errorf("Canonicalize gives %08x %08x", bits(y[0]), bits(y[2]))
	}
}

func TestRMSNorm(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 26))
	for _, n := range []int{1, 7, 64, 576, 2049} {
		x, w := mixed(r, n, 0, 0), mixed(r, n, 0, 0)
		var sum float64
		for _, v := range x {
			sum += float64(v) * float64(v)
		}
		f := 1 / math.Sqrt(sum/float64(n)+1e-5)
		eachISA(t, func(t *testing.T) {
			got, plain := make([]float32, n), clone(x)
			RMSNorm(got, x, w, 1e-5)
			RMSNorm(plain, plain, nil, 1e-5)
			for i := range x {
				want := float64(x[i]) * f
				if math.Abs(float64(plain[i])-want) > 4e-7*math.Abs(want) {
					t.Fatalf("%d values, without weights: %v, want %v", n, plain[i], want)
				}
				if want *= float64(w[i]); math.Abs(float64(got[i])-want) > 5e-7*math.Abs(want) {
					t.Fatalf("%d values: %v, want %v", n, got[i], want)
				}
			}
		})
	}
}
