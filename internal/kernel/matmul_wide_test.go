package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Loops for 8 and for many rows of activations give the bits of the pure Go definition: every format, numbers of
// rows around those of tiles and panels, columns that end within a group, and more than one panel of them.
func TestMatMulManyRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(61, 62))
	for _, typ := range matmulTypes() {
		if typ.IsFloat() {
			continue
		}
		t.Run(typ.String(), func(t *testing.T) {
			for mode := range 3 {
				width := typ.BlockValues()
				cols := (1 + rng.IntN(800)) / width * width
				rows, batch := 1+rng.IntN(40), 9+rng.IntN(45)
				if mode == 2 {
					cols, rows, batch = panelCols(intGroup)+groupValues+width, 3, 23+rng.IntN(4)
				}
				checkManyRows(t, rng, randomWeights(rng, typ, rows, max(cols, width), mode == 1), batch, mode == 1)
				eight := randomWeights(rng, typ, 1+rng.IntN(70), (1+rng.IntN(7))*groupValues, mode == 1)
				checkManyRows(t, rng, eight, batchRows, mode == 1)
			}
		})
	}
}

func checkManyRows(t *testing.T, rng *rand.Rand, w Weights, batch int, wild bool) {
	x := make([]float32, batch*w.Cols)
	fillNormal(rng, x)
	for r := range batch {
		if wild && r%3 == 0 {
			fillWild(rng, x[r*w.Cols:(r+1)*w.Cols], r%2 == 1)
		}
	}
	want := referenceMatMul(w, x, false)
	for _, isa := range ISAs() {
		restore := Force(isa)
		diffFloats(t, fmt.Sprint(isa, w.Rows, w.Cols, batch), runMatMul(2, w, makeActs(batch, w.Cols, x), false), want)
		restore()
	}
}
