package nn_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spillway/spillway/internal/nn"
)

// pooled is the definition of docs/numerics.md, written again.
func pooled(kind nn.Pooling, rows [][]float32) []float32 {
	v := make([]float32, len(rows[0]))
	for d := range v {
		if kind == nn.PoolLast {
			v[d] = rows[len(rows)-1][d]
			continue
		}
		for _, row := range rows {
			v[d] += row[d]
		}
		v[d] *= 1 / float32(len(rows))
	}
	var s [8]float32
	for k, x := range v { // fma: the values have 12 bits, so that the product is exact in float64, and the sum too
		s[k%8] = float32(float64(x)*float64(x) + float64(s[k%8]))
	}
	length := float32(math.Sqrt(float64(((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])))))
	for d := range v {
		v[d] /= length
	}
	return v
}

func TestPooler(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, kind := range []nn.Pooling{nn.PoolMean, nn.PoolLast} {
		for _, width := range []int{1, 8, 21, 64} {
			rows := make([][]float32, 8) // 1/8 is exact: the definition above needs it
			p := nn.NewPooler(kind, width)
			for i := range rows {
				rows[i] = make([]float32, width)
				for d := range rows[i] {
					rows[i][d] = float32(r.IntN(512)-256) / 16
				}
				p.Add(rows[i])
			}
			got := p.Vector()
			if want := pooled(kind, rows); !sameBits(got, want) {
				t.Errorf("pooling %d of width %d: %v, want %v", kind, width, got, want)
			}
		}
	}
}

// TestPoolerGolden has sums that depend on their order and quotients that are not exact.
func TestPoolerGolden(t *testing.T) {
	for kind, want := range map[nn.Pooling][]uint32{
		nn.PoolMean: {0x3e230dd5, 0, 0x3f7cbbd6},
		nn.PoolLast: {0xb14e288f, 0xbf800000, 0x323cfa83},
	} {
		p := nn.NewPooler(kind, 3)
		for _, row := range [][]float32{{0.1, 1e8, -3}, {0.7, 1, 5}, {-0.3, -1e8, 1.1}} {
			p.Add(row)
		}
		var got []uint32
		for _, x := range p.Vector() {
			got = append(got, math.Float32bits(x))
		}
		if !slices.Equal(got, want) {
			t.Errorf("pooling %d: %#08x, want %#08x", kind, got, want)
		}
	}
	p := nn.NewPooler(nn.PoolMean, 2)
	p.Add([]float32{0, 0})
	if v := p.Vector(); v[0] != 0 || v[1] != 0 {
		t.Errorf("zeros become %v", v)
	}
}
