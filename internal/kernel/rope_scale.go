package kernel

import "math"

// InvFreq returns the dim/2 inverse frequencies base^(−2i/dim), computed in float64 and rounded to
// float32. dim is the number of rotated values of a head, base the model's rope theta.
func InvFreq(dim int, base float64) []float32 {
	f := make([]float32, dim/2)
	for i := range f {
		f[i] = float32(pow64(base, -float64(2*i)/float64(dim)))
	}
	return f
}

// RopeLinear divides the frequencies by factor: position interpolation (Chen et al., 2023).
func RopeLinear(invFreq []float32, factor float64) {
	for i, f := range invFreq {
		invFreq[i] = float32(float64(f) / factor)
	}
}

// RopeDivide divides frequency i by factors[i] (GGUF's rope_freqs.weight, longrope's lists).
func RopeDivide(invFreq, factors []float32) {
	for i, f := range factors[:len(invFreq)] {
		invFreq[i] /= f
	}
}

// Llama3Rope are the parameters of Llama 3.1's frequency scaling, named as in config.json.
type Llama3Rope struct {
	Factor         float64
	LowFreqFactor  float64
	HighFreqFactor float64
	OriginalLength int // original_max_position_embeddings
}

// Apply scales the frequencies: those with a wavelength above OriginalLength/LowFreqFactor are
// divided by Factor, those below OriginalLength/HighFreqFactor stay, and between they are blended.
func (s Llama3Rope) Apply(invFreq []float32) {
	length := float64(s.OriginalLength)
	for i, f32 := range invFreq {
		f := float64(f32)
		wave := 2 * math.Pi / f
		switch {
		case wave > length/s.LowFreqFactor:
			invFreq[i] = float32(f / s.Factor)
		case wave >= length/s.HighFreqFactor:
			smooth := (length/wave - s.LowFreqFactor) / (s.HighFreqFactor - s.LowFreqFactor)
			invFreq[i] = float32(float64((1-smooth)*f)/s.Factor + float64(smooth*f))
		}
	}
}

// DynamicNTKBase returns the rope base for a sequence of length tokens: base itself up to the trained
// length, and beyond it base·(factor·length/trained − (factor − 1))^(dim/(dim−2)). NUMERICS: length
// is the prompt and the request's max_tokens, or the trained limit; once per sequence.
func DynamicNTKBase(base, factor float64, dim, length, trained int) float64 {
	if length <= trained || dim <= 2 {
		return base
	}
	grow := float64(factor*float64(length))/float64(trained) - (factor - 1)
	return base * pow64(grow, float64(dim)/float64(dim-2))
}

// YaRN are the parameters of YaRN (Peng et al., 2023), named as in config.json. Zero values mean what
// transformers takes as default: BetaFast 32, BetaSlow 1, AttentionFactor from Factor or the mscales.
type YaRN struct {
	Factor          float64
	OriginalLength  int // original_max_position_embeddings
	BetaFast        float64
	BetaSlow        float64
	AttentionFactor float64
	MScale          float64
	MScaleAllDim    float64
	NoTruncate      bool // "truncate": false keeps the bounds of the ramp unrounded
}

// Frequencies returns the inverse frequencies for dim rotated values: those of few rotations are
// divided by Factor, those of many stay, and a ramp lies between.
func (y YaRN) Frequencies(dim int, base float64) []float32 {
	low, high := y.rampBounds(dim, base)
	if low == high {
		high += 0.001 // as transformers, against a division by zero
	}
	f := make([]float32, dim/2)
	for i := range f {
		ramp := min(max((float64(i)-low)/(high-low), 0), 1)
		plain := pow64(base, -float64(2*i)/float64(dim))
		f[i] = float32(float64(plain/y.Factor*ramp) + float64(plain*(1-ramp)))
	}
	return f
}

func (y YaRN) rampBounds(dim int, base float64) (low, high float64) {
	at := func(rotations float64) float64 {
		return float64(dim) * ln(float64(y.OriginalLength)/(rotations*2*math.Pi)) / (2 * ln(base))
	}
	low, high = at(orDefault(y.BetaFast, 32)), at(orDefault(y.BetaSlow, 1))
	if !y.NoTruncate {
		low, high = floor(low), -floor(-high)
	}
	return max(low, 0), min(high, float64(dim-1))
}

// Attention returns the factor for RopeAngles.
func (y YaRN) Attention() float32 {
	switch {
	case y.AttentionFactor != 0:
		return float32(y.AttentionFactor)
	case y.MScale != 0 && y.MScaleAllDim != 0:
		return float32(yarnMScale(y.Factor, y.MScale) / yarnMScale(y.Factor, y.MScaleAllDim))
	}
	return float32(yarnMScale(y.Factor, 1))
}

func yarnMScale(scale, mscale float64) float64 {
	if scale <= 1 {
		return 1
	}
	return float64(0.1*mscale*ln(scale)) + 1
}

func orDefault(v, def float64) float64 {
	if v == 0 {
		return def
	}
	return v
}

// floor is exact for |x| < 2^52, which rope's bounds are far below.
func floor(x float64) float64 {
	n := math.RoundToEven(x)
	if n > x {
		return n - 1
	}
	return n
}
