package policy

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestDistribute(t *testing.T) {
	for _, c := range []struct {
		name   string
		curves [][]int64
		slots  int
		want   []int
	}{
		{"the steeper first", [][]int64{{0, 5, 6, 6}, {0, 9, 12, 13}}, 3, []int{1, 2}},
		{"no more than of use", [][]int64{{0, 1}, {0, 1}}, 5, []int{1, 1}},
		{"a step that needs three", [][]int64{{0, 0, 0, 12}, {0, 3, 5, 6}}, 3, []int{3, 0}},
		{"a step that does not fit", [][]int64{{0, 0, 0, 12}, {0, 3, 5, 6}}, 2, []int{0, 2}},
		{"none", [][]int64{{0, 4}}, 0, []int{0}},
	} {
		if d := cmp.Diff(c.want, Distribute(c.curves, c.slots)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// Where every next slot gains less than the one before, no other way to share gives more.
func TestDistributeIsBest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		curves := make([][]int64, rapid.IntRange(1, 3).Draw(rt, "layers"))
		for i := range curves {
			gains := rapid.SliceOfN(rapid.Int64Range(0, 9), 1, 5).Draw(rt, "gains")
			slices.Sort(gains)
			curves[i] = []int64{0}
			for _, g := range slices.Backward(gains) {
				curves[i] = append(curves[i], curves[i][len(curves[i])-1]+g)
			}
		}
		slots := rapid.IntRange(0, 12).Draw(rt, "slots")
		got, sum := int64(0), 0
		for i, n := range Distribute(curves, slots) {
			got += curves[i][n]
			sum += n
		}
		if want := mostHits(curves, slots); got != want || sum > slots {
			rt.Fatalf("%d hits with %d slots, %d are possible with %d", got, sum, want, slots)
		}
	})
}

func mostHits(curves [][]int64, slots int) int64 {
	if len(curves) == 0 {
		return 0
	}
	best := int64(0)
	for n := 0; n <= slots && n < len(curves[0]); n++ {
		best = max(best, curves[0][n]+mostHits(curves[1:], slots-n))
	}
	return best
}

// Rebalance gives layers what Distribute gives them by the same use, beyond each one's floor.
func TestRebalanceFollowsUse(t *testing.T) {
	shape := Shape{2, 8}
	table := NewTable(shape, newLRU(shape))
	for i := range 8 {
		table.Give(i)
	}
	for i := range 64 { // layer 0 needs one expert, layer 1 all in turn
		playVisit(table, 0, visitOf([]int{3}, false))
		playVisit(table, 1, visitOf([]int{i % 8}, false))
	}
	table.Rebalance(0)
	if d := cmp.Diff([]int{1, 7}, table.Quotas()); d != "" {
		t.Error(d)
	}
	table.Rebalance(2)
	if d := cmp.Diff([]int{1, 5}, table.Quotas()); d != "" {
		t.Error(d)
	}
}

// Old use fades: a layer that was busy long ago gives its share to one that is busy now.
func TestRebalanceForgets(t *testing.T) {
	shape := Shape{2, 8}
	table := NewTable(shape, newLRU(shape))
	for i := range 8 {
		table.Give(i)
	}
	turn := func(busy int) []int {
		for i := range 64 {
			playVisit(table, busy, visitOf([]int{i % 8}, false))
			playVisit(table, 1-busy, visitOf([]int{3}, false))
		}
		table.Rebalance(0)
		return table.Quotas()
	}
	for range 6 {
		turn(0)
	}
	var got []int
	for range 3 {
		got = turn(1)
	}
	if d := cmp.Diff([]int{1, 7}, got); d != "" {
		t.Error(d)
	}
}

func TestTransit(t *testing.T) {
	s := Shape{4, 32}
	for _, c := range []struct{ slots, want int }{{1, 0}, {2, 1}, {3, 1}, {8, 2}, {31, 2}, {32, 0}, {128, 0}} {
		if got := Transit(s, 4, c.slots); got != c.want {
			t.Errorf("%d slots: %d in transit, want %d", c.slots, got, c.want)
		}
	}
}

func TestEqual(t *testing.T) {
	if d := cmp.Diff([]int{3, 2, 2}, Equal(Shape{3, 8}, 7)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]int{8, 8}, Equal(Shape{2, 8}, 99)); d != "" {
		t.Error(d)
	}
}
