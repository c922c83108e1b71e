package sample

import (
	"math"
)

// A cut keeps the likeliest tokens: those above least, and those at least up to index last. One cut
// stands for any prefix of the order (logit falling, index rising), so that no list is sorted or
// stored however large the vocabulary is.
type cut struct {
	least float32
	last  int
}

var everything = cut{least: never, last: math.MaxInt}

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

// topK keeps the k likeliest tokens. Few of them become the view.
func (d *drawing) topK(k int) {
	if k > nearCount {
		d.shorten(true, func(uint64) uint64 { return uint64(k) })
		return
	}
	h := heap{d.near[:k], 0}
	h.addAll(d.logits)
	h.sortByID()
	for i, t := range h.items[:h.n] {
		d.kept[i], d.keptID[i] = t.logit, t.id
	}
	d.logits, d.ids = d.kept[:h.n], d.keptID[:h.n]
}

// topP keeps the fewest of the likeliest tokens whose weights reach p of the sum.
func (d *drawing) topP(p float32) {
	d.shorten(false, func(total uint64) uint64 { return share(p, total) })
}

// bin of an x: 0 is that of the likeliest tokens.
func bin(x float64) int { return int(x * (-float64(binCount-1) / -leastX)) }

// valueOf a token that weighs w, where tokens are counted or weighed.
func valueOf(w uint64, count bool) uint64 {
	if count && w != 0 {
		return 1
	}
	return w
}

// shorten keeps the fewest of the likeliest tokens whose count, or weight, is at least want, which is
// asked for once the sum of all is known. The sums per bin of x say which bin the border lies in; its
// tokens are sorted or, if they are many, searched.
func (d *drawing) shorten(count bool, want func(uint64) uint64) {
	clear(d.bins[:])
	var total uint64
	for first := 0; first < len(d.logits); first += chunkSize {
		ws := d.weigh(first)
		for k, x := range d.xs[:len(ws)] {
			v := valueOf(ws[k], count)
			d.bins[bin(x)] += v
			total += v
		}
	}
	need := want(total)
	if need >= total {
		return
	}
	b := 0
	for ; d.bins[b] < need; b++ {
		need -= d.bins[b]
	}
	low := d.under(float64(b+1) * (leastX / float64(binCount-1)))
	if border, ok := d.sorted(b, low, need, count); ok {
		d.cut = border
	} else {
		d.cut = d.search(b, low, need, count)
	}
}

// weightOf returns the weight of one token if top-k, top-p and min-p left it, else 0.
func (d *drawing) weightOf(v float32, i int) uint64 {
	x := d.x(v)
	if x < leastX || !d.cut.keeps(v, i) {
		return 0
	}
	if w := exp40(float64(x)); w >= d.least {
		return w
	}
	return 0
}

// inBin returns the weight of a token if it is left and in the bin, else 0.
func (d *drawing) inBin(v float32, i, b int) uint64 {
	if x := d.x(v); x < leastX || bin(float64(x)) != b {
		return 0
	}
	return d.weightOf(v, i)
}

// sorted returns the cut at which the values of the bin's tokens reach need; false if they are too many
// to sort.
func (d *drawing) sorted(b int, low float32, need uint64, count bool) (cut, bool) {
	n := 0
	for i, v := range d.logits {
		if v < low || d.inBin(v, i, b) == 0 {
			continue
		}
		if n == len(d.near) {
			return cut{}, false
		}
		d.near[n] = token{v, int32(i)}
		n++
	}
	h := heap{d.near[:n], n}
	h.sortByRank()
	for _, t := range h.items {
		w := valueOf(d.inBin(t.logit, int(t.id), b), count)
		if w >= need {
			return cut{t.logit, int(t.id)}, true
		}
		need -= w
	}
	return everything, true
}

// search is sorted for any number of tokens: at each digit of their order the sums per bin say which
// the border lies in, and the next digit looks at that range of logits only.
func (d *drawing) search(b int, low float32, need uint64, count bool) cut {
	var prefix uint32
	high := d.max
	for _, digit := range digits {
		clear(d.bins[:])
		for i, v := range d.logits {
			if v < low || v > high {
				continue
			}
			if w := d.inBin(v, i, b); w != 0 {
				d.bins[order(v)>>digit.shift&(1<<digit.bits-1)] += valueOf(w, count)
			}
		}
		g := uint32(1)<<digit.bits - 1
		for ; g > 0 && d.bins[g] < need; g-- {
			need -= d.bins[g]
		}
		prefix = prefix<<digit.bits | g
		low, high = logit(prefix<<digit.shift), logit(prefix<<digit.shift|(1<<digit.shift-1))
	}
	return cut{least: low, last: d.lastAt(b, low, need, count)}
}

// lastAt returns the index at which the values of the bin's tokens with this logit reach need.
func (d *drawing) lastAt(b int, at float32, need uint64, count bool) int {
	for i, v := range d.logits {
		if v != at {
			continue
		}
		if w := d.inBin(v, i, b); w != 0 {
			n := valueOf(w, count)
			if n >= need {
				return i
			}
			need -= n
		}
	}
	return math.MaxInt
}
