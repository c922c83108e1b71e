package sample

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Known answers of the Random123 distribution.
func TestPhiloxKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		key     [2]uint32
		counter [4]uint32
		want    [4]uint32
	}{
		{want: [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[2]uint32{0xffffffff, 0xffffffff}, [4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[2]uint32{0xa4093822, 0x299f31d0}, [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := philox(c.key, c.counter); got != c.want {
			t.Errorf("philox(%x, %x) = %x, want %x", c.key, c.counter, got, c.want)
		}
	}
}

func sampler(t *testing.T, p Params) *Sampler {
	t.Helper()
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func next(t *testing.T, s *Sampler, logits []float32, position int) int {
	t.Helper()
	id, err := s.Next(logits, position)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// exact is the plain definition with a sort, in float64: the probability of every token.
func exact(logits []float32, p Params) []float64 {
	n := len(logits)
	prob := make([]float64, n)
	top := float64(slices.Max(logits))
	for i, v := range logits {
		prob[i] = math.Exp((float64(v) - top) / float64(p.Temperature))
	}
	ids := make([]int, n)
	for i := range ids {
		ids[i] = i
	}
	slices.SortStableFunc(ids, func(a, b int) int {
		if prob[a] != prob[b] {
			return map[bool]int{true: -1, false: 1}[prob[a] > prob[b]]
		}
		return a - b
	})
	if p.TopK > 0 && p.TopK < n {
		ids = ids[:p.TopK]
	}
	sum := 0.0
	for _, i := range ids {
		sum += prob[i]
	}
	if p.TopP > 0 && p.TopP < 1 {
		cumulated := 0.0
		for k, i := range ids {
			cumulated += prob[i]
			if cumulated >= float64(p.TopP)*sum-1e-9 {
				ids = ids[:k+1]
				break
			}
		}
	}
	out, total := make([]float64, n), 0.0
	for _, i := range ids {
		if prob[i] >= float64(p.MinP) {
			out[i] = prob[i]
			total += prob[i]
		}
	}
	for i := range out {
		out[i] /= total
	}
	return out
}

func randomLogits(n int, spread float64, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	logits := make([]float32, n)
	for i := range logits {
		logits[i] = float32(r.NormFloat64() * spread)
	}
	return logits
}

// Fixed seeds, so that the outcome is fixed too: the bound is what one in a million runs of a
// correct sampler passes.
func TestDistribution(t *testing.T) {
	logits := randomLogits(40, 2, 3)
	for _, p := range []Params{
		{Temperature: 1},
		{Temperature: 0.7},
		{Temperature: 2},
		{Temperature: 1, TopK: 7},
		{Temperature: 1.3, TopP: 0.8},
		{Temperature: 1, MinP: 0.1},
		{Temperature: 1.5, TopK: 20, TopP: 0.9, MinP: 0.05},
	} {
		t.Run(fmt.Sprintf("%+v", p), func(t *testing.T) {
			p.Seed = 11
			s, want := sampler(t, p), exact(logits, p)
			const draws = 200_000
			count := make([]float64, len(logits))
			for i := range draws {
				count[next(t, s, logits, i)]++
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
			// Wilson and Hilferty: the cube root of chi²/n is nearly normal.
			z := (math.Cbrt(chi/freedom) - (1 - 2/(9*freedom))) / math.Sqrt(2/(9*freedom))
			if z > 4.75 {
				t.Errorf("chi-square %.1f with %v degrees of freedom (z = %.1f)", chi, freedom, z)
			}
		})
	}
}

// support is the set of tokens that can be drawn.
func support(logits []float32, p Params) []bool {
	d := &drawing{}
	d.start(logits, slices.Max(logits), p.Temperature)
	d.narrow(&p, 0)
	got := make([]bool, len(logits))
	d.each(func(i int, _ uint64) { got[d.id(i)] = true })
	return got
}

// The set of tokens that can be drawn equals the definition's, over many shapes of logits.
func TestSupport(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for trial := range 300 {
		logits := randomLogits(1+r.IntN(50), 0.5+3*r.Float64(), uint64(trial))
		if trial%3 == 0 { // many ties
			for i, v := range logits {
				logits[i] = float32(math.Round(float64(v)))
			}
		}
		p := Params{Temperature: 0.5 + r.Float32(), TopK: r.IntN(len(logits) + 2)}
		if trial%2 == 0 {
			p.TopP = r.Float32()
		}
		if trial%5 == 0 {
			p.MinP = r.Float32() / 4
		}
		want, got := exact(logits, p), support(logits, p)
		for i := range want {
			if got[i] != (want[i] > 0) && want[i] > 1e-11 {
				t.Fatalf("trial %d %+v: token %d kept: %v, probability %v\n%v", trial, p, i, got[i], want[i], logits)
			}
		}
	}
}

func TestEdges(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		name   string
		params Params
		logits []float32
		want   int
	}{
		{"greedy", Params{}, []float32{1, 3, 2}, 1},
		{"greedy tie", Params{}, []float32{1, 3, 3}, 1},
		{"greedy negative zero ties", Params{}, []float32{float32(math.Copysign(0, -1)), 0}, 0},
		{"greedy masked", Params{}, []float32{-inf, -5, -inf}, 1},
		{"top-k 1", Params{Temperature: 9, TopK: 1}, []float32{1, 3, 3}, 1},
		{"top-k beyond the vocabulary", Params{Temperature: 0.01, TopK: 99}, []float32{1, 3, 2}, 1},
		{"top-p nearly 0", Params{Temperature: 9, TopP: 1e-30}, []float32{1, 3, 2}, 1},
		{"top-p nearly 0, tie", Params{Temperature: 9, TopP: 1e-30}, []float32{1, 3, 3}, 1},
		{"min-p 1", Params{Temperature: 9, MinP: 1}, []float32{1, 3, 2}, 1},
		{"one token", Params{Temperature: 1}, []float32{-7}, 0},
		{"one unmasked", Params{Temperature: 1, TopP: 0.5, MinP: 0.5, TopK: 2}, []float32{-inf, -inf, 2, -inf}, 2},
		{"tiny temperature", Params{Temperature: 1e-30}, []float32{1, 3, 2}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for position := range 50 {
				if got := next(t, sampler(t, c.params), c.logits, position); got != c.want {
					t.Fatalf("position %d: token %d, want %d", position, got, c.want)
				}
			}
		})
	}
}

// Top-k among equal logits keeps the lowest indices, -0 and +0 being equal.
func TestTopKTies(t *testing.T) {
	s := sampler(t, Params{Temperature: 1, TopK: 3})
	logits := []float32{-1, 0, float32(math.Copysign(0, -1)), 0, 0}
	seen := map[int]bool{}
	for i := range 200 {
		seen[next(t, s, logits, i)] = true
	}
	if len(seen) != 3 || !seen[1] || !seen[2] || !seen[3] {
		t.Errorf("drawn: %v, want 1, 2 and 3", seen)
	}
}

func TestBadLogits(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for want, logits := range map[string][]float32{
		"logit 1 of 3 is NaN":    {1, nan, 2},
		"logit 0 of 1 is NaN":    {nan},
		"logit 2 of 3 is +Inf":   {1, 2, inf},
		"no token can be chosen": {-inf, -inf},
		"there are no logits":    {},
	} {
		for _, p := range []Params{{}, {Temperature: 1}, {Temperature: 1, TopK: 2, TopP: 0.5}} {
			_, err := sampler(t, p).Next(logits, 0)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: error %v, want %q", logits, err, want)
			}
		}
	}
}

func TestParams(t *testing.T) {
	nan := float32(math.NaN())
	for want, p := range map[string]Params{
		"temperature is -1":  {Temperature: -1},
		"temperature is NaN": {Temperature: nan},
		"top-k is -1":        {TopK: -1},
		"top-p is 1.5":       {TopP: 1.5},
		"top-p is NaN":       {TopP: nan},
		"min-p is -0.5":      {MinP: -0.5},

		"temperature is +Inf; it must be 0 (greedy) or a positive number":        {Temperature: float32(math.Inf(1))},
		"typical is 2; it must be between 0 and 1":                               {Typical: 2},
		"xtc-probability is -1; it must be between 0 (off) and 1":                {XTCProbability: -1},
		"xtc-threshold is 0.6; it must be between 0 (for 0.1) and 0.5":           {XTCThreshold: 0.6},
		"repeat-penalty is -1; it must be 0 or 1 (off), or between 0.01 and 100": {RepeatPenalty: -1},
		"repeat-penalty is NaN":                                                   {RepeatPenalty: nan},
		"repeat-last-n is -2; it must be positive, or 0 for all":                  {RepeatLastN: -2},
		"presence-penalty is 2.5; it must be between -2 and 2":                    {PresencePenalty: 2.5},
		"frequency-penalty is -3; it must be between -2 and 2":                    {FrequencyPenalty: -3},
		"dry-multiplier is -1; it must be between 0 (off) and 100":                {DRYMultiplier: -1},
		"dry-base is 0.5; it must be between 1 and 100, or 0 for 1.75":            {DRYBase: 0.5},
		"dry-allowed-length is -1; it must be positive, or 0 for 2":               {DRYAllowedLength: -1},
		"dry-penalty-last-n is -9; it must be positive, or 0 for all":             {DRYLastN: -9},
		"dry-sequence-breaker is empty; it must be a text of one token at least":  {DRYBreakers: [][]int32{{1}, {}}},
		"mirostat-tau is -5; it must be between 0 (off) and 100":                  {MirostatTau: -5},
		"mirostat-eta is 3; it must be between 0 (for 0.1) and 1":                 {MirostatEta: 3},
		"logit-bias is 101 for token 4; it must be between -100 and 100, or -Inf": {LogitBias: map[int32]float32{4: 101}},
		"logit-bias is NaN for token 4":                                           {LogitBias: map[int32]float32{4: nan}},
		"allowed-tokens is an empty list; it must be left out, or name one token": {Allowed: []int32{}},
		"bad-word is empty; it must be a text of one token at least":              {BadWords: [][]int32{{}}},
		"bad-word is a list of 65537 tokens; it must be one of 65536 at most":     {BadWords: [][]int32{make([]int32, 65537)}},
		"min-tokens is -1; it must be 0 (off) or positive":                        {MinTokens: -1},
	} {
		if _, err := New(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", p, err, want)
		}
	}
}

// What Validate lets through can be sampled by without a panic: an allowed token, or an error.
func FuzzParams(f *testing.F) {
	f.Add(float32(1), float32(0.9), float32(0.1), float32(1.1), float32(0.5), 3, -1, int32(2), uint64(1))
	f.Add(float32(0), float32(2), float32(-1), float32(100), float32(1e-30), 0, 70, int32(-1), uint64(0))
	f.Add(float32(1e38), float32(1), float32(0.01), float32(0.01), float32(100), 1<<62, 5, int32(7), uint64(3))
	f.Fuzz(func(t *testing.T, a, b, c, d, e float32, n, m int, id int32, bits uint64) {
		logits := []float32{1, 3e38, -3e38, 0, never, 1e-40, 2, 2}
		history := []int32{1, 2, 1, 2, 1, id, 1, 2}
		for _, p := range []Params{
			{Temperature: a, TopP: b, MinP: c, Typical: d, XTCProbability: e, XTCThreshold: b, TopK: n, Seed: bits},
			{Temperature: a, MirostatTau: e, MirostatEta: b},
			{Temperature: c, RepeatPenalty: d, PresencePenalty: b, FrequencyPenalty: c, RepeatLastN: m},
			{DRYMultiplier: e, DRYBase: d, DRYAllowedLength: n, DRYLastN: m, DRYBreakers: [][]int32{{id}}},
			{Temperature: a, LogitBias: map[int32]float32{id: e}, BadWords: [][]int32{{2, id}}, Allowed: []int32{id, 3}, MinTokens: n, EOS: []int32{id}},
		} {
			s, err := New(p)
			if err != nil {
				var bad *ParamError
				if !errors.As(err, &bad) || bad.Name == "" || bad.Want == "" {
					t.Fatalf("%+v: error %v is no good *ParamError", p, err)
				}
				continue
			}
			chosen, err := s.Choose(Input{Logits: logits, History: history, Prompt: 3, Mask: []uint64{bits}})
			if err == nil && (chosen < 0 || chosen >= len(logits) || bits>>chosen&1 == 0 || chosen == 4) {
				t.Fatalf("%+v: token %d was chosen under the mask %b", p, chosen, bits)
			}
		}
	})
}

// A draw depends on (seed, position) alone: not on earlier draws or on the sampler that makes it.
func TestDrawsAreIndependentOfCompany(t *testing.T) {
	a, b := randomLogits(1000, 2, 1), randomLogits(777, 1, 2)
	p := Params{Temperature: 1, TopP: 0.95, Seed: 42}
	alone := make([]int, 64)
	for i := range alone {
		alone[i] = next(t, sampler(t, p), a, i)
	}
	shared := sampler(t, p)
	for i := len(alone) - 1; i >= 0; i-- {
		next(t, shared, b, i)
		if got := next(t, shared, a, i); got != alone[i] {
			t.Fatalf("position %d: token %d in company, %d alone", i, got, alone[i])
		}
	}
	p.Seed = 43
	different := 0
	for i := range alone {
		if next(t, sampler(t, p), a, i) != alone[i] {
			different++
		}
	}
	if different < 32 {
		t.Errorf("only %d of 64 draws differ under another seed", different)
	}
}

// The draws are part of the product's promise: the same command prints the same text.
func TestGoldenDraws(t *testing.T) {
	s := sampler(t, Params{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.02, Seed: 7})
	var got []int
	for i := range 12 {
		logits := make([]float32, 100)
		for j := range logits {
			logits[j] = float32((j*37+i*11)%101) / 16
		}
		got = append(got, next(t, s, logits, i))
	}
	want := []int{76, 78, 2, 23, 97, 39, 50, 44, 93, 0, 98, 84}
	if !slices.Equal(got, want) {
		t.Errorf("drawn %v, want %v", got, want)
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	logits := randomLogits(5000, 2, 9)
	for _, p := range []Params{{}, {Temperature: 1}, {Temperature: 1, TopK: 50, TopP: 0.9, MinP: 0.1}} {
		s := sampler(t, p)
		if n := testing.AllocsPerRun(20, func() { next(t, s, logits, 1) }); n != 0 {
			t.Errorf("%+v: %v allocations per call", p, n)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	logits := randomLogits(151936, 3, 9)
	for _, p := range []Params{{}, {Temperature: 1}, {Temperature: 0.7, TopP: 0.9}, {Temperature: 0.7, TopK: 40, TopP: 0.9}} {
		b.Run(fmt.Sprintf("T=%v,k=%d,p=%v", p.Temperature, p.TopK, p.TopP), func(b *testing.B) {
			s, _ := New(p)
			for i := 0; b.Loop(); i++ {
				if _, err := s.Next(logits, i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestWeight(t *testing.T) {
	if weight(0) != whole || weight(-29) != 0 || weight(float32(math.Inf(-1))) != 0 {
		t.Fatal("e^0 is not whole, or e^-29 not 0")
	}
	last := uint64(0)
	for x := float32(-28.5); x <= 0; x += 1.0 / 4096 {
		got, want := weight(x), math.Exp(float64(x))*whole
		if math.Abs(float64(got)-want) > want*1e-8+1 {
			t.Fatalf("weight(%v) = %d, want %.1f", x, got, want)
		}
		if got < last {
			t.Fatalf("weight falls at %v", x)
		}
		last = got
	}
}

// The series stay within the errors that docs/sampling.md promises.
func TestSeries(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	for range 20_000 {
		x := math.Exp(60*r.Float64() - 30)
		if got, want := ln(x), math.Log(x); math.Abs(got-want) > 1e-14*max(1, math.Abs(want)) {
			t.Fatalf("ln(%v) = %v, want %v", x, got, want)
		}
		y := 128*r.Float64() - 64
		if got, want := exp2(y), math.Exp2(y); math.Abs(got-want) > 1e-14*want {
			t.Fatalf("exp2(%v) = %v, want %v", y, got, want)
		}
	}
	if ln(1) != 0 || exp2(0) != 1 || exp2(-3) != 0.125 {
		t.Error("ln 1, 2^0 or 2^-3 is not exact")
	}
}
