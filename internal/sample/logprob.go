package sample

import (
	"math"
	"slices"
)

// TokenLogProb is a token and the natural logarithm of its probability.
type TokenLogProb struct {
	ID      int32
	LogProb float32
}

// LogProbs returns the natural logarithm of the softmax of logits [vocab], of the chosen token and of
// the top likeliest, which come in the order (logit falling, id rising). They are of the logits as
// they are given, before temperature, penalties and constraints, as OpenAI and vLLM have it.
//
// The value is float32(x - ln(Σ w·2^-40)), x the logit less the largest one, exact in float64, and w
// the whole number of 2^-40 in e^x, so that it is the same in any order. Before it is rounded to
// float32 it is off by less than 1e-8 + 2e-12·vocab. Where logits are NaN or +Inf, or all are -Inf, it
// is NaN and there are no alternatives; so it is for a chosen token that there is not.
func LogProbs(logits []float32, chosen int32, top int) (float32, []TokenLogProb) {
	nan := float32(math.NaN())
	best, err := argmax(logits)
	if err != nil || len(logits) > maxVocab {
		return nan, nil
	}
	peak := float64(logits[best])
	norm := ln(float64(totalWeight(logits, peak)) / whole)
	of := func(v float32) float32 { return float32(float64(v) - peak - norm) }
	var list []TokenLogProb
	if top > 0 {
		list = likeliest(logits, min(top, len(logits)))
		for i := range list {
			list[i].LogProb = of(list[i].LogProb)
		}
	}
	if uint(chosen) >= uint(len(logits)) {
		return nan, list
	}
	return of(logits[chosen]), list
}

// totalWeight is the sum of the weights of logits at temperature 1.
func totalWeight(logits []float32, peak float64) (total uint64) {
	var xs [chunkSize]float64
	var ws [chunkSize]uint64
	for len(logits) > 0 {
		part := logits[:min(chunkSize, len(logits))]
		logits = logits[len(part):]
		n := 0
		for _, v := range part {
			if x := float64(v) - peak; x >= leastX {
				xs[n] = x
				n++
			}
		}
		exp40s(ws[:n], xs[:n])
		for _, w := range ws[:n] {
			total += w
		}
	}
	return total
}

// likeliest returns the n largest logits by (logit falling, id rising).
func likeliest(logits []float32, n int) []TokenLogProb {
	var few [64]token // the usual numbers need no memory beside the list
	h := heap{few[:min(n, len(few))], 0}
	if n > len(few) {
		h.items = make([]token, n)
	}
	h.addAll(logits)
	h.sortByRank()
	list := make([]TokenLogProb, 0, n)
	for _, t := range h.items[:h.n] {
		list = append(list, TokenLogProb{t.id, t.logit})
	}
	return list
}

// token is one of a heap.
type token struct {
	logit float32
	id    int32
}

// before reports whether a is the likelier one.
func (a token) before(b token) bool { return a.logit > b.logit || a.logit == b.logit && a.id < b.id }

// heap keeps the likeliest tokens that it was given, the least likely of them first.
type heap struct {
	items []token
	n     int
}

// addAll gives it tokens in rising order of id; those of -Inf are left out.
func (h *heap) addAll(logits []float32) {
	least := never
	for i, v := range logits {
		if v <= least {
			continue
		}
		t := token{v, int32(i)}
		if h.n < len(h.items) {
			h.items[h.n] = t
			h.n++
			h.up(h.n - 1)
		} else {
			h.items[0] = t
			h.down()
		}
		if h.n == len(h.items) {
			least = h.items[0].logit
		}
	}
}

func (h *heap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.items[parent].before(h.items[i]) {
			return
		}
		h.items[i], h.items[parent] = h.items[parent], h.items[i]
		i = parent
	}
}

func (h *heap) down() {
	for i := 0; ; {
		worst := i
		for c := 2*i + 1; c <= 2*i+2 && c < h.n; c++ {
			if h.items[worst].before(h.items[c]) {
				worst = c
			}
		}
		if worst == i {
			return
		}
		h.items[i], h.items[worst] = h.items[worst], h.items[i]
		i = worst
	}
}

func (h *heap) sortByRank() {
	slices.SortFunc(h.items[:h.n], func(a, b token) int {
		switch {
		case a.before(b):
			return -1
		case b.before(a):
			return 1
		}
		return 0
	})
}

func (h *heap) sortByID() {
	slices.SortFunc(h.items[:h.n], func(a, b token) int { return int(a.id) - int(b.id) })
}
