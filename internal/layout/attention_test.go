package layout

import "testing"

// TestAttentionWork counts row by row what the formulas sum.
func TestAttentionWork(t *testing.T) {
	m := Model{Attention: []AttentionLayer{{Heads: 4, KVHeads: 2, KDim: 8, VDim: 4}, {Heads: 3, KVHeads: 1, KDim: 16, VDim: 16, Window: 5}}}
	for _, rows := range [][2]int{{0, 1}, {0, 4}, {0, 5}, {0, 12}, {3, 4}, {3, 9}, {7, 8}, {7, 30}, {4, 4}} {
		var pairs, read [2]int64
		for i, a := range m.Attention {
			touched := map[int]bool{}
			for p := rows[0]; p < rows[1]; p++ {
				for k := range p + 1 {
					if a.Window == 0 || k > p-a.Window {
						pairs[i]++
						touched[k] = true
					}
				}
			}
			read[i] = int64(len(touched))
		}
		operations, values := m.AttentionWork(rows[0], rows[1])
		if want := 2 * float64(4*12*pairs[0]+3*32*pairs[1]); operations != want {
			t.Errorf("rows %v: %g operations, want %g", rows, operations, want)
		}
		if want := 2*12*read[0] + 32*read[1]; values != want {
			t.Errorf("rows %v: %d values, want %d", rows, values, want)
		}
	}
}
