package sample

import "math"

// A cut keeps the likeliest tokens: those above least, and those at least up to index last. One cut
// stands for any prefix of the order (logit falling, index rising), so that no list is sorted or
// stored however large the vocabulary is.
type cut struct {
	least float32
	last  int
}

var everything = cut{least: float32(math.Inf(-1)), last: math.MaxInt}

func (c cut) keeps(v float32, i int) bool { return v > c.least || v == c.least && i <= c.last }

// order maps a logit to a whole number that rises with it; -0 and +0 are equal.
func order(v float32) uint32 {
	b := math.Float32bits(v + 0)
	if b>>31 != 0 {
		return ^b
	}
	return b | 1<<31
}

// logit is the inverse of order.
func logit(key uint32) float32 {
	if key>>31 == 0 {
		return math.Float32frombits(^key)
	}
	return math.Float32frombits(key &^ (1 << 31))
}

// Orders are searched by digits, the highest first.
var digits = [...]struct{ shift, bits uint }{{21, binBits}, {10, binBits}, {0, 10}}

const (
	binBits  = 11
	binCount = 1 << binBits
)

// topK returns the cut that keeps the k likeliest tokens.
func (s *Sampler) topK(k uint64) cut {
	one := func(float32) uint64 { return 1 }
	return s.search(everything, one, func(uint64) uint64 { return k })
}

// topP returns the cut that keeps the fewest of c's likeliest tokens whose weights reach p of the
// sum of c's weights.
func (s *Sampler) topP(c cut, p float32) cut {
	return s.search(c, s.weight, func(total uint64) uint64 {
		return max(1, uint64(float64(p)*float64(total)))
	})
}

// search returns the smallest cut within c whose tokens' values sum to at least want, which is
// asked for once the sum of all is known. It is a radix search: at each digit the sums per bin say
// which bin the border lies in, and the next digit looks at that bin's range of logits only.
func (s *Sampler) search(c cut, value func(float32) uint64, want func(total uint64) uint64) cut {
	low, high := c.least, s.max
	var prefix uint32
	var need uint64
	for d, digit := range digits {
		clear(s.bins[:])
		total := s.count(c, low, high, digit.shift, 1<<digit.bits-1, value)
		if d == 0 {
			need = want(total)
		}
		b := uint32(1)<<digit.bits - 1
		for ; b > 0 && s.bins[b] < need; b-- {
			need -= s.bins[b]
		}
		prefix = prefix<<digit.bits | b
		low, high = logit(prefix<<digit.shift), logit(prefix<<digit.shift|(1<<digit.shift-1))
	}
	return cut{least: low, last: s.lastAt(c, low, need, value)}
}

// count adds the values of c's tokens with logits from low to high to the bins of a digit, and
// returns their sum.
func (s *Sampler) count(c cut, low, high float32, shift uint, mask uint32, value func(float32) uint64) uint64 {
	var total uint64
	for i, v := range s.logits {
		if v < low || v > high || !c.keeps(v, i) {
			continue
		}
		n := value(v)
		s.bins[order(v)>>shift&mask] += n
		total += n
	}
	return total
}

// lastAt returns the index at which the values of c's tokens with this logit reach need.
func (s *Sampler) lastAt(c cut, at float32, need uint64, value func(float32) uint64) int {
	for i, v := range s.logits {
		if v != at || !c.keeps(v, i) {
			continue
		}
		n := value(v)
		if n >= need {
			return i
		}
		need -= n
	}
	return math.MaxInt
}
