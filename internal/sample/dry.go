package sample

import "slices"

// dry takes multiplier·base^(length - allowed) from the logit of each token that once followed a copy
// of the sequence's own end; length is that of the longest such copy. It is llama.cpp's definition of
// p-e-w's "DRY" (text-generation-webui, pull request 5677).
func (p *Params) dry(out []float32, in *Input) {
	window := last(in.History, p.DRYLastN)
	allowed, n := or(p.DRYAllowedLength, defaultDRYAllowed), len(window)
	reach := p.reach(window)
	if n <= allowed || reach < allowed {
		return
	}
	lengths, longest := in.Scratch.matches[:n], in.Scratch.counts
	copiesOfEnd(lengths, window)
	for k := 1; k < n; k++ { // a copy that ends k tokens before the end
		id, length := window[n-k], min(int(lengths[k]), reach)
		if length >= allowed && uint(id) < uint(len(out)) {
			longest[id] = max(longest[id], uint32(length))
		}
	}
	for _, id := range window {
		if uint(id) < uint(len(out)) && longest[id] > 0 {
			if !p.breaks(id) {
				out[id] -= p.dryPenalty(int(longest[id]) - allowed)
			}
			longest[id] = 0
		}
	}
}

// dryPenalty is multiplier·base^n, by n products in float64, where that is below about 1e30.
func (p *Params) dryPenalty(n int) float32 {
	v := float64(p.DRYMultiplier)
	base := float64(or(p.DRYBase, defaultDRYBase))
	if base == 1 {
		n = 0
	}
	for ; n > 0 && v < 1e30; n-- {
		v *= base
	}
	return float32(v)
}

// reach is how many tokens at the end no breaker separates from it.
func (p *Params) reach(window []int32) int {
	n := len(window)
	for k := range n { // what begins k+1 tokens before the end
		longest := 0
		at, _ := slices.BinarySearchFunc(p.DRYBreakers, window[n-k-1], byHead)
		for ; at < len(p.DRYBreakers) && p.DRYBreakers[at][0] == window[n-k-1]; at++ {
			b := p.DRYBreakers[at]
			if len(b) <= k+1 && len(b) > longest && endsWith(window[:n-k-1+len(b)], b) {
				longest = len(b)
			}
		}
		if longest > 0 {
			return k + 1 - longest
		}
	}
	return n
}

// breaks reports whether a token is a breaker by itself; such a one is never penalized.
func (p *Params) breaks(id int32) bool {
	at, _ := slices.BinarySearchFunc(p.DRYBreakers, id, byHead)
	for ; at < len(p.DRYBreakers) && p.DRYBreakers[at][0] == id; at++ {
		if len(p.DRYBreakers[at]) == 1 {
			return true
		}
	}
	return false
}

func byHead(b []int32, head int32) int { return int(b[0]) - int(head) }

// sortedByHead returns breakers in the order that reach wants.
func sortedByHead(breakers [][]int32) [][]int32 {
	return slices.SortedStableFunc(slices.Values(breakers), func(a, b []int32) int { return byHead(a, b[0]) })
}

// copiesOfEnd sets lengths[k], for k from 1, to how many tokens before position n-k equal those before
// the end: the Z algorithm on the reversed window.
func copiesOfEnd(lengths, window []int32) {
	n := len(window)
	back := func(k int) int32 { return window[n-1-k] }
	from, to := 0, 0 // the copy [from, to) that reaches farthest
	for k := 1; k < n; k++ {
		length := 0
		if k < to {
			length = min(int(lengths[k-from]), to-k)
		}
		for k+length < n && back(length) == back(k+length) {
			length++
		}
		lengths[k] = int32(length)
		if k+length > to {
			from, to = k, k+length
		}
	}
}
