package trace

import "slices"

// Reuse says how soon experts are needed again.
type Reuse struct {
	// Distance[d] is how many demands found that d other experts of the layer were needed since their last one, those of the same step before
	// it counted: a cache of more than d slots in each layer that keeps what was needed last (LRU) has it.
	Distance []int64
	First    int64 // demands of experts that were not needed before
}

// Reuse measures the distances of all layers together (stack distances; Mattson et al. 1970).
func (t *Trace) Reuse() Reuse {
	r := Reuse{Distance: make([]int64, t.Header.Experts)}
	recent := make([][]uint16, t.Header.Layers) // by layer: what was needed last comes first
	for _, s := range t.steps {
		list := recent[s.Layer]
		for _, e := range s.Experts {
			if at := slices.Index(list, e); at >= 0 {
				r.Distance[at]++
			} else {
				r.First++
			}
		}
		for _, e := range slices.Backward(s.Experts) {
			at := slices.Index(list, e)
			if at < 0 {
				list = append(list, e)
				at = len(list) - 1
			}
			copy(list[1:at+1], list[:at])
			list[0] = e
		}
		recent[s.Layer] = list
	}
	return r
}
