package sample

import (
	"math"
	"slices"
)

// The plain definitions in float64, with sorts and maps, as docs/sampling.md has them; nothing of the
// sampler's own is used but its parameters.

// input is what the reference sees.
type input struct {
	logits  []float32
	history []int32
	prompt  int
	mask    []uint64
}

func tail(ids []int32, n int) []int32 {
	if n > 0 && n < len(ids) {
		return ids[len(ids)-n:]
	}
	return ids
}

func hasSuffix(ids, end []int32) bool {
	return len(ids) >= len(end) && slices.Equal(ids[len(ids)-len(end):], end)
}

// referenceLogits is what constraints, biases and penalties make of logits.
func referenceLogits(p Params, in input) []float64 {
	out := make([]float64, len(in.logits))
	for i, v := range in.logits {
		out[i] = float64(v)
		if in.mask != nil && (i/64 >= len(in.mask) || in.mask[i/64]&(1<<(i%64)) == 0) ||
			p.Allowed != nil && !slices.Contains(p.Allowed, int32(i)) {
			out[i] = math.Inf(-1)
		}
	}
	answer := in.history[in.prompt:]
	for _, w := range p.BadWords {
		if hasSuffix(answer, w[:len(w)-1]) {
			out[w[len(w)-1]] = math.Inf(-1)
		}
	}
	if p.IgnoreEOS || len(answer) < p.MinTokens {
		for _, id := range p.EOS {
			out[id] = math.Inf(-1)
		}
	}
	if len(answer) < p.MinTokens {
		for _, id := range p.StopIDs {
			out[id] = math.Inf(-1)
		}
	}
	for id, b := range p.LogitBias {
		out[id] += float64(b)
	}
	window := tail(in.history, p.RepeatLastN)
	all, answers := map[int32]bool{}, map[int32]int{}
	for i, id := range window {
		all[id] = true
		if len(in.history)-len(window)+i >= in.prompt {
			answers[id]++
		}
	}
	for id := range all {
		if r := float64(p.RepeatPenalty); r != 0 {
			if out[id] > 0 {
				out[id] /= r
			} else {
				out[id] *= r
			}
		}
		if n := answers[id]; n > 0 {
			out[id] -= float64(n)*float64(p.FrequencyPenalty) + float64(p.PresencePenalty)
		}
	}
	referenceDRY(p, in, out)
	return out
}

func referenceDRY(p Params, in input, out []float64) {
	if p.DRYMultiplier == 0 {
		return
	}
	base, allowed := float64(p.DRYBase), p.DRYAllowedLength
	if base == 0 {
		base = 1.75
	}
	if allowed == 0 {
		allowed = 2
	}
	w := tail(in.history, p.DRYLastN)
	usable := w // what follows the last breaker
search:
	for from := len(w) - 1; from >= 0; from-- {
		longest := 0
		for _, b := range p.DRYBreakers {
			if from+len(b) <= len(w) && slices.Equal(w[from:from+len(b)], b) {
				longest = max(longest, len(b))
			}
		}
		if longest > 0 {
			usable = w[from+longest:]
			break search
		}
	}
	best := map[int32]int{}
	for end := 1; end < len(w); end++ { // w[:end] ends like w, and w[end] follows
		n := 0
		for n < len(usable) && n < end && w[end-1-n] == w[len(w)-1-n] {
			n++
		}
		if n >= allowed {
			best[w[end]] = max(best[w[end]], n)
		}
	}
	for id, n := range best {
		if slices.ContainsFunc(p.DRYBreakers, func(b []int32) bool { return len(b) == 1 && b[0] == id }) {
			continue
		}
		out[id] -= float64(p.DRYMultiplier) * math.Pow(base, float64(n-allowed))
	}
}

// ranked are the tokens of a distribution that are possible, likeliest first, ties by index.
func ranked(prob []float64) []int {
	var ids []int
	for i, q := range prob {
		if q > 0 {
			ids = append(ids, i)
		}
	}
	slices.SortStableFunc(ids, func(a, b int) int {
		switch {
		case prob[a] > prob[b]:
			return -1
		case prob[a] < prob[b]:
			return 1
		}
		return 0
	})
	return ids
}

func normalize(prob []float64) {
	sum := 0.0
	for _, q := range prob {
		sum += q
	}
	for i := range prob {
		prob[i] /= sum
	}
}

func keepOnly(prob []float64, ids []int) {
	for i := range prob {
		if !slices.Contains(ids, i) {
			prob[i] = 0
		}
	}
	normalize(prob)
}

func softmax(logits []float64, temperature float64) []float64 {
	prob, top := make([]float64, len(logits)), slices.Max(logits)
	for i, v := range logits {
		prob[i] = math.Exp((v - top) / temperature)
	}
	normalize(prob)
	return prob
}

// referenceProbs is the distribution that a token is drawn from; excluded says whether XTC's coin fell.
func referenceProbs(p Params, logits []float64, excluded bool) []float64 {
	return referenceProbsTied(p, logits, excluded, 1e-6)
}

// referenceProbsTied takes distances of typical sampling for equal that differ by less than tie.
func referenceProbsTied(p Params, logits []float64, excluded bool, tie float64) []float64 {
	prob := softmax(logits, float64(p.Temperature))
	if p.TopK > 0 {
		ids := ranked(prob)
		keepOnly(prob, ids[:min(p.TopK, len(ids))])
	}
	if p.TopP > 0 && p.TopP < 1 {
		keepOnly(prob, ranked(prob)[:reach(prob, ranked(prob), float64(p.TopP))])
	}
	if p.MinP > 0 {
		top := slices.Max(prob)
		for i, q := range prob {
			if q < float64(p.MinP)*top {
				prob[i] = 0
			}
		}
		normalize(prob)
	}
	if p.Typical > 0 && p.Typical < 1 {
		referenceTypical(prob, float64(p.Typical), tie)
	}
	if excluded {
		referenceXTC(prob, float64(p.XTCThreshold))
	}
	return prob
}

// reach is how many of ids have the share p.
func reach(prob []float64, ids []int, p float64) int {
	sum := 0.0
	for n, i := range ids {
		if sum += prob[i]; sum >= p-1e-9 {
			return n + 1
		}
	}
	return len(ids)
}

// referenceTypical is transformers' TypicalLogitsWarper.
func referenceTypical(prob []float64, mass, tie float64) {
	entropy := 0.0
	for _, q := range prob {
		if q > 0 {
			entropy -= q * math.Log(q)
		}
	}
	distance := func(i int) float64 { return math.Abs(-math.Log(prob[i]) - entropy) }
	ids := ranked(prob)
	slices.SortStableFunc(ids, func(a, b int) int {
		if d := distance(a) - distance(b); math.Abs(d) > tie {
			return int(math.Copysign(1, d))
		}
		return 0
	})
	n := reach(prob, ids, mass)
	for n < len(ids) && distance(ids[n]) <= distance(ids[n-1])+tie {
		n++
	}
	keepOnly(prob, ids[:n])
}

// referenceXTC is llama.cpp's sampler, its coin aside.
func referenceXTC(prob []float64, threshold float64) {
	if threshold == 0 {
		threshold = 0.1
	}
	ids, last := ranked(prob), 0
	for n, i := range ids {
		if prob[i] < threshold-1e-12 {
			break
		}
		last = n
	}
	if last > 0 {
		keepOnly(prob, ids[last:])
	}
}

// referenceMirostat is llama.cpp's mirostat 2 before the draw.
func referenceMirostat(p Params, logits []float64, mu float64) []float64 {
	prob := softmax(logits, float64(p.Temperature))
	ids := ranked(prob)
	n := 1
	for n < len(ids) && -math.Log2(prob[ids[n]]) <= mu+1e-9 {
		n++
	}
	keepOnly(prob, ids[:n])
	return prob
}
