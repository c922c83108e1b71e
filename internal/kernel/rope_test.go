package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSinCos(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 200000 {
		x := float64(float32(math.Ldexp(r.Float64(), r.IntN(36)-10)))
		if r.IntN(4) == 0 { // next to a multiple of π/2
			x = float64(float32(math.Round(x*2/math.Pi) * math.Pi / 2))
		}
		if x > sinLimit {
			continue
		}
		s, c := sinCos(x)
		ws, wc := math.Sincos(x)
		if math.Abs(s-ws) > 4e-16*math.Max(1, x*1e-9)+1e-15*math.Abs(ws) || math.Abs(c-wc) > 1e-15 {
			t.Fatalf("sinCos(%v) = %v, %v; want %v, %v", x, s, c, ws, wc)
		}
	}
	for _, x := range []float64{math.Inf(1), math.NaN(), -1e9} {
		if s, c := sinCos(x); s == s || c == c {
			t.Errorf("sinCos(%v) = %v, %v; want NaN", x, s, c)
		}
	}
}

func TestLnExpPow(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	near := func(got, want, tol float64) bool { return math.Abs(got-want) <= tol*math.Max(math.Abs(want), 1e-3) }
	for range 100000 {
		x := math.Ldexp(1+r.Float64(), r.IntN(200)-100)
		if got, want := ln(x), math.Log(x); !near(got, want, 1e-15) {
			t.Fatalf("ln(%v) = %v, want %v", x, got, want)
		}
		y := r.Float64()*200 - 100
		if got, want := exp64(y), math.Exp(y); math.Abs(got-want) > 1e-15*want {
			t.Fatalf("exp64(%v) = %v, want %v", y, got, want)
		}
		base := 1e4 * (1 + 100*r.Float64())
		if got, want := pow64(base, -r.Float64()), 0.0; got <= want {
			t.Fatalf("pow64(%v) = %v", base, got)
		}
	}
}

func TestInvFreq(t *testing.T) {
	for _, base := range []float64{10000, 500000, 1e6, 5e6} {
		for _, dim := range []int{2, 64, 80, 96, 128, 256} {
			for i, f := range InvFreq(dim, base) {
				if want := math.Pow(base, -float64(2*i)/float64(dim)); math.Abs(float64(f)/want-1) > 6.1e-8 {
					t.Errorf("base %g, dim %d: frequency %d = %v, want %v", base, dim, i, f, want)
				}
			}
		}
	}
}

// The expected values come from transformers' formulas, evaluated in float64.
func TestRopeScaling(t *testing.T) {
	near := func(name string, got []float32, want []float64) {
		t.Helper()
		for i, w := range want {
			if math.Abs(float64(got[i])/w-1) > 2e-7 {
				t.Errorf("%s: frequency %d = %v, want %v", name, i, got[i], w)
			}
		}
	}
	f := InvFreq(8, 10000)
	RopeLinear(f, 4)
	near("linear", f, []float64{0.25, 0.025, 0.0025, 0.00025})
	f = InvFreq(8, 500000)
	Llama3Rope{Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalLength: 256}.Apply(f)
	near("llama3", f, llama3Reference(8, 500000, 8, 1, 4, 256))
	f = InvFreq(128, 500000)
	Llama3Rope{Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalLength: 8192}.Apply(f)
	near("llama3 128", f, llama3Reference(128, 500000, 8, 1, 4, 8192))
	y := YaRN{Factor: 4, OriginalLength: 64}
	near("yarn", y.Frequencies(16, 10000), yarnReference(16, 10000, 4, 64, 32, 1, true))
	y = YaRN{Factor: 40, OriginalLength: 4096, BetaFast: 32, BetaSlow: 1, NoTruncate: true}
	near("yarn 64", y.Frequencies(64, 150000), yarnReference(64, 150000, 40, 4096, 32, 1, false))
	if got, want := y.Attention(), float32(0.1*math.Log(40)+1); got != want {
		t.Errorf("yarn attention factor %v, want %v", got, want)
	}
	y.MScale, y.MScaleAllDim = 0.707, 0.707
	if got := y.Attention(); got != 1 {
		t.Errorf("yarn attention factor with equal mscales is %v, want 1", got)
	}
	if got := DynamicNTKBase(10000, 2, 16, 32, 64); got != 10000 {
		t.Errorf("dynamic NTK within the trained length changes the base to %v", got)
	}
	if got, want := DynamicNTKBase(10000, 2, 16, 128, 64), 10000*math.Pow(3, 16.0/14); math.Abs(got/want-1) > 1e-14 {
		t.Errorf("dynamic NTK base %v, want %v", got, want)
	}
}

func llama3Reference(dim int, base, factor, low, high, length float64) []float64 {
	var out []float64
	for i := 0; i < dim; i += 2 {
		f := math.Pow(base, -float64(i)/float64(dim))
		wave := 2 * math.Pi / f
		smooth := (length/wave - low) / (high - low)
		switch {
		case wave > length/low:
			f /= factor
		case wave >= length/high:
			f = (1-smooth)*f/factor + smooth*f
		}
		out = append(out, f)
	}
	return out
}

func yarnReference(dim int, base, factor, length, fast, slow float64, truncate bool) []float64 {
	at := func(rot float64) float64 {
		return float64(dim) * math.Log(length/(rot*2*math.Pi)) / (2 * math.Log(base))
	}
	low, high := at(fast), at(slow)
	if truncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = math.Max(low, 0), math.Min(high, float64(dim-1))
	if low == high {
		high += 0.001
	}
	var out []float64
	for i := range dim / 2 {
		ramp := math.Min(math.Max((float64(i)-low)/(high-low), 0), 1)
		f := math.Pow(base, -float64(2*i)/float64(dim))
		out = append(out, f/factor*ramp+f*(1-ramp))
	}
	return out
}

func TestRope(t *testing.T) {
	cos, sin := []float32{0.5, 0.25}, []float32{2, 4}
	x := []float32{1, 2, 3, 4, 9}
	Rope(x, cos, sin, false)
	for i, want := range []float32{0.5 - 6, 0.5 - 16, 1.5 + 2, 1 + 8, 9} {
		if x[i] != want {
			t.Errorf("halves: x[%d] = %v, want %v", i, x[i], want)
		}
	}
	x = []float32{1, 3, 2, 4, 9}
	Rope(x, cos, sin, true)
	for i, want := range []float32{0.5 - 6, 1.5 + 2, 0.5 - 16, 1 + 8, 9} {
		if x[i] != want {
			t.Errorf("interleaved: x[%d] = %v, want %v", i, x[i], want)
		}
	}
}

func TestRopeAngles(t *testing.T) {
	f := InvFreq(64, 10000)
	cos, sin := make([]float32, 32), make([]float32, 32)
	for _, pos := range []int{0, 1, 7, 1000, 131071} {
		RopeAngles(cos, sin, pos, f, 1)
		for i := range f {
			a := float64(float32(pos) * f[i])
			if math.Abs(float64(cos[i])-math.Cos(a)) > 6e-8 || math.Abs(float64(sin[i])-math.Sin(a)) > 6e-8 {
				t.Fatalf("position %d, pair %d: %v %v", pos, i, cos[i], sin[i])
			}
		}
	}
}
