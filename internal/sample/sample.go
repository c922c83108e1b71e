// Package sample turns logits into a token.
//
// The order is that of transformers, whose generation_config.json sets the defaults: temperature,
// then top-k, then top-p, then min-p, each on the distribution that the one before it left.
// llama.cpp applies the temperature last; at temperature 1 both agree.
//
// A draw depends on the logits, the parameters and (seed, position), and on nothing else: not on
// the other sequences of a batch, earlier draws or the machine. Probabilities become whole numbers
// of 2^-40 of the likeliest token's, so that sums are exact in any order.
package sample

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Params says how a token is chosen. The zero value is greedy.
type Params struct {
	Temperature float32 // 0 takes the likeliest token and ignores the rest
	TopK        int     // keep the k likeliest; 0 keeps all
	TopP        float32 // keep the fewest likeliest tokens with this share of the whole; 0 or 1 keeps all
	MinP        float32 // keep tokens with at least this fraction of the likeliest one's probability; 0 keeps all
	Seed        uint64
}

// Validate returns an error that names the first parameter out of range.
func (p Params) Validate() error {
	switch {
	case !(p.Temperature >= 0) || math.IsInf(float64(p.Temperature), 1):
		return fmt.Errorf("temperature is %v; it must be 0 (greedy) or a positive number", p.Temperature)
	case p.TopK < 0:
		return fmt.Errorf("top-k is %d; it must be 0 (off) or positive", p.TopK)
	case !(p.TopP >= 0 && p.TopP <= 1):
		return fmt.Errorf("top-p is %v; it must be between 0 and 1", p.TopP)
	case !(p.MinP >= 0 && p.MinP <= 1):
		return fmt.Errorf("min-p is %v; it must be between 0 and 1", p.MinP)
	}
	return nil
}

// Greedy reports whether no random number is needed.
func (p Params) Greedy() bool { return p.Temperature == 0 || p.TopK == 1 }

// Sampler draws the tokens of one sequence. It is not safe for concurrent use.
type Sampler struct {
	params Params
	logits []float32 // of the call that runs
	max    float32
	bins   [binCount]uint64
}

// New returns a sampler, or an error if a parameter is out of range.
func New(p Params) (*Sampler, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return &Sampler{params: p}, nil
}

// Params returns the parameters that the sampler was made with.
func (s *Sampler) Params() Params { return s.params }

var (
	errNone = errors.New("no token can be chosen: there are no logits above -Inf")
	errMany = errors.New("too many logits to sample from; the largest vocabulary is 16777216")
)

const maxVocab = 1 << 24 // 2^24 weights of at most 2^40 sum to a uint64

// Next returns the token for the sequence's given position (the number of tokens before it), from
// logits [vocab]. Equal logits are taken in rising order of index. Logits of -Inf are never chosen;
// NaN and +Inf are errors. It allocates nothing and leaves logits as they are.
func (s *Sampler) Next(logits []float32, position int) (int, error) {
	if len(logits) > maxVocab {
		return 0, errMany
	}
	best, err := argmax(logits)
	if err != nil || s.params.Greedy() {
		return best, err
	}
	s.logits, s.max = logits, logits[best]
	defer func() { s.logits = nil }()
	c := everything
	if k := s.params.TopK; k > 0 && k < len(logits) {
		c = s.topK(uint64(k))
	}
	if p := s.params.TopP; p > 0 && p < 1 {
		c = s.topP(c, p)
	}
	return s.pick(c, draw(s.params.Seed, position)), nil
}

// argmax returns the lowest index of the largest logit.
func argmax(logits []float32) (int, error) {
	best, at := float32(math.Inf(-1)), -1
	for i, v := range logits {
		if v > best {
			best, at = v, i
		} else if v != v {
			return 0, fmt.Errorf("logit %d of %d is NaN", i, len(logits))
		}
	}
	if at < 0 {
		return 0, errNone
	}
	if math.IsInf(float64(best), 1) {
		return 0, fmt.Errorf("logit %d of %d is +Inf", at, len(logits))
	}
	return at, nil
}

// pick draws among the tokens that the cut and min-p leave, each with its weight.
func (s *Sampler) pick(c cut, random uint64) int {
	block := uint(max(0, bits.Len(uint(len(s.logits)))-binBits)) // so that the blocks fit the bins
	clear(s.bins[:])
	var total uint64
	s.each(c, 0, func(i int, w uint64) bool {
		s.bins[i>>block] += w
		total += w
		return true
	})
	at, _ := bits.Mul64(random, total) // uniform in [0, total)
	b := 0
	for ; at >= s.bins[b]; b++ {
		at -= s.bins[b]
	}
	chosen := 0
	s.each(c, b<<block, func(i int, w uint64) bool {
		chosen = i
		if at < w {
			return false
		}
		at -= w
		return true
	})
	return chosen
}

// each calls f with every token from index first that the cut and min-p leave and whose weight is
// not 0, in rising order, until it returns false.
func (s *Sampler) each(c cut, first int, f func(i int, w uint64) bool) {
	least := max(1, uint64(float64(s.params.MinP)*whole))
	for i := first; i < len(s.logits); i++ {
		v := s.logits[i]
		if !c.keeps(v, i) {
			continue
		}
		if w := s.weight(v); w >= least && !f(i, w) {
			return
		}
	}
}
