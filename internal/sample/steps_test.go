package sample

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// newScratch is what an engine would lease.
func newScratch(t testing.TB, vocab, context int) *Scratch {
	t.Helper()
	c, err := NewScratch(make([]byte, ScratchBytes(vocab, context)), vocab, context)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// anyInput draws logits and a history of few distinct tokens, so that there are repetitions.
func anyInput(t *rapid.T) input {
	vocab := rapid.IntRange(2, 200).Draw(t, "vocab")
	in := input{logits: randomLogits(vocab, rapid.Float64Range(0.1, 6).Draw(t, "spread"), rapid.Uint64().Draw(t, "logits"))}
	if rapid.Bool().Draw(t, "ties") {
		for i, v := range in.logits {
			in.logits[i] = float32(math.Round(float64(v)))
		}
	}
	some := min(vocab, rapid.IntRange(1, 8).Draw(t, "some"))
	in.history = rapid.SliceOfN(rapid.Int32Range(0, int32(some-1)), 0, 60).Draw(t, "history")
	in.prompt = rapid.IntRange(0, len(in.history)).Draw(t, "prompt")
	if rapid.Bool().Draw(t, "masked") {
		in.mask = rapid.SliceOfN(rapid.Uint64(), 0, (vocab+63)/64).Draw(t, "mask")
	}
	return in
}

func anySequences(t *rapid.T, vocab int, name string) [][]int32 {
	id := rapid.Int32Range(0, int32(min(vocab, 10)-1))
	return rapid.SliceOfN(rapid.SliceOfN(id, 1, 3), 0, 4).Draw(t, name)
}

// anyEdits draws parameters that change logits.
func anyEdits(t *rapid.T, vocab int) Params {
	ids := rapid.SliceOfNDistinct(rapid.Int32Range(0, int32(vocab-1)), 1, 5, rapid.ID[int32])
	p := Params{Seed: rapid.Uint64().Draw(t, "seed")}
	on := func(name string) bool { return rapid.Bool().Draw(t, name+" on") }
	if on("penalties") {
		p.RepeatPenalty = rapid.Float32Range(0.5, 2).Draw(t, "repeat")
		p.PresencePenalty = rapid.Float32Range(-2, 2).Draw(t, "presence")
		p.FrequencyPenalty = rapid.Float32Range(-2, 2).Draw(t, "frequency")
		p.RepeatLastN = rapid.IntRange(-1, 70).Draw(t, "last n")
	}
	if on("dry") {
		p.DRYMultiplier = rapid.Float32Range(0.1, 2).Draw(t, "multiplier")
		p.DRYBase = rapid.Float32Range(1, 2).Draw(t, "base")
		p.DRYAllowedLength = rapid.IntRange(0, 4).Draw(t, "allowed length")
		p.DRYLastN = rapid.IntRange(-1, 70).Draw(t, "dry last n")
		p.DRYBreakers = anySequences(t, vocab, "breakers")
	}
	if on("bias") {
		p.LogitBias = map[int32]float32{}
		for _, id := range ids.Draw(t, "biased") {
			p.LogitBias[id] = rapid.SampledFrom([]float32{-100, -1.5, 0.25, 3, never}).Draw(t, "bias")
		}
	}
	if on("allowed") {
		p.Allowed = ids.Draw(t, "allowed")
	}
	if on("bad words") {
		p.BadWords = anySequences(t, vocab, "bad words")
	}
	if on("ends") {
		p.EOS, p.StopIDs = ids.Draw(t, "eos"), ids.Draw(t, "stop ids")
		p.IgnoreEOS, p.MinTokens = on("ignore eos"), rapid.IntRange(0, 30).Draw(t, "min tokens")
	}
	return p
}

// anyDraw adds parameters that narrow and draw.
func anyDraw(t *rapid.T, p Params) Params {
	p.Temperature = rapid.Float32Range(0.2, 3).Draw(t, "temperature")
	share := func(name string) float32 {
		if !rapid.Bool().Draw(t, name+" on") {
			return 0
		}
		return rapid.Float32Range(0.01, 0.99).Draw(t, name)
	}
	p.TopK = rapid.IntRange(0, 50).Draw(t, "top-k")
	p.TopP, p.MinP, p.Typical = share("top-p"), share("min-p")/3, share("typical")
	p.XTCProbability, p.XTCThreshold = share("xtc"), share("threshold")/2
	p.MirostatTau = share("mirostat") * 8
	return p
}

func choose(s *Sampler, in input, c *Scratch) (int, error) {
	return s.Choose(Input{Logits: in.logits, History: in.history, Prompt: in.prompt, Mask: in.mask, Scratch: c})
}

// Logits after all changes equal the definition's.
func TestEditsAgainstDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		p := anyEdits(t, len(in.logits))
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		c, _ := NewScratch(make([]byte, ScratchBytes(len(in.logits), 64)), len(in.logits), 64)
		before := slices.Clone(in.logits)
		want := referenceLogits(p, in)
		withheld := p.IgnoreEOS || len(in.history)-in.prompt < p.MinTokens
		got := s.edit(&Input{Logits: in.logits, History: in.history, Prompt: in.prompt, Mask: in.mask, Scratch: c}, withheld)
		for i := range want {
			if math.IsInf(want[i], -1) != math.IsInf(float64(got[i]), -1) || math.Abs(float64(got[i])-want[i]) > 1e-5*(1+math.Abs(want[i])) {
				t.Fatalf("token %d of logit %v: %v, want %v", i, in.logits[i], got[i], want[i])
			}
		}
		if !slices.Equal(before, in.logits) {
			t.Fatal("the logits were changed in place")
		}
		for i, n := range c.counts {
			if n != 0 {
				t.Fatalf("the count of token %d is %d after the call", i, n)
			}
		}
	})
}

// What can be drawn, and how likely it is, equals the definition's, apart from tokens on a border that
// rounding decides.
func TestDistributionAgainstDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logits := anyInput(t).logits
		p := anyDraw(t, Params{})
		wide := make([]float64, len(logits))
		for i, v := range logits {
			wide[i] = float64(v)
		}
		d, best := &drawing{}, 0
		for i, v := range logits {
			if v > logits[best] {
				best = i
			}
		}
		d.start(logits, logits[best], p.Temperature)
		coin := uint64(0)
		if rapid.Bool().Draw(t, "coin") {
			coin = math.MaxUint64
		}
		excluded := coin == 0 && p.XTCProbability > 0
		d.narrow(&p, coin)
		want := referenceProbs(p, wide, excluded)
		if !close(shares(d, len(logits)), want) && !onBorder(p, wide, excluded, shares(d, len(logits))) {
			t.Fatalf("%+v\ngot  %v\nwant %v", p, shares(d, len(logits)), want)
		}
	})
}

// shares are the probabilities of what a drawing left.
func shares(d *drawing, n int) []float64 {
	out, total := make([]float64, n), float64(d.total())
	d.each(func(i int, w uint64) { out[d.id(i)] = float64(w) / total })
	return out
}

func close(got, want []float64) bool {
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-6 {
			return false
		}
	}
	return true
}

// onBorder reports whether the definition gives that result for parameters that differ in the
// 6th digit, or with other distances taken for equal.
func onBorder(p Params, logits []float64, excluded bool, got []float64) bool {
	for _, e := range []float32{-1e-6, 0, 1e-6} {
		for bits := range 15 {
			q := p
			q.XTCThreshold = or(q.XTCThreshold, defaultXTCThreshold)
			for i, v := range []*float32{&q.TopP, &q.MinP, &q.Typical, &q.XTCThreshold} {
				if *v > 0 && (bits+1)>>i&1 != 0 {
					*v *= 1 + e
				}
			}
			for _, tie := range []float64{1e-6, 1e-9} {
				if close(got, referenceProbsTied(q, logits, excluded, tie)) {
					return true
				}
			}
		}
	}
	return false
}

// A choice is allowed, the same in any company and order, and without a scratch.
func TestChoicesAreAllowedAndAlone(t *testing.T) {
	shared := newScratch(t, 256, 64)
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		p := anyDraw(t, anyEdits(t, len(in.logits)))
		if rapid.Bool().Draw(t, "greedy") {
			p.Temperature = 0
		}
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		twin := s.Clone()
		id, err := choose(s, in, shared)
		other, otherErr := choose(twin, in, nil)
		if id != other || (err == nil) != (otherErr == nil) {
			t.Fatalf("%d (%v) with a shared scratch, %d (%v) alone", id, err, other, otherErr)
		}
		if s.mu != twin.mu {
			t.Fatalf("mirostat learned %v and %v", s.mu, twin.mu)
		}
		want := referenceLogits(p, in)
		if err != nil {
			if slices.Max(want) > math.Inf(-1) || !errors.Is(err, ErrForbidden) {
				t.Fatalf("%v, although tokens are left", err)
			}
			return
		}
		if slices.Max(want) > math.Inf(-1) && math.IsInf(want[id], -1) {
			t.Fatalf("token %d is forbidden", id)
		}
		if best := slices.Max(want); p.Greedy() && best > math.Inf(-1) && want[id] < best-1e-5*(1+math.Abs(best)) {
			t.Fatalf("token %d of %v, the best is %v", id, want[id], best)
		}
	})
}

// The frequencies of XTC, typical and mirostat's first draw follow the definition; the seed is fixed.
func TestRarerDistributions(t *testing.T) {
	logits, scratch := randomLogits(40, 2, 3), newScratch(t, 40, 0)
	wide := make([]float64, len(logits))
	for i, v := range logits {
		wide[i] = float64(v)
	}
	for _, p := range []Params{
		{Temperature: 1, Typical: 0.6},
		{Temperature: 1.4, TopK: 30, TopP: 0.95, Typical: 0.8},
		{Temperature: 1.2, XTCProbability: 0.3, XTCThreshold: 0.08},
		{Temperature: 1, MirostatTau: 1.5},
	} {
		t.Run(fmt.Sprintf("%+v", p), func(t *testing.T) {
			p.Seed = 5
			want := referenceProbs(p, wide, false)
			if q := float64(p.XTCProbability); q > 0 {
				for i, e := range referenceProbs(p, wide, true) {
					want[i] = (1-q)*want[i] + q*e
				}
			}
			s := sampler(t, p)
			if p.MirostatTau > 0 {
				want = referenceMirostat(p, wide, s.mu)
			}
			checkFrequencies(t, want, func(i int) int {
				id, err := s.Clone().choose(Input{Logits: logits, Scratch: scratch}, i)
				if err != nil {
					t.Fatal(err)
				}
				return id
			})
		})
	}
}

// checkFrequencies wants draws as likely as that: one in a million correct samplers would fail.
func checkFrequencies(t *testing.T, want []float64, draw func(i int) int) {
	t.Helper()
	const draws = 50_000
	count := make([]float64, len(want))
	for i := range draws {
		count[draw(i)]++
	}
	chi, freedom := 0.0, -1.0
	for i, w := range want {
		if w == 0 {
			if count[i] > 0 {
				t.Errorf("token %d was drawn %v times although it is cut off", i, count[i])
			}
			continue
		}
		d := count[i] - w*draws
		chi += d * d / (w * draws)
		freedom++
	}
	if z := (math.Cbrt(chi/freedom) - (1 - 2/(9*freedom))) / math.Sqrt(2/(9*freedom)); z > 4.75 {
		t.Errorf("chi-square %.1f with %v degrees of freedom (z = %.1f)", chi, freedom, z)
	}
}

// Mirostat's bound follows llama.cpp's rule over a whole answer, and a clone goes on alike.
func TestMirostatLearns(t *testing.T) {
	p := Params{Temperature: 1.1, MirostatTau: 3, MirostatEta: 0.2, Seed: 9}
	s, mu := sampler(t, p), 6.0
	total := 0.0
	const steps = 400
	for i := range steps {
		logits := randomLogits(300, 2.5, uint64(i))
		wide := make([]float64, len(logits))
		for j, v := range logits {
			wide[j] = float64(v)
		}
		prob := referenceMirostat(p, wide, mu)
		twin := s.Clone()
		if i > 0 && (s.own == nil || twin.own != nil) {
			t.Fatal("a clone shares the scratch, which two goroutines may then use")
		}
		id := next(t, s, logits, i)
		if other := next(t, twin, logits, i); other != id || twin.mu != s.mu {
			t.Fatalf("step %d: the clone chose %d, not %d", i, other, id)
		}
		if prob[id] == 0 {
			t.Fatalf("step %d: token %d is cut off at %v bits", i, id, mu)
		}
		surprise := -math.Log2(prob[id])
		total += surprise
		mu -= 0.2 * (surprise - 3)
		if math.Abs(s.mu-mu) > 1e-6 {
			t.Fatalf("step %d: mu is %v, want %v", i, s.mu, mu)
		}
		mu = s.mu
	}
	if mean := total / steps; math.Abs(mean-3) > 0.1 {
		t.Errorf("the mean surprise is %.2f bits, want 3", mean)
	}
}

// Worked by hand from llama.cpp's description: after a b c d … a b c, d would go on.
func TestDRYByHand(t *testing.T) {
	history := []int32{1, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3}
	logits := make([]float32, 10)
	for _, c := range []struct {
		name string
		p    Params
		want map[int]float32
	}{
		{"lengths 3 and 2", Params{DRYMultiplier: 1, DRYBase: 2}, map[int]float32{4: -2, 5: -1}},
		{"from 3", Params{DRYMultiplier: 1, DRYBase: 2, DRYAllowedLength: 3}, map[int]float32{4: -1}},
		{"a breaker", Params{DRYMultiplier: 1, DRYBase: 2, DRYBreakers: [][]int32{{1}}}, map[int]float32{4: -1, 5: -1}},
		{"a breaker of two", Params{DRYMultiplier: 1, DRYBase: 2, DRYBreakers: [][]int32{{1, 2}}}, map[int]float32{}},
		{"a window", Params{DRYMultiplier: 1, DRYBase: 2, DRYLastN: 6}, map[int]float32{5: -1}},
	} {
		s := sampler(t, c.p)
		got := s.edit(&Input{Logits: logits, History: history, Prompt: 4, Scratch: newScratch(t, 10, 16)}, false)
		for i, v := range got {
			if v != c.want[i] {
				t.Errorf("%s: the logit of %d is %v, want %v", c.name, i, v, c.want[i])
			}
		}
	}
}

// Distributions that llama.cpp's own tests expect (tests/test-sampling.cpp); the last is worked by hand.
func TestKnownDistributions(t *testing.T) {
	for _, c := range []struct {
		name    string
		prob    []float64
		history []int32
		p       Params
		want    []float64
	}{
		{"typical, one token", []float64{0.97, 0.01, 0.01, 0.01}, nil, Params{Typical: 0.5}, []float64{1, 0, 0, 0}},
		{"typical, ties", []float64{0.4, 0.2, 0.2, 0.2}, nil, Params{Typical: 0.5}, []float64{0, 1. / 3, 1. / 3, 1. / 3}},
		{"xtc 0.09", []float64{0.4, 0.3, 0.2, 0.1}, nil, Params{XTCProbability: 1, XTCThreshold: 0.09}, []float64{0, 0, 0, 1}},
		{"xtc 0.19", []float64{0.4, 0.3, 0.2, 0.1}, nil, Params{XTCProbability: 1, XTCThreshold: 0.19}, []float64{0, 0, 2. / 3, 1. / 3}},
		{"xtc 0.39", []float64{0.4, 0.3, 0.2, 0.1}, nil, Params{XTCProbability: 1, XTCThreshold: 0.39}, []float64{0.4, 0.3, 0.2, 0.1}},
		{"dry, too short", []float64{1, 1, 1, 1}, []int32{0, 1}, Params{DRYMultiplier: 1, DRYBase: 1.1}, []float64{0.25, 0.25, 0.25, 0.25}},
		{"dry", []float64{1, 1, 1, 1}, []int32{0, 1, 2, 0, 1}, Params{DRYMultiplier: 1, DRYBase: 1.1},
			[]float64{0.296923, 0.296923, 0.109232, 0.296923}},
		{"dry, a breaker would go on", []float64{1, 1, 1, 1, 1}, []int32{0, 1, 3, 4, 0, 1},
			Params{DRYMultiplier: 1, DRYBase: 1.1, DRYBreakers: [][]int32{{3}}}, []float64{0.2, 0.2, 0.2, 0.2, 0.2}},
		{"dry, twice the multiplier", []float64{1, 1, 1, 1, 1}, []int32{0, 1, 2, 0, 1}, Params{DRYMultiplier: 2, DRYBase: 1.1},
			[]float64{0.241818, 0.241818, 0.032727, 0.241818, 0.241818}},
		{"dry, allowed", []float64{1, 1, 1, 1, 1}, []int32{0, 1, 2, 3, 4, 0, 1}, Params{DRYMultiplier: 1, DRYBase: 1.1, DRYAllowedLength: 4},
			[]float64{0.2, 0.2, 0.2, 0.2, 0.2}},
		{"presence and frequency", []float64{1, 1, 1, 1, 1}, []int32{0, 1, 2, 0, 0}, Params{FrequencyPenalty: 2, PresencePenalty: 2},
			[]float64{0.00016469, 0.00899162, 0.00899162, 0.49092603, 0.49092603}},
	} {
		c.p.Temperature = 1
		s, in := sampler(t, c.p), Input{History: c.history, Scratch: newScratch(t, len(c.prob), 16)}
		for _, q := range c.prob {
			in.Logits = append(in.Logits, float32(math.Log(q)))
		}
		logits, best, err := s.edited(&in)
		if err != nil {
			t.Fatal(err)
		}
		d := &in.Scratch.draw
		d.start(logits, logits[best], 1)
		d.narrow(&s.params, 0)
		if got := shares(d, len(logits)); !close(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// The mask is stronger than what withholds the end, where the end is all that it allows.
func TestMaskOfEndsAlone(t *testing.T) {
	s := sampler(t, Params{IgnoreEOS: true, MinTokens: 5, EOS: []int32{3}})
	in := Input{Logits: []float32{5, 4, 3, 2, 1}, Mask: []uint64{1 << 3}}
	if id, err := s.Choose(in); id != 3 || err != nil {
		t.Errorf("token %d, %v; want 3, the end", id, err)
	}
	in.Mask[0] |= 1 << 4
	if id, err := s.Choose(in); id != 4 || err != nil {
		t.Errorf("token %d, %v; want 4, which is no end", id, err)
	}
	in.Mask = nil
	in.Logits = []float32{never, never, never, 2}
	if _, err := s.Choose(in); !errors.Is(err, ErrForbidden) {
		t.Errorf("error %v, want %v", err, ErrForbidden)
	}
}

func TestChooseRefuses(t *testing.T) {
	logits := []float32{1, 2, 3}
	for want, c := range map[string]struct {
		p  Params
		in Input
	}{
		"logit-bias is for token 7; it must be for tokens from 0 to 2": {Params{LogitBias: map[int32]float32{7: 1}}, Input{Logits: logits}},
		"bad-word is for token -1":                                     {Params{BadWords: [][]int32{{0, -1}}}, Input{Logits: logits}},
		"allowed-tokens is for token 3":                                {Params{Allowed: []int32{3}}, Input{Logits: logits}},
		"stop-token-ids is for token 5":                                {Params{StopIDs: []int32{5}}, Input{Logits: logits}},
		"the prompt is no part":                                        {Params{}, Input{Logits: logits, Prompt: 1}},
		"leave none":                                                   {Params{}, Input{Logits: logits, Mask: []uint64{}}},
		"scratch is too small":                                         {Params{IgnoreEOS: true}, Input{Logits: logits, Scratch: &Scratch{}}},
	} {
		if _, err := sampler(t, c.p).Choose(c.in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", c.p, err, want)
		}
	}
	if _, err := sampler(t, Params{MinTokens: 1}).Next(logits, 0); !errors.Is(err, errHistory) {
		t.Errorf("Next without the history that it needs: %v", err)
	}
	if _, err := NewScratch(make([]byte, 10), 100, 100); err == nil {
		t.Error("a scratch of 10 bytes was taken")
	}
}

// A top-k or top-p that leaves many tokens, with more equal logits than are sorted, is exact too.
func TestLargeCuts(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for trial := range 12 {
		logits := make([]float32, 6000)
		for i := range logits {
			logits[i] = float32(r.IntN(1+trial)) / 8
		}
		p := Params{Temperature: 1, TopK: 1000 + r.IntN(4000)}
		if trial%2 == 0 {
			p = Params{Temperature: 2, TopP: 0.1 + 0.8*r.Float32()}
		}
		want, got := exact(logits, p), support(logits, p)
		differ := 0
		for i := range want {
			if got[i] != (want[i] > 0) {
				differ++
			}
		}
		if differ > 1 { // the token on the border
			t.Errorf("trial %d %+v: %d tokens differ", trial, p, differ)
		}
	}
}

// The bits of logprobs and draws are part of the product's promise.
func TestGoldenSteps(t *testing.T) {
	logits := make([]float32, 100)
	for j := range logits {
		logits[j] = float32((j*37)%101)/16 - 3
	}
	value, _ := LogProbs(logits, 5, 0)
	if bits := math.Float32bits(value); bits != goldenLogProb {
		t.Errorf("the logprob has bits %#x, want %#x", bits, uint32(goldenLogProb))
	}
	for _, c := range []struct {
		p    Params
		want []int
	}{
		{Params{Temperature: 1, Typical: 0.5, Seed: 7}, goldenTypical},
		{Params{Temperature: 1, XTCProbability: 0.5, XTCThreshold: 0.03, MinP: 0.3, Seed: 7}, goldenXTC},
		{Params{Temperature: 1, MirostatTau: 4, Seed: 7}, goldenMirostat},
		{Params{RepeatPenalty: 1.1, FrequencyPenalty: 0.3, PresencePenalty: 0.2}, goldenPenalties},
		{Params{DRYMultiplier: 0.8, BadWords: [][]int32{{30}, {60, 71}}, LogitBias: map[int32]float32{60: 4}}, goldenDRY},
	} {
		s, history := sampler(t, c.p), []int32{30, 60, 7}
		for range 12 {
			id, err := s.Choose(Input{Logits: logits, History: history, Prompt: 3})
			if err != nil {
				t.Fatal(err)
			}
			history = append(history, int32(id))
		}
		var got []int
		for _, id := range history[3:] {
			got = append(got, int(id))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.p, got, c.want)
		}
	}
}

func TestChooseAllocatesNothing(t *testing.T) {
	const vocab = 5000
	in := Input{Logits: randomLogits(vocab, 2, 9), Prompt: 20, Scratch: newScratch(t, vocab, 256), Mask: make([]uint64, vocab/64+1)}
	for i := range in.Mask {
		in.Mask[i] = 0xfffffffffffffff0
	}
	for i := range 200 {
		in.History = append(in.History, int32(i%7))
	}
	all := Params{
		Temperature: 1, TopP: 0.95, MinP: 0.01, Typical: 0.9, XTCProbability: 0.5, RepeatPenalty: 1.1, FrequencyPenalty: 0.1,
		DRYMultiplier: 0.8, DRYBreakers: [][]int32{{5, 6}, {300}}, LogitBias: map[int32]float32{7: 2}, BadWords: [][]int32{{1, 2}},
		EOS: []int32{2}, MinTokens: 500,
	}
	greedy, mirostat := all, all
	greedy.Temperature, mirostat.MirostatTau = 0, 5
	allowed := all
	allowed.Allowed = []int32{9, 70, 71}
	for _, p := range []Params{all, greedy, mirostat, allowed} {
		s := sampler(t, p)
		if n := testing.AllocsPerRun(20, func() {
			if _, err := s.Choose(in); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%+v: %v allocations per call", p, n)
		}
	}
}
