package nn_test

import (
	"testing"

	"github.com/spillway/spillway/internal/nn"
	"github.com/spillway/spillway/internal/nn/nntest"
	"github.com/spillway/spillway/internal/quant"
)

// What is planned for any number of rows is what the arena needs, and hardly more.
func TestPlannedScratch(t *testing.T) {
	for _, typ := range []quant.Type{quant.F32, quant.Q8_0} {
		for _, exact := range []bool{false, true} {
			m := nntest.Start(t, nntest.Tiny(rope()), nntest.NewWeights(typ, 1), nntest.Options{Rows: 4, HeadRows: 1, Threads: 2}).Model
			c := nn.Scratch{Context: 300, Threads: 2, Exact: exact}
			fixed := m.PlanScratch(c)
			for rows := range 1100 {
				for _, heads := range []int{0, 1, 5, rows} {
					c.Rows, c.HeadRows = rows, heads
					planned := fixed + int64(rows)*m.Layout.ScratchPerRow + int64(heads)*m.Layout.ScratchPerHeadRow
					needed := int64(m.ScratchBytes(c))
					if planned < needed || planned > needed+needed/8+16<<10 {
						t.Fatalf("%v, exact %v: %d rows, %d of them for the head: %d bytes planned, %d needed", typ, exact, rows, heads, planned, needed)
					}
				}
			}
		}
	}
}
