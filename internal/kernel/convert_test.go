package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spillway/spillway/internal/quant"
)

// Every binary16 value, the middle to its neighbour and both sides of the middle round as they must.
func TestToF16EveryValue(t *testing.T) {
	inf := float32(math.Inf(1))
	var src []float32
	var want []uint16
	expect := func(x float32, h uint16) {
		src = append(src, x, -x)
		want = append(want, h, h|0x8000)
	}
	for h := uint16(0); h < 0x7c00; h++ {
		a, next := quant.F16ToF32(h), quant.F16ToF32(h+1)
		if h == 0x7bff {
			next = 65536
		}
		expect(a, h)
		middle := a + (next-a)/2
		expect(middle, (h+1)&^1)
		expect(math.Nextafter32(middle, 0), h)
		expect(math.Nextafter32(middle, inf), h+1)
	}
	for _, x := range []float32{65536, 1e10, math.MaxFloat32, inf} {
		expect(x, 0x7c00)
	}
	eachISA(t, func(t *testing.T) {
		got := make([]uint16, len(src))
		if ToF16(got, src) {
			t.Error("infinite results count as finite")
		}
		for i, w := range want {
			if got[i] != w {
				t.Fatalf("%v (%08x) becomes %04x, want %04x", src[i], bits(src[i]), got[i], w)
			}
		}
	})
}

func TestToF16Finite(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		for n := 1; n < 40; n++ {
			x, h := make([]float32, n), make([]uint16, n)
			if !ToF16(h, x) {
				t.Fatalf("%d zeros are not finite", n)
			}
			for i := range x {
				for _, bad := range []float32{65520, -1e30, float32(math.NaN()), float32(math.Inf(-1))} {
					x[i] = bad
					if ToF16(h, x) {
						t.Fatalf("%v at %d of %d: finite is wrong", bad, i, n)
					}
				}
				x[i] = 65519
			}
		}
	})
}

func TestF16IsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	for range 200 {
		x := mixed(r, 1+r.IntN(300), 4, 3)
		want, got := make([]uint16, len(x)), make([]uint16, len(x))
		finite := toF16Go(want, x)
		for _, isa := range isaTable {
			if isa.vector.toF16(got, x) != finite {
				t.Fatalf("%s: finite is not %v for %v", isa.name, finite, x)
			}
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%s: %08x becomes %04x, want %04x", isa.name, bits(x[i]), got[i], want[i])
				}
			}
		}
	}
}

// Every one of the 65536 values widens and returns.
func TestWidenF16(t *testing.T) {
	h, back, wide := make([]uint16, 1<<16), make([]uint16, 1<<16), make([]float32, 1<<16)
	raw := make([]byte, 0, 1<<17)
	for i := range h {
		h[i] = uint16(i)
		raw = append(raw, byte(i), byte(i>>8))
	}
	for i := range h {
		wide[i] = quant.F16ToF32(h[i])
	}
	ToF16(back, wide)
	for i := range h {
		want := h[i]
		if want&0x7c00 == 0x7c00 && want&0x3ff != 0 {
			want |= 0x200 // NaN becomes quiet
		}
		if back[i] != want {
			t.Fatalf("%04x widens to %v and returns as %04x", h[i], wide[i], back[i])
		}
	}
	eachISA(t, func(t *testing.T) {
		got := make([]float32, 1<<15)
		for _, n := range []int{8, 16, 40, 128, 12} {
			rows := 1 << 16 / 256
			active.vector.widen(CacheF16, got, raw, rows, n, 512)
			for i := range rows * n {
				if want := wide[i/n*256+i%n]; !same(got[i], want) {
					t.Fatalf("rows of %d: value %d is %v, want %v", n, i, got[i], want)
				}
			}
		}
	})
}

func TestAllFinite(t *testing.T) {
	if !AllFinite([]float32{1, 2}) || AllFinite([]float32{1, float32(math.Inf(1))}) || AllFinite([]float32{float32(math.NaN())}) {
		t.Error("AllFinite is wrong")
	}
}
