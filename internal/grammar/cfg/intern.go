package cfg

import "math/rand/v2"

// table is a hash table of numbers of things that lie elsewhere.
type table struct {
	slots []int32 // number + 1; 0: free
	used  int
	seed  uint64
}

func newTable() table { return table{slots: make([]int32, 64), seed: rand.Uint64() | 1} }

func (t *table) mix(h, v uint64) uint64 {
	h = (h ^ v) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// find returns the number for which same holds, or -1.
func (t *table) find(h uint64, same func(i int32) bool) int32 {
	mask := uint64(len(t.slots) - 1)
	for p := h & mask; t.slots[p] != 0; p = (p + 1) & mask {
		if i := t.slots[p] - 1; same(i) {
			return i
		}
	}
	return -1
}

// put adds a number that find did not find.
func (t *table) put(h uint64, i int32, hash func(i int32) uint64) {
	if t.used*4 >= len(t.slots)*3 {
		old := t.slots
		t.slots = make([]int32, 2*len(old))
		for _, s := range old {
			if s != 0 {
				t.place(hash(s-1), s-1)
			}
		}
	}
	t.place(h, i)
	t.used++
}

func (t *table) place(h uint64, i int32) {
	mask := uint64(len(t.slots) - 1)
	p := h & mask
	for t.slots[p] != 0 {
		p = (p + 1) & mask
	}
	t.slots[p] = i + 1
}
