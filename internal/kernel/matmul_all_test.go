package kernel

import (
	"fmt"
	"testing"

	"github.com/spillway/spillway/internal/quant"
)

// Products in one go are those that come one by one.
func TestMatMulAll(t *testing.T) {
	const cols = 512
	s := source(31)
	eachISA(t, func(t *testing.T) {
		for _, rows := range []int{1, 2, 5} {
			p := NewPool(3)
			defer p.Close()
			scratch := make([]byte, ScratchBytes(3, cols))
			a := MakeActs(make([]byte, ActsBytes(rows, cols, true)), rows, cols, true)
			a.SetRows(p, s.floats(rows*cols), cols)
			var all []Output
			var want [][]float32
			for i, typ := range []quant.Type{quant.Q8_0, quant.Q4_K, quant.F16, quant.Q8_0} {
				n := []int{100, 7, 33, 0}[i]
				var data []byte
				for _, f := range blockHalves {
					if f.t == typ {
						data = randomBlocks(&s, typ, f.at, n*cols)
					}
				}
				if typ == quant.F16 {
					data = appendValues(nil, typ, s.floats(n*cols))
				}
				w := Weights{Type: typ, Rows: n, Cols: cols, Data: data}
				all = append(all, Output{W: w, Out: make([]float32, rows*120), Stride: 120})
				want = append(want, make([]float32, rows*120))
				MatMul(p, scratch, w, &a, want[i], 120, false)
			}
			for round := range 3 {
				MatMulAll(p, scratch, &a, false, all)
				for i := range all {
					if d := firstDifference(all[i].Out, want[i]); d != "" {
						t.Fatal(fmt.Sprintf("%d rows, round %d, matrix %d: ", rows, round, i), d)
					}
				}
			}
		}
	})
}
