package policy

import "testing"

// BenchmarkVisit is a visit with 8 demands to a layer of 128 experts that has room for 32: what a policy costs a step, layer by layer.
func BenchmarkVisit(b *testing.B) {
	for _, name := range Names() {
		b.Run(name, func(b *testing.B) {
			shape := Shape{16, 128}
			rule, err := New(name, shape, make([]int64, shape.all()))
			if err != nil {
				b.Fatal(err)
			}
			table := NewTable(shape, rule)
			table.Window = 8
			for i := range 16 * 32 {
				table.Give(i)
			}
			table.SetQuotas(Equal(shape, 16*32))
			v := visitOf([]int{0, 1, 2, 3, 4, 5, 6, 7}, false)
			slots := make([]int32, 8)
			step := uint64(0)
			for b.Loop() {
				for i := range v.Demands {
					step = step*6364136223846793005 + 1442695040888963407
					v.Demands[i].Expert = int32(i*16) + int32(step>>60)
				}
				layer := int(step>>40) % 16
				table.Visit(layer, v, slots)
				for i, s := range slots {
					if s < 0 {
						slot, _ := table.Load(layer, int(v.Demands[i].Expert))
						slots[i] = int32(slot)
					}
				}
				for _, s := range slots {
					table.Release(int(s))
				}
			}
		})
	}
}

// BenchmarkRebalance is a new look at the shares of 48 layers with 128 experts.
func BenchmarkRebalance(b *testing.B) {
	shape := Shape{48, 128}
	table := NewTable(shape, newLRU(shape))
	for i := range 48 * 32 {
		table.Give(i)
	}
	for i := range table.counts {
		table.counts[i] = int64(i * 7919 % 1000)
	}
	for b.Loop() {
		table.Rebalance(0)
		for i := range table.counts {
			table.counts[i] = int64(i * 7919 % 1000)
		}
	}
}
