package synth

import (
	"fmt"
	"math"
	"strings"

	"github.com/spillway/spillway/internal/trace/skew"
)

// A skewing makes a mixture's routers choose unevenly, as package skew describes it. Some dimensions of the hidden
// state, and one that is the same for all tokens, are the routers' alone: no product writes there but heads of the
// first layer, which add what the embeddings of the tokens before have there. A router's scores are then the
// constant times how busy an expert is to be, and noise that is that of the tokens before in part.
type skewing struct {
	dims   int // of the routers, from 0 on; the next one is the constant
	hidden int
	head   int       // size of a head
	group  int       // query heads for each head of keys and values
	past   []float64 // weight of the token 1, 2 … before in the noise; the token's own is 1
	noise  float64   // factor of a router's rows that makes the noise's deviation 1
	busy   [][]float32
	angles []float64 // of the rotation of a head's pairs from one position to the next
	normed bool      // queries are brought to a size of their own
}

// embedSize is the deviation of embeddings of a model with experts.
const embedSize = 4

// sharpness is how much larger a score of attention is where a head looks than on average elsewhere.
const sharpness = 40

// maxPast is how many tokens before can be in the noise.
const maxPast = 4

// newSkewing checks the options, and returns nil where routing is to be uniform.
func newSkewing(s *Shape, o *Options) (*skewing, error) {
	if o.Zipf == 0 && o.ZipfHead == 0 && o.Locality == 0 {
		return nil, nil
	}
	switch {
	case s.Mixture == nil:
		return nil, fmt.Errorf("%s has no experts whose choice could be skewed", s.Name)
	case !(o.Zipf >= 0 && o.Zipf <= 20), !(o.ZipfHead >= 0 && o.ZipfHead <= 20):
		return nil, fmt.Errorf("an exponent of %v with a head of %v; each may be 0 to 20", o.Zipf, o.ZipfHead)
	}
	k := &skewing{
		dims: s.HeadDim, hidden: s.Hidden, head: s.HeadDim, group: s.Heads / s.KVHeads, normed: s.qkNorm,
	}
	for i := range s.HeadDim / 2 {
		k.angles = append(k.angles, math.Pow(float64(s.RopeBase), -2*float64(i)/float64(s.HeadDim)))
	}
	law := skew.Skew{Experts: s.Experts, Used: s.Used, Zipf: o.Zipf, Head: o.ZipfHead, Seed: o.Seed}
	bias := scores(law.Shares(), s.Used)
	router := skew.New(law)
	for l := range s.Layers {
		row := make([]float32, s.Experts)
		for rank, b := range bias {
			row[router.Expert(l, rank)] = float32(b)
		}
		k.busy = append(k.busy, row)
	}
	return k, k.keep(bias, s, o.Locality)
}

// scores are what normal noise of deviation 1 needs added so that an expert is among the used ones as often as by
// draws with these shares, in whole 1024ths.
func scores(shares []float64, used int) []float64 {
	// Experts that are drawn until so many differ come in with probability 1 − exp(−λ·share).
	sum := func(lambda float64) (n float64) {
		for _, p := range shares {
			n -= math.Expm1(-lambda * p)
		}
		return n
	}
	lambda := bisect(0, 1e6, func(x float64) bool { return sum(x) < min(float64(used), float64(len(shares))-1e-3) })
	out := make([]float64, len(shares))
	for i, p := range shares {
		in := min(max(-math.Expm1(-lambda*p), 1e-6), 1-1e-6)
		out[i] = math.Round(1024*math.Sqrt2*math.Erfinv(2*in-1)) / 1024
	}
	return out
}

// bisect finds where a condition that holds at low ends.
func bisect(low, high float64, holds func(x float64) bool) float64 {
	for range 60 {
		if mid := (low + high) / 2; holds(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// keep chooses the weights of the tokens before for a probability to keep an expert rather than draw one.
func (k *skewing) keep(bias []float64, s *Shape, locality float64) error {
	past := make([]float64, min(s.Heads, maxPast))
	weigh := func(r float64) (share, size float64) { // of the noise that two tokens in a row share
		product, before, square := 0.0, 1.0, 1.0
		for i := range past {
			past[i] = math.Pow(r, float64(i+1))
			product += before * past[i]
			square += past[i] * past[i]
			before = past[i]
		}
		return product / square, square
	}
	drawn := kept(bias, 0)
	reach := func(r float64) float64 { // what r gives as a probability to keep
		share, _ := weigh(r)
		return (kept(bias, share) - drawn) / (1 - drawn)
	}
	if most := reach(1); !(locality >= 0 && locality <= most) {
		return fmt.Errorf("a locality of %v; with this shape 0 to %.2f is possible", locality, math.Floor(100*most)/100)
	}
	r := 0.0
	if locality > 0 {
		r = math.Round(256*bisect(0, 1, func(r float64) bool { return reach(r) < locality })) / 256
	}
	_, square := weigh(r)
	if r > 0 {
		k.past = past
	}
	k.noise = math.Round(4096/math.Sqrt(square)) / 4096
	return nil
}

// kept is the share of a token's experts that the next one has, too, where their noise correlates so much.
func kept(bias []float64, correlation float64) float64 {
	const steps, reach = 64, 6.0
	both, one := 0.0, 0.0
	for _, b := range bias {
		in := tail(-b)
		one += in
		// Noise above −b twice: over the first one's density, the probability of the second.
		width := (reach + b) / steps
		for i := range steps {
			x := -b + (float64(i)+0.5)*width
			both += width * math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) * tail((-b-correlation*x)/math.Sqrt(1-correlation*correlation))
		}
	}
	return both / one
}

// tail is the probability that normal noise lies above x.
func tail(x float64) float64 { return math.Erfc(x/math.Sqrt2) / 2 }

// fill changes a row that was drawn as all others: that of a tensor in Hugging Face's order.
func (k *skewing) fill(t *tensor, dst []float32, at int) {
	switch t.role {
	case embedding:
		dst[k.dims] = embedSize
	case norm:
		k.norm(t, dst)
	case bias:
		k.bias(t, dst)
	case router:
		k.router(dst, k.busy[t.layer][at])
	case ffnDown:
		if at%k.hidden <= k.dims {
			clear(dst)
		}
	case attnOut:
		k.add(t, dst, at)
	case attnQ, attnK, attnV:
		if t.layer == 0 {
			k.look(t.role, dst, at)
		}
	}
}

// norm leaves the routers' dimensions as they are, and makes the queries that look back long.
func (k *skewing) norm(t *tensor, dst []float32) {
	switch {
	case strings.HasSuffix(t.hf, "self_attn.q_norm.weight") && t.layer == 0:
		for i := range dst[:min(len(dst), len(k.past)*k.head)] {
			dst[i] = k.sharpen()
		}
	case strings.HasSuffix(t.hf, "layernorm.weight"):
		for i := range dst[:k.dims+1] {
			dst[i] = 1
		}
	}
}

// sharpen is by what queries are longer than vectors of as many numbers of size 1.
func (k *skewing) sharpen() float32 {
	return float32(math.Round(16*sharpness/math.Sqrt(float64(k.head))) / 16)
}

// bias clears what would be added to the routers' dimensions and scores, and to heads that look back.
func (k *skewing) bias(t *tensor, dst []float32) {
	name := t.hf + t.stack
	switch {
	case strings.HasSuffix(name, "gate.bias") && !strings.Contains(name, "experts."):
		clear(dst)
	case strings.HasSuffix(name, "o_proj.bias"), strings.HasSuffix(name, "experts.down.bias"):
		clear(dst[:k.dims+1])
	case t.layer > 0:
	case strings.HasSuffix(name, "q_proj.bias"):
		clear(dst[:len(k.past)*k.head])
	case strings.HasSuffix(name, "k_proj.bias"), strings.HasSuffix(name, "v_proj.bias"):
		clear(dst[:k.keys()*k.head])
	}
}

// keys is how many heads of keys and values the heads that look back have.
func (k *skewing) keys() int { return (len(k.past) + k.group - 1) / k.group }

// router makes a row of length k.noise in the routers' dimensions, and the constant.
func (k *skewing) router(dst []float32, busy float32) {
	square := 0.0
	for _, v := range dst[:k.dims] {
		square += float64(float64(v) * float64(v))
	}
	factor := k.noise / math.Sqrt(square)
	for i := range dst[:k.dims] {
		dst[i] = float32(float64(dst[i]) * factor)
	}
	clear(dst[k.dims:])
	dst[k.dims] = busy
}

// add keeps attention from writing where the routers look, but for the heads that look back.
func (k *skewing) add(t *tensor, dst []float32, at int) {
	if at > k.dims {
		return
	}
	clear(dst)
	if t.layer == 0 && at < k.dims {
		for j, w := range k.past {
			dst[j*k.head+at] = float32(math.Round(w*1024) / 1024 * embedSize)
		}
	}
}

// look makes head j attend to the token j + 1 before, by the constant alone, and its values the routers' dimensions.
func (k *skewing) look(r role, dst []float32, at int) {
	head, i := at/k.head, at%k.head
	if r == attnQ && head >= len(k.past) || r != attnQ && head >= k.keys() {
		return
	}
	clear(dst)
	if r == attnV {
		dst[i] = 1
		return
	}
	half := k.head / 2
	pair := i % half
	if k.angles[pair] < slowest {
		return
	}
	n := 0
	for n < half && k.angles[n] >= slowest {
		n++
	}
	size := math.Sqrt(float64(k.head) / float64(n))
	switch {
	case r == attnK && i >= half:
		size = 0
	case r == attnQ && i < half:
		size *= math.Cos(float64(head+1) * k.angles[pair])
	case r == attnQ:
		size *= -math.Sin(float64(head+1) * k.angles[pair])
	}
	if r == attnQ && !k.normed {
		size *= float64(k.sharpen())
	}
	dst[k.dims] = float32(math.Round(1024*size) / 1024)
}

// slowest is the slowest rotation, from one position to the next, that tells positions apart.
const slowest = 0.1
