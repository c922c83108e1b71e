package regular

// Edges calls f for each run of neighbouring bytes with one target, in order.
func (d *DFA) Edges(state int, f func(lo, hi byte, to int)) { d.edges(state, f) }
