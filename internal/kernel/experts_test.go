package kernel

import (
	"math"
	"slices"
	"testing"
)

func TestTopK(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		x    []float32
		want []int32
	}{
		{[]float32{1, 3, 2}, []int32{1, 2}},
		{[]float32{2, 2, 2, 2}, []int32{0, 1}},       // ties: the lowest index
		{[]float32{1, 5, 1, 5, 5}, []int32{1, 3, 4}}, // and in their order
		{[]float32{nan, -1, nan, -2}, []int32{1, 3, 0}},
		{[]float32{nan, nan}, []int32{0, 1}},
		{[]float32{float32(math.Inf(-1)), nan, 0}, []int32{2, 0, 1}},
		{[]float32{7}, []int32{0}},
	} {
		got := make([]int32, len(c.want))
		if TopK(got, c.x); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.x, got, c.want)
		}
	}
}

func TestRouterFunctions(t *testing.T) {
	x := []float32{1, 2, 3, -4, 0.5, 7, 7, -100, 2}
	want, sum := make([]float64, len(x)), 0.0
	for i, v := range x {
		want[i] = math.Exp(float64(v))
		sum += want[i]
	}
	got := slices.Clone(x)
	Softmax(got)
	for i := range got {
		if math.Abs(float64(got[i])-want[i]/sum) > 1e-7 {
			t.Errorf("softmax %d: %v, want %v", i, got[i], want[i]/sum)
		}
	}
	some := []float32{3, 1}
	if Unit(some); some[0] != 0.75 || some[1] != 0.25 {
		t.Errorf("unit: %v", some)
	}
	even, odd := make([]float32, 2), make([]float32, 2)
	if Alternate(even, odd, []float32{1, 2, 3, 4}); !slices.Equal(even, []float32{1, 3}) || !slices.Equal(odd, []float32{2, 4}) {
		t.Errorf("alternate: %v, %v", even, odd)
	}
	gate, up := []float32{-3, 0.5, 9, 2, 2}, []float32{1, -9, 9, 0.25, float32(math.NaN())}
	out := make([]float32, 5)
	ClampedSwiGLU(out, gate, up, 1.702, 7)
	for i := range out[:4] {
		g, u := min(float64(gate[i]), 7), max(min(float64(up[i]), 7), -7)
		if w := g / (1 + math.Exp(-1.702*g)) * (u + 1); math.Abs(float64(out[i])-w) > 1e-5 {
			t.Errorf("swiglu %d: %v, want %v", i, out[i], w)
		}
	}
	if out[4] == out[4] {
		t.Errorf("NaN becomes %v", out[4])
	}
}
