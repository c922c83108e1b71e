package policy

// Equal cuts slots into shares of the layers, the first ones get what is left over.
func Equal(s Shape, slots int) []int {
	out := make([]int, s.Layers)
	for i := range out {
		out[i] = slots / s.Layers
		if i < slots%s.Layers {
			out[i]++
		}
		out[i] = min(out[i], s.Experts)
	}
	return out
}

// Distribute cuts slots into shares of the layers so that they give the most hits. curves[l][n] is what
// layer l hits with n slots, rising from n = 0; with len(curves[l]) - 1 slots a layer has all that it can use. Slots go
// where the next ones gain most apiece; a step of a curve that only pays with several slots at once is
// taken whole or not at all, so that few slots may be left over. They go to the first layers with room.
func Distribute(curves [][]int64, slots int) []int {
	out := make([]int, len(curves))
	for slots > 0 {
		best, width, gain := none, 0, int64(0)
		for l, c := range curves {
			n, g := steepest(c, out[l], slots)
			if n > 0 && (best == none || g*int64(width) > gain*int64(n)) {
				best, width, gain = l, n, g
			}
		}
		if best == none {
			break
		}
		out[best] += width
		slots -= width
	}
	return out
}

// steepest finds how many more slots gain the most apiece, at most some; 0 if the layer has all it can use.
func steepest(curve []int64, have, most int) (width int, gain int64) {
	for n := 1; n <= most && have+n < len(curve); n++ {
		if g := curve[have+n] - curve[have]; width == 0 || g*int64(width) > gain*int64(n) {
			width, gain = n, g
		}
	}
	return width, gain
}

// Transit is how many of slots a Table's quotas should leave outside the layers' shares, for a model whose
// rows use so many experts of each layer. With shares of two rows' worth and more none: what a layer read last passes through
// its own share at no cost (docs/experts.md has the figures).
func Transit(s Shape, used, slots int) int {
	if slots >= 2*used*s.Layers {
		return 0
	}
	return min(max(used/2, 1), slots/2)
}
