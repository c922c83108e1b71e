package quant

import (
	"math"
	"testing"
)

// checkNarrow tests a rounding on every finite pattern, half way between neighbours, and one step
// beside half way.
func checkNarrow(t *testing.T, top uint16, widen func(uint16) float32, narrow func(float32) uint16) {
	t.Helper()
	for sign := uint16(0); ; sign = 0x8000 {
		for h := uint16(0); h < top; h++ {
			x, y := widen(sign|h), widen(sign|(h+1))
			if h+1 == top { // the overflow border is where the next value would be
				y = x + (x - widen(sign|(h-1)))
			}
			middle := float32((float64(x) + float64(y)) / 2)
			even := sign | (h + h&1)
			for _, c := range []struct {
				x    float32
				want uint16
			}{
				{x, sign | h}, {middle, even},
				{math.Nextafter32(middle, x), sign | h}, {math.Nextafter32(middle, y), sign | (h + 1)},
			} {
				if got := narrow(c.x); got != c.want {
					t.Fatalf("%v (%08x) becomes %04x, not %04x", c.x, math.Float32bits(c.x), got, c.want)
				}
			}
		}
		if sign != 0 {
			return
		}
	}
}

func TestF32ToF16(t *testing.T) { checkNarrow(t, 0x7c00, F16ToF32, F32ToF16) }

func TestF32ToBF16(t *testing.T) {
	// The last finite patterns have no float32 above them to be half way to.
	checkNarrow(t, 0x7f7f, BF16ToF32, F32ToBF16)
	if got := F32ToBF16(math.MaxFloat32); got != 0x7f80 {
		t.Errorf("the largest float32 becomes %04x, not Inf", got)
	}
}

func TestNarrowSpecials(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		x         float32
		f16, bf16 uint16
	}{
		{inf, 0x7c00, 0x7f80}, {-inf, 0xfc00, 0xff80}, {float32(math.Copysign(0, -1)), 0x8000, 0x8000},
		{math.SmallestNonzeroFloat32, 0, 0},
	} {
		if F32ToF16(c.x) != c.f16 || F32ToBF16(c.x) != c.bf16 {
			t.Errorf("%v: %04x and %04x, not %04x and %04x", c.x, F32ToF16(c.x), F32ToBF16(c.x), c.f16, c.bf16)
		}
	}
	for _, bits := range []uint32{0x7f800001, 0x7fc00000, 0xff800001, 0xffffffff} {
		x := math.Float32frombits(bits)
		if y := F16ToF32(F32ToF16(x)); y == y {
			t.Errorf("NaN %08x becomes %v as a half", bits, y)
		}
		if y := BF16ToF32(F32ToBF16(x)); y == y {
			t.Errorf("NaN %08x becomes %v as a bfloat16", bits, y)
		}
	}
}
