// Package sample turns logits into a token.
//
// The order of steps is given in docs/sampling.md: what may be chosen at all, biases, penalties; then,
// on probabilities, in the order of transformers, whose generation_config.json sets the defaults:
// temperature, top-k, top-p, min-p, typical, each on the distribution that the one before it left.
// llama.cpp applies the temperature last; at temperature 1 both agree.
//
// A choice depends on the logits, the parameters, the sequence's own tokens and (seed, position), and
// on nothing else: not on the other sequences of a batch, earlier draws or the machine; mirostat alone
// remembers the surprises of the sequence's own draws. Probabilities become whole numbers of 2^-40 of
// the likeliest token's, so that sums are exact in any order.
package sample

import (
	"errors"
	"fmt"
	"math"
)

// Sampler chooses the tokens of one sequence. It is not safe for concurrent use.
type Sampler struct {
	params  Params
	checked int     // a vocabulary that the parameters fit
	mu      float64 // mirostat's bound of surprise, in bits
	own     *Scratch
}

// New returns a sampler, or an error if a parameter is out of range.
func New(p Params) (*Sampler, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	p.DRYBreakers = sortedByHead(p.DRYBreakers)
	return &Sampler{params: p, mu: 2 * float64(p.MirostatTau)}, nil
}

// Params returns the parameters that the sampler was made with.
func (s *Sampler) Params() Params { return s.params }

// Clone returns a sampler that goes on as this one would.
func (s *Sampler) Clone() *Sampler {
	c := *s
	c.own = nil
	return &c
}

// Input is what a token is chosen by. Nothing in it is changed or kept.
type Input struct {
	Logits  []float32 // [vocab]
	History []int32   // prompt and answer so far; its length is the token's position
	Prompt  int       // how many of History are the prompt
	// Mask has a bit for each token that may be chosen, bit id%64 of Mask[id/64]; ids beyond it may not. nil
	// is all.
	Mask []uint64
	// Scratch is shared with other samplers; nil for one of the sampler's own on the heap.
	Scratch *Scratch
}

var (
	errNone = errors.New("no token can be chosen: there are no logits above -Inf")
	// ErrForbidden is of a request that leaves no token to choose.
	ErrForbidden = errors.New("no token can be chosen: the request's constraints, allowed tokens, bad words and biases leave none")
	errMany      = errors.New("too many logits to sample from; the largest vocabulary is 16777216")
	errHistory   = errors.New("these parameters look at the tokens so far: choose by an Input with its History")
	errPrompt    = errors.New("the prompt is no part of the history that is sampled by")
	errScratch   = errors.New("the sampler's scratch is too small for this vocabulary or history")
)

const maxVocab = 1 << 24 // 2^24 weights of at most 2^40 sum to a uint64

// Next returns the token for the sequence's given position (the number of tokens before it), from
// logits [vocab], for parameters that do not look at the tokens so far.
func (s *Sampler) Next(logits []float32, position int) (int, error) {
	if s.params.NeedsHistory() {
		return 0, errHistory
	}
	return s.choose(Input{Logits: logits}, position)
}

// Choose returns the sequence's next token. Equal logits are taken in rising order of index. Logits of
// -Inf are never chosen; NaN and +Inf are errors, where the mask lets them be seen. With a scratch it
// allocates nothing.
func (s *Sampler) Choose(in Input) (int, error) {
	if in.Prompt < 0 || in.Prompt > len(in.History) {
		return 0, errPrompt
	}
	return s.choose(in, len(in.History))
}

func (s *Sampler) choose(in Input, position int) (int, error) {
	n := len(in.Logits)
	if n > maxVocab {
		return 0, errMany
	}
	if n != s.checked {
		if err := s.params.CheckVocab(n); err != nil {
			return 0, err
		}
		s.checked = n
	}
	edits := s.params.ChangesLogits()
	if !edits && s.params.Greedy() {
		return argmaxMasked(in.Logits, in.Mask)
	}
	if err := s.scratch(&in, edits || in.Mask != nil); err != nil {
		return 0, err
	}
	logits, best, err := in.Logits, 0, error(nil)
	if edits || in.Mask != nil {
		logits, best, err = s.edited(&in)
	} else {
		best, err = argmax(logits)
	}
	if err != nil || s.params.Greedy() {
		return best, err
	}
	return s.sample(&in.Scratch.draw, logits, best, position), nil
}

// scratch makes sure that in has one that is large enough.
func (s *Sampler) scratch(in *Input, edits bool) error {
	vocab, history := 0, 0
	if edits {
		vocab = len(in.Logits)
	}
	if s.params.DRYMultiplier != 0 {
		history = len(last(in.History, s.params.DRYLastN))
	}
	if in.Scratch == nil {
		in.Scratch = s.ownScratch(vocab, history)
	}
	if !in.Scratch.fits(vocab, history) {
		return errScratch
	}
	return nil
}

// argmax returns the lowest index of the largest logit.
func argmax(logits []float32) (int, error) {
	best, at := never, -1
	for i := above(logits, 0, best); i < len(logits); i = above(logits, i+1, best) {
		if logits[i] != logits[i] {
			return 0, errNaN(i, len(logits))
		}
		best, at = logits[i], i
	}
	return checkBest(best, at, len(logits))
}

// above is the first index from i on whose logit is larger, or a NaN.
func above(logits []float32, i int, than float32) int {
	for ; i < len(logits); i++ {
		if !(logits[i] <= than) {
			break
		}
	}
	return i
}

func errNaN(i, n int) error { return fmt.Errorf("logit %d of %d is NaN", i, n) }

func checkBest(best float32, at, n int) (int, error) {
	if at < 0 {
		return 0, errNone
	}
	if math.IsInf(float64(best), 1) {
		return 0, fmt.Errorf("logit %d of %d is +Inf", at, n)
	}
	return at, nil
}
