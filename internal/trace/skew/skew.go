// Package skew makes up routing that is as uneven as trained models' routing is: some experts are busier
// than others, and a token tends to keep experts of the one before.
package skew

import "math"

// Skew describes routing.
type Skew struct {
	Experts int // of a layer, at least 1
	Used    int // by each token, at most Experts
	// Zipf is the exponent of how busy experts are: the i-th busiest of a layer is drawn with probability ∝ (i + Head × Experts)^-Zipf
	// (Mandelbrot 1953). 0 is uniform.
	Zipf float64
	// Head, at least 0, flattens the head: trained routers are balanced, so that their busiest experts are nearly equal
	// and their idle ones are idler than a plain Zipf law has them.
	Head float64
	// Keep is the probability that a token keeps an expert of the token before rather than draw one, in [0, 1).
	Keep float64
	Seed uint64
}

// Storyteller is the skew that resembles the routing of a small model that was trained: see docs/experts.md.
func Storyteller(experts, used int, seed uint64) Skew {
	return Skew{Experts: experts, Used: used, Zipf: 6, Head: 1, Keep: 0.03, Seed: seed}
}

// Shares are the parts of all draws that the experts of a layer have, the busiest first.
func (s Skew) Shares() []float64 {
	shares, total := make([]float64, max(s.Experts, 1)), 0.0
	for i := range shares {
		shares[i] = math.Pow(float64(i+1)+max(s.Head, 0)*float64(len(shares)), -s.Zipf)
		total += shares[i]
	}
	for i := range shares {
		shares[i] /= total
	}
	return shares
}

// Router draws experts. It has no state but a table: a step's experts follow from seed, layer and step alone.
type Router struct {
	skew  Skew
	below []uint64 // by rank: the part of all draws, in 2^53-ths, that this rank and those before have
	keep  uint64
}

const whole = 1 << 53

// New returns a router. Figures out of range are brought into it.
func New(s Skew) *Router {
	s.Experts = max(s.Experts, 1)
	s.Used = min(max(s.Used, 1), s.Experts)
	r := &Router{skew: s, below: make([]uint64, s.Experts), keep: uint64(min(max(s.Keep, 0), maxKeep) * whole)}
	sum := 0.0
	for i, share := range s.Shares() {
		sum += share
		r.below[i] = uint64(min(sum, 1) * whole)
	}
	r.below[s.Experts-1] = whole
	return r
}

// maxKeep bounds how far back an expert can have been drawn.
const maxKeep = 0.99

// Experts appends the experts of a token at a step of a layer to dst: Used distinct ones.
func (r *Router) Experts(dst []int32, layer, step int) []int32 {
	start := len(dst)
	for place := range r.skew.Used {
		dst = append(dst, r.choose(dst[start:], uint64(layer), place, step))
	}
	return dst
}

// choose draws the expert of one place: at the last step, up to this one, at which the place did not keep
// its expert. One that an earlier place has is drawn again.
func (r *Router) choose(taken []int32, layer uint64, place, step int) int32 {
	at := step
	for at > 0 && r.draw(layer, place, at, 0)>>11 < r.keep {
		at--
	}
	const attempts = 64
	for try := uint64(1); try <= attempts; try++ {
		rank := r.rank(r.draw(layer, place, at, try) >> 11)
		if e := r.Expert(int(layer), rank); !contains(taken, e) {
			return e
		}
	}
	for rank := 0; ; rank++ { // the busiest that is left
		if e := r.Expert(int(layer), rank); !contains(taken, e) {
			return e
		}
	}
}

func contains(list []int32, e int32) bool {
	for _, x := range list {
		if x == e {
			return true
		}
	}
	return false
}

// rank finds whose part of all draws holds u.
func (r *Router) rank(u uint64) int {
	low, high := 0, len(r.below)-1
	for low < high {
		if mid := (low + high) / 2; u < r.below[mid] {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// Expert is which expert has a rank in a layer: a permutation that differs from layer to layer, by four rounds of a Feistel
// network over the next power of 4, walked until it lands in range.
func (r *Router) Expert(layer, rank int) int32 {
	half := uint(1)
	for 1<<(2*half) < r.skew.Experts {
		half++
	}
	mask := uint64(1)<<half - 1
	x := uint64(rank)
	for {
		left, right := x>>half, x&mask
		for round := range uint64(4) {
			left, right = right, left^mix(mix(r.skew.Seed^uint64(layer)<<32)+round<<16+right)&mask
		}
		if x = left<<half | right; x < uint64(r.skew.Experts) {
			return int32(x)
		}
	}
}

func (r *Router) draw(layer uint64, place, step int, try uint64) uint64 {
	return mix(mix(mix(r.skew.Seed+layer*0x9e3779b97f4a7c15)+uint64(step)) + uint64(place)<<8 + try)
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
