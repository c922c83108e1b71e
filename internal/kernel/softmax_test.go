package kernel

import (
	"math"
	"testing"
)

func TestArgMax(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		x    []float32
		want int
	}{
		{nil, -1}, {[]float32{3}, 0}, {[]float32{1, 5, 5, 2}, 1}, {[]float32{nan, 1, nan, 2}, 3},
		{[]float32{nan, nan}, 0}, {[]float32{nan, inf, inf}, 1}, {[]float32{0, fromBits(0x80000000)}, 0},
	} {
		if got := ArgMax(c.x); got != c.want {
			t.Errorf("ArgMax(%v) = %d, want %d", c.x, got, c.want)
		}
	}
}

func TestLogSumExp(t *testing.T) {
	if got := LogSumExp([]float32{1000, 1000}); math.Abs(got-1000-math.Ln2) > 1e-12 {
		t.Errorf("LogSumExp of two thousands is %v", got)
	}
	if got := LogSumExp(nil); !math.IsInf(got, -1) {
		t.Errorf("LogSumExp of nothing is %v", got)
	}
	if got := LogSumExp([]float32{float32(math.NaN()), 1}); got == got {
		t.Errorf("LogSumExp with a NaN is %v", got)
	}
}
