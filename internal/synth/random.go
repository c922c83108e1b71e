package synth

import (
	"math"
)

// A stream is SplitMix64 (Steele, Lea, Flood 2014), one for every row of every tensor, so that any
// part of a file can be made alone and in any order.
type stream uint64

func (s *stream) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	return mixBits(uint64(*s))
}

func mixBits(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// rowStream returns the stream of a row of the tensor with that Hugging Face name.
func rowStream(seed uint64, name string, row int) stream {
	h := mixBits(seed + 0x632be59bd9b4e019)
	for _, c := range []byte(name) {
		h = mixBits(h ^ uint64(c))
	}
	return stream(mixBits(h + uint64(row)))
}

// bell returns a whole number with mean 0: the sum of four uniform 16-bit numbers, nearly normal.
func (s *stream) bell() int32 {
	z := s.next()
	return int32(z&0xffff) + int32(z>>16&0xffff) + int32(z>>32&0xffff) + int32(z>>48) - 2*0xffff
}

// bellDeviation is bell's standard deviation: 2·sqrt((2^32 - 1) / 12).
const bellDeviation = 37837.227

// fill writes row's values to dst. Each is one whole number times one factor, so that it is the
// same on every machine.
func (t *tensor) fill(dst []float32, seed uint64, row int) {
	name, at := t.origin(row)
	s := rowStream(seed, name, at)
	switch t.role {
	case norm: // 1 ± 1/16, whole 1024ths
		for i := range dst {
			dst[i] = float32(1024+int32(s.next()%129)-64) * (1.0 / 1024)
		}
	default:
		scale := t.deviation() / bellDeviation
		for i := range dst {
			dst[i] = float32(s.bell()) * scale
		}
	}
	if t.skew != nil {
		t.skew.fill(t, dst, at)
	}
}

// deviation is the standard deviation of the weights. 1/sqrt(inputs) keeps the size of activations;
// the output projection spreads the logits wider, as trained models do.
func (t *tensor) deviation() float32 {
	d := float32(1 / math.Sqrt(float64(t.cols)))
	switch t.role {
	case bias:
		return 1.0 / 16
	case embedding:
		// Routers see above all which token it is, so that the choice of experts is as good as uniform over tokens.
		if t.routed {
			return 4
		}
	case output:
		return 3 * d
	}
	return d
}
