package sample

import (
	"math"
	"math/bits"
)

const (
	// nearCount is how many tokens are sorted at once; a larger top-k is found by a search.
	nearCount = 1024
	chunkSize = 256
)

// drawing is one choice among weighted tokens. What remains of them is a view: at first all logits,
// after a top-k only those it keeps.
type drawing struct {
	logits      []float32
	ids         []int32 // of the view, rising; nil: the indices
	max         float32
	temperature float32
	floor       float32 // a logit below which all weights are 0, or less than least
	cut         cut
	least       uint64 // weights below it are cut off
	band        band
	xtc         xtc

	xs     [chunkSize]float64 // of a chunk's tokens that have weights
	ws     [chunkSize]uint64
	at     [chunkSize]uint8
	bins   [binCount]uint64
	near   [nearCount]token
	kept   [nearCount]float32
	keptID [nearCount]int32
}

// band is what typical sampling keeps: x no farther from the mean than border.
type band struct {
	on     bool
	mean   float64
	border float32
}

// xtc leaves out weights from least on, but for the token at index last.
type xtc struct {
	least uint64
	last  int
}

// start makes logits the view, with weights for a temperature.
func (d *drawing) start(logits []float32, largest, temperature float32) {
	d.logits, d.ids, d.max, d.temperature = logits, nil, largest, temperature
	d.cut, d.band, d.xtc = everything, band{}, xtc{least: math.MaxUint64}
	d.atLeast(1)
}

// atLeast cuts off weights below least.
func (d *drawing) atLeast(least uint64) {
	d.least = max(1, least)
	d.floor = d.below(d.least)
}

// below returns a logit such that all weights of smaller logits are below w.
func (d *drawing) below(w uint64) float32 { return d.under(ln(float64(w) / whole)) }

// under returns a logit such that smaller logits have a smaller x; -Inf where that is in doubt.
func (d *drawing) under(x float64) float32 {
	x -= 0.01 // more than what rounding can do to (v - max) / temperature
	v := float64(d.max) + float64(x*float64(d.temperature))
	if !(v > -1e38) {
		return never
	}
	return logit(order(float32(v)) - 1)
}

// x is the exponent of a token's weight.
func (d *drawing) x(v float32) float32 { return (v - d.max) / d.temperature }

// weigh returns the weights of tokens of the view, of a chunk from index first on: the k-th is that of
// token first + at[k], 0 where it was cut off, and xs[k] its x. Tokens that have none are left out.
func (d *drawing) weigh(first int) []uint64 {
	part := d.logits[first:min(first+chunkSize, len(d.logits))]
	floor, n := max(d.floor, d.cut.least), 0
	for i, v := range part {
		if v < floor {
			continue
		}
		if x := (v - d.max) / d.temperature; x >= leastX {
			d.xs[n], d.at[n] = float64(x), uint8(i)
			n++
		}
	}
	ws := d.ws[:n]
	exp40s(ws, d.xs[:n])
	if d.least > 1 || d.cut.last != math.MaxInt || d.band.on || d.xtc.least != math.MaxUint64 {
		d.strike(first, part, ws)
	}
	return ws
}

// strike sets to 0 what the rarer rules cut off.
func (d *drawing) strike(first int, part []float32, ws []uint64) {
	for k, w := range ws {
		at := int(d.at[k])
		if w < d.least || !d.cut.keeps(part[at], first+at) || w >= d.xtc.least && first+at != d.xtc.last ||
			d.band.on && d.distance(part[at]) > d.band.border {
			ws[k] = 0
		}
	}
}

// each calls f with every token that is left, in rising order of index.
func (d *drawing) each(f func(i int, w uint64)) {
	for first := 0; first < len(d.logits); first += chunkSize {
		for k, w := range d.weigh(first) {
			if w != 0 {
				f(first+int(d.at[k]), w)
			}
		}
	}
}

// total is the sum of all weights that are left.
func (d *drawing) total() (sum uint64) {
	for first := 0; first < len(d.logits); first += chunkSize {
		for _, w := range d.weigh(first) {
			sum += w
		}
	}
	return sum
}

// share is p of a total, 1 at least.
func share(p float32, total uint64) uint64 { return max(1, uint64(float64(p)*float64(total))) }

// sample draws from logits, whose likeliest token is best.
func (s *Sampler) sample(d *drawing, logits []float32, best, position int) int {
	p := &s.params
	d.start(logits, logits[best], p.Temperature)
	defer func() { d.logits, d.ids = nil, nil }()
	if p.MirostatTau > 0 {
		return s.mirostat(d, best, draw(p.Seed, position, drawToken))
	}
	d.narrow(p, draw(p.Seed, position, drawXTC))
	at, _, _ := d.pick(draw(p.Seed, position, drawToken))
	return d.id(at)
}

// narrow cuts off tokens in the order of the steps.
func (d *drawing) narrow(p *Params, random uint64) {
	if p.TopK > 0 && p.TopK < len(d.logits) {
		d.topK(p.TopK)
	}
	if p.TopP > 0 && p.TopP < 1 {
		d.topP(p.TopP)
	}
	d.atLeast(uint64(float64(p.MinP) * whole))
	if p.Typical > 0 && p.Typical < 1 {
		d.typical(p.Typical)
	}
	if p.XTCProbability > 0 {
		d.excludeTop(p, random)
	}
}

// id is the token at an index of the view.
func (d *drawing) id(i int) int {
	if d.ids != nil {
		return int(d.ids[i])
	}
	return i
}

// pick draws among the tokens that are left, each with its weight.
func (d *drawing) pick(random uint64) (at int, weight, total uint64) {
	shift := uint(max(8, bits.Len(uint(len(d.logits)))-binBits)) // so that the blocks fit the bins
	clear(d.bins[:])
	for first := 0; first < len(d.logits); first += chunkSize {
		var sum uint64
		for _, w := range d.weigh(first) {
			sum += w
		}
		d.bins[first>>shift] += sum
		total += sum
	}
	left, _ := bits.Mul64(random, total) // uniform in [0, total)
	b := 0
	for ; left >= d.bins[b]; b++ {
		left -= d.bins[b]
	}
	for first := b << shift; ; first += chunkSize {
		for k, w := range d.weigh(first) {
			if left < w {
				return first + int(d.at[k]), w, total
			}
			left -= w
		}
	}
}

// typical keeps the tokens whose surprise is nearest to the expected one, as many as have the share p,
// and all that are as near as the last of them (Meister et al., "Locally typical sampling", 2022, as
// transformers has it). The surprise is a constant less x, so the distance is that of x from its mean,
// which is summed in float64 in rising order of index; the distance is rounded to float32.
func (d *drawing) typical(p float32) {
	var total uint64
	var sum float64
	d.each(func(i int, w uint64) {
		total += w
		sum += float64(float64(w) * float64(d.x(d.logits[i])))
	})
	d.band.mean = sum / float64(total)
	need, prefix := share(p, total), uint32(0)
	for n, digit := range digits {
		clear(d.bins[:])
		if n == 0 {
			d.each(func(i int, w uint64) { d.bins[order(d.distance(d.logits[i]))>>digit.shift] += w })
		} else {
			d.nearer(prefix, digit.shift, digit.bits)
		}
		b := uint32(0)
		for ; d.bins[b] < need; b++ {
			need -= d.bins[b]
		}
		prefix = prefix<<digit.bits | b
	}
	d.band.border, d.band.on = logit(prefix), true
}

// nearer adds the weights of tokens whose distances begin with prefix to the bins of the next digit.
func (d *drawing) nearer(prefix uint32, shift, bits uint) {
	for i, v := range d.logits {
		if v < d.floor {
			continue
		}
		if key := order(d.distance(v)); key>>(shift+bits) == prefix {
			d.bins[key>>shift&(1<<bits-1)] += d.weightOf(v, i)
		}
	}
}

// distance of a token's x from the mean.
func (d *drawing) distance(v float32) float32 {
	return float32(math.Abs(d.band.mean - float64(d.x(v))))
}

// excludeTop is XTC (p-e-w, text-generation-webui, pull request 6335, as llama.cpp has it): now and
// then all tokens of at least the threshold's probability are left out but the least likely of them.
func (d *drawing) excludeTop(p *Params, random uint64) {
	if float64(random>>11)*(1.0/(1<<53)) >= float64(p.XTCProbability) {
		return
	}
	border := float64(or(p.XTCThreshold, defaultXTCThreshold)) * float64(d.total())
	least := uint64(border)
	if float64(least) < border {
		least++
	}
	count, at, lowest := 0, 0, float32(0)
	d.each(func(i int, w uint64) {
		if w < least {
			return
		}
		if v := d.logits[i]; count == 0 || v <= lowest {
			at, lowest = i, v
		}
		count++
	})
	if count > 1 {
		d.xtc = xtc{least, at}
	}
}

// mirostat is version 2 of Basu et al., "Mirostat", 2021: tokens whose surprise in bits is above mu are
// cut off, though never the likeliest, and mu learns from the surprise that was drawn.
func (s *Sampler) mirostat(d *drawing, best int, random uint64) int {
	least := exp2(-max(-64, min(s.mu, 64))) * float64(d.total())
	if least > whole {
		d.cut = cut{d.max, best}
	} else {
		d.atLeast(uint64(least))
		if float64(d.least) < least {
			d.atLeast(d.least + 1)
		}
	}
	at, w, total := d.pick(random)
	surprise := (ln(float64(total)) - ln(float64(w))) / math.Ln2
	eta := float64(or(s.params.MirostatEta, defaultMirostatEta))
	s.mu -= float64(eta * (surprise - float64(s.params.MirostatTau)))
	return at
}
