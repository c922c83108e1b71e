package layout

// AttentionLayer is what a layer's attention computes: Heads query heads share KVHeads keys of KDim and values of VDim
// numbers a position. A row sees Window positions, itself included; 0 means all before it.
type AttentionLayer struct{ Heads, KVHeads, KDim, VDim, Window int }

// seen returns how many positions the row at position p sees.
func (a *AttentionLayer) seen(p int64) int64 {
	if a.Window > 0 {
		return min(p+1, int64(a.Window))
	}
	return p + 1
}

// pairs returns the sum of seen over rows from to to-1.
func (a *AttentionLayer) pairs(from, to int64) int64 {
	sum := func(n int64) int64 { // over the first n rows
		if w := int64(a.Window); w > 0 && n > w {
			return w*(w+1)/2 + (n-w)*w
		}
		return n * (n + 1) / 2
	}
	return sum(to) - sum(from)
}

// AttentionWork returns what attention costs for the causal rows from to to-1 of a sequence: multiplications and
// additions, and the numbers of the cache that they read if they are computed in one pass, in which each is read once.
func (m *Model) AttentionWork(from, to int) (operations float64, values int64) {
	lo, hi := int64(from), int64(to)
	if lo >= hi {
		return 0, 0
	}
	for i := range m.Attention {
		a := &m.Attention[i]
		operations += 2 * float64(a.Heads) * float64(a.KDim+a.VDim) * float64(a.pairs(lo, hi))
		values += int64(a.KVHeads) * int64(a.KDim+a.VDim) * (hi - 1 - lo + a.seen(lo))
	}
	return operations, values
}
