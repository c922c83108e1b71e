package sample

import (
	"math"
	"math/bits"
)

var never = float32(math.Inf(-1))

// ChangesLogits reports whether constraints, biases or penalties may change logits, which takes a scratch
// for the vocabulary.
func (p Params) ChangesLogits() bool {
	return p.Allowed != nil || len(p.BadWords) > 0 || len(p.LogitBias) > 0 || p.IgnoreEOS || p.MinTokens > 0 ||
		p.repeats() || p.DRYMultiplier != 0
}

// edited returns the logits as constraints, biases and penalties leave them, and the best of them.
// Where the mask allows ends alone, it is stronger than what withholds them.
func (s *Sampler) edited(in *Input) (logits []float32, best int, err error) {
	withheld := s.params.IgnoreEOS || len(in.History)-in.Prompt < s.params.MinTokens
	logits = s.edit(in, withheld)
	best, err = argmax(logits)
	if err == errNone && withheld && in.Mask != nil {
		logits = s.edit(in, false)
		best, err = argmax(logits)
	}
	if err == errNone && len(logits) > 0 {
		err = ErrForbidden
	}
	return logits, best, err
}

func (s *Sampler) edit(in *Input, withheld bool) []float32 {
	p, answer := &s.params, in.History[in.Prompt:]
	out := in.Scratch.logits[:len(in.Logits)]
	p.copyAllowed(out, in.Logits, in.Mask)
	for _, w := range p.BadWords {
		if endsWith(answer, w[:len(w)-1]) {
			out[w[len(w)-1]] = never
		}
	}
	if withheld {
		p.withhold(out, len(answer))
	}
	for id, b := range p.LogitBias {
		out[id] += b
	}
	if p.repeats() {
		p.penalize(out, in)
	}
	if p.DRYMultiplier != 0 {
		p.dry(out, in)
	}
	return out
}

// copyAllowed copies the logits that mask and Allowed let through; the others become -Inf.
func (p *Params) copyAllowed(out, logits []float32, mask []uint64) {
	switch {
	case p.Allowed != nil:
		fill(out, never)
		for _, id := range p.Allowed {
			if mask == nil || int(id>>6) < len(mask) && mask[id>>6]>>(id&63)&1 != 0 {
				out[id] = logits[id]
			}
		}
	case mask != nil:
		copyMasked(out, logits, mask)
	default:
		copy(out, logits)
	}
}

func fill(x []float32, v float32) {
	for i := range x {
		x[i] = v
	}
}

// word is the mask of the 64 tokens from first on, of which n exist.
func word(mask []uint64, first, n int) uint64 {
	if first>>6 >= len(mask) {
		return 0
	}
	w := mask[first>>6]
	if n < 64 {
		w &= 1<<n - 1
	}
	return w
}

func copyMasked(out, logits []float32, mask []uint64) {
	for i := 0; i < len(logits); i += 64 {
		from := logits[i:min(i+64, len(logits))]
		to := out[i:][:len(from)]
		w := word(mask, i, len(from))
		if ^w<<(64-len(from)) == 0 {
			copy(to, from)
			continue
		}
		fill(to, never)
		for ; w != 0; w &= w - 1 {
			j := bits.TrailingZeros64(w)
			to[j] = from[j]
		}
	}
}

// argmaxMasked is argmax of the logits that the mask lets through.
func argmaxMasked(logits []float32, mask []uint64) (int, error) {
	if mask == nil {
		return argmax(logits)
	}
	best, at := never, -1
	for i := 0; i < len(logits); i += 64 {
		part := logits[i:min(i+64, len(logits))]
		w := word(mask, i, len(part))
		if bits.OnesCount64(w) < 16 {
			for ; w != 0; w &= w - 1 {
				j := bits.TrailingZeros64(w)
				if v := part[j]; !(v <= best) {
					if v != v {
						return 0, errNaN(i+j, len(logits))
					}
					best, at = v, i+j
				}
			}
			continue
		}
		for j, v := range part {
			if v <= best || w>>j&1 == 0 {
				continue
			}
			if v != v {
				return 0, errNaN(i+j, len(logits))
			}
			best, at = v, i+j
		}
	}
	at, err := checkBest(best, at, len(logits))
	if err == errNone && len(logits) > 0 {
		err = ErrForbidden
	}
	return at, err
}

func endsWith(ids, end []int32) bool {
	if len(ids) < len(end) {
		return false
	}
	for i, id := range ids[len(ids)-len(end):] {
		if id != end[i] {
			return false
		}
	}
	return true
}

// withhold forbids what ends an answer of n tokens so far.
func (p *Params) withhold(out []float32, n int) {
	forbid := func(ids []int32) {
		for _, id := range ids {
			if uint(id) < uint(len(out)) {
				out[id] = never
			}
		}
	}
	forbid(p.EOS)
	if n < p.MinTokens {
		forbid(p.StopIDs)
	}
}

// seen marks a token of prompt or answer in the counts; the bits below count the answer's.
const seen = 1 << 31

// penalize applies the repetition penalty to tokens of prompt and answer (transformers), then those of
// frequency and presence to tokens of the answer (OpenAI). Ids that are no tokens are skipped.
func (p *Params) penalize(out []float32, in *Input) {
	window, counts := last(in.History, p.RepeatLastN), in.Scratch.counts
	prompt := in.Prompt - (len(in.History) - len(window))
	for i, id := range window {
		if uint(id) >= uint(len(out)) {
			continue
		}
		counts[id] |= seen
		if i >= prompt {
			counts[id]++
		}
	}
	repeat := p.repeatPenalty()
	for _, id := range window {
		if uint(id) >= uint(len(out)) || counts[id] == 0 {
			continue
		}
		n := counts[id] &^ seen
		counts[id] = 0
		if out[id] > 0 {
			out[id] /= repeat
		} else {
			out[id] *= repeat
		}
		if n > 0 {
			v := out[id] - float32(float32(n)*p.FrequencyPenalty)
			out[id] = v - p.PresencePenalty
		}
	}
}
