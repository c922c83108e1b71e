package kernel

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spillway/spillway/internal/quant"
)

func TestParseCacheType(t *testing.T) {
	for _, name := range CacheTypeNames() {
		if c, err := ParseCacheType(name); err != nil || c.String() != name {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
	if _, err := ParseCacheType("q4_0"); err == nil || !strings.Contains(err.Error(), "f32, f16, bf16, q8_0, fp8") {
		t.Errorf("q4_0: %v", err)
	}
	if CacheF16 != 0 {
		t.Error("f16 is not the default")
	}
}

// e4m3 is the value of a code, by the format's definition: sign, 4 bits of exponent with bias 7, 3 bits
// of fraction, subnormal numbers, no infinities.
func e4m3(code byte) float64 {
	e, f := int(code>>3&15), float64(code&7)
	v := math.Ldexp(1+f/8, e-7)
	if e == 0 {
		v = math.Ldexp(f/8, -6)
	}
	if code&0x80 != 0 {
		v = -v
	}
	return v
}

func storeOne(t *testing.T, typ CacheType, x float32) (code byte, finite bool) {
	t.Helper()
	var b [1]byte
	finite = typ.Store(b[:], []float32{x})
	return b[0], finite
}

// Every code means what the format says, returns to itself, and so do the middles between two codes, to
// the even one, and their neighbours.
func TestFP8EveryCode(t *testing.T) {
	for c := range 0x7f {
		for _, sign := range []byte{0, 0x80} {
			code := byte(c) | sign
			v := float32(e4m3(code))
			if got := fp8ToF32(code); !same(got, v) {
				t.Fatalf("%02x is %v, want %v", code, got, v)
			}
			middle := float32((e4m3(code) + e4m3(code+1)) / 2)
			below, above := math.Nextafter32(middle, 0), math.Nextafter32(middle, 2*middle)
			for _, x := range []struct {
				x    float32
				want byte
			}{{v, code}, {below, code}, {middle, (code + 1) &^ 1}, {above, code + 1}} {
				got, finite := storeOne(t, CacheFP8, x.x)
				if last := x.want&0x7f == 0x7f; finite == last || !last && got != x.want {
					t.Fatalf("%v (%08x) becomes %02x (finite: %t), want %02x", x.x, bits(x.x), got, finite, x.want)
				}
			}
		}
	}
	for _, x := range []float32{464.00003, 480, 1e30, float32(math.Inf(1)), float32(math.NaN()), -1e9} {
		if _, finite := storeOne(t, CacheFP8, x); finite {
			t.Errorf("%v fits into fp8", x)
		}
	}
}

// A block's scale is its largest value over 127 as f16, and every value is off by half a step at most, or
// by what f16 made of the scale.
func TestQ8Store(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	for range 300 {
		size := math.Ldexp(1, r.IntN(30)-16)
		x := make([]float32, 32)
		var top float64
		for i := range x {
			x[i] = float32(r.NormFloat64() * size)
			top = max(top, math.Abs(float64(x[i])))
		}
		b := make([]byte, 34)
		if !CacheQ8.Store(b, x) {
			t.Fatalf("%v does not fit", x)
		}
		d := f16At(b)
		if want := quant.F16ToF32(quant.F32ToF16(float32(top) / 127)); d != want {
			t.Fatalf("the scale of %v is %v, want %v", top, d, want)
		}
		got := make([]float32, 32)
		widenRowGo(CacheQ8, got, b)
		for i := range x {
			if off := math.Abs(float64(got[i] - x[i])); off > 0.5000001*float64(d) && off > 127*0x1p-24 {
				if math.Abs(float64(x[i])) < 126.9*float64(d) {
					t.Fatalf("%v became %v with a scale of %v", x[i], got[i], d)
				}
			}
		}
	}
	b := make([]byte, 34)
	if !CacheQ8.Store(b, make([]float32, 32)) || f16At(b) != 0 {
		t.Error("zeros do not give zeros")
	}
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(-1)), 9e6} {
		x := make([]float32, 32)
		x[7] = bad
		if CacheQ8.Store(b, x) {
			t.Errorf("%v fits into a block", bad)
		}
	}
}

func TestStoreFinite(t *testing.T) {
	for _, typ := range []CacheType{CacheF32, CacheF16, CacheBF16, CacheFP8, CacheQ8} {
		row, x := make([]byte, typ.RowBytes(64)), make([]float32, 64)
		if !typ.Store(row, x) {
			t.Errorf("%v: zeros are not finite", typ)
		}
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
			x[40] = bad
			if typ.Store(row, x) {
				t.Errorf("%v: %v is finite", typ, bad)
			}
		}
	}
	if row := make([]byte, 2); CacheBF16.Store(row, []float32{math.MaxFloat32}) {
		t.Error("bf16 holds what it rounds to infinity")
	}
}

// Rows of any values round as the definition says; where one is not finite, all sets say so.
func TestStoreIsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(45, 46))
	finite := 0
	for round := range 2000 {
		typ := []CacheType{CacheBF16, CacheFP8, CacheQ8}[round%3]
		n := (1 + r.IntN(100)) * typ.BlockValues()
		x := mixed(r, n, round%2, 0)
		scale := float32(math.Ldexp(1, r.IntN(60)-40))
		for i := range x {
			x[i] *= scale
		}
		if round%5 == 0 {
			x[r.IntN(n)] = adversarial[r.IntN(len(adversarial))]
		}
		want := make([]byte, typ.RowBytes(n))
		fine := storeGo(typ, want, x)
		finite += map[bool]int{true: 1}[fine]
		for _, isa := range isaTable {
			got := make([]byte, len(want))
			if isa.vector.store(typ, got, x) != fine {
				t.Fatalf("%s, %v: finite is not %t for %v", isa.name, typ, fine, x)
			}
			if fine && !bytes.Equal(got, want) {
				t.Fatalf("%s, %v: %v becomes %x, want %x", isa.name, typ, x, got, want)
			}
		}
	}
	if finite < 200 || finite > 1900 {
		t.Errorf("%d of 2000 rows were finite", finite)
	}
}

// Rows of any bytes widen as the definition says, in all lengths and strides.
func TestWidenIsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 44))
	raw := make([]byte, 1<<14)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	eachISA(t, func(t *testing.T) {
		for typ := range cacheTypes {
			for _, n := range []int{1, 8, 12, 16, 32, 40, 64, 96, 160} {
				n = (n + typ.BlockValues() - 1) / typ.BlockValues() * typ.BlockValues()
				stride := typ.RowBytes(n) + r.IntN(9)
				got, want := make([]float32, 5*n), make([]float32, 5*n)
				active.vector.widen(typ, got, raw, 5, n, stride)
				widenGo(typ, want, raw, 5, n, stride)
				if d := firstDifference(got, want); d != "" {
					t.Fatalf("%v, rows of %d: %s", typ, n, d)
				}
			}
		}
	})
}
