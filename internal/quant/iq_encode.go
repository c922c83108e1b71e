package quant

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sync"
)

// codebook finds points near to a vector: components are rounded to levels, and a table has the
// nearest point of every combination of levels.
type codebook struct {
	dim    int
	levels int
	low    float32   // value of level 0
	step   float32   // between levels, nearly
	values []float32 // of all points, dim each
	near   []uint16
}

func newCodebook(dim int, levelValues []float32, values []float32) *codebook {
	n := len(levelValues)
	size := 1
	for range dim {
		size *= n
	}
	b := &codebook{dim: dim, levels: n, low: levelValues[0], step: (levelValues[n-1] - levelValues[0]) / float32(n-1), values: values}
	b.near = make([]uint16, size)
	v := make([]float32, dim)
	for code := range b.near {
		for i, rest := dim-1, code; i >= 0; i, rest = i-1, rest/n {
			v[i] = levelValues[rest%n]
		}
		b.near[code] = b.search(v)
	}
	return b
}

// search returns the point nearest to v.
func (b *codebook) search(v []float32) (best uint16) {
	bestLoss := float32(math.Inf(1))
	for p := 0; p < len(b.values); p += b.dim {
		var loss float32
		for i, x := range v {
			e := x - b.values[p+i]
			loss += float32(e * e)
		}
		if loss < bestLoss {
			best, bestLoss = uint16(p/b.dim), loss
		}
	}
	return best
}

// find returns a point near to x·inv + shift.
func (b *codebook) find(x []float32, inv, shift float32) uint16 {
	scale := inv / b.step
	shift = (shift-b.low)/b.step + 0.5
	code := 0
	for _, v := range x[:b.dim] {
		code = code*b.levels + level(float32(v*scale)+shift, b.levels-1)
	}
	return b.near[code]
}

func (b *codebook) point(i uint16) []float32 { return b.values[int(i)*b.dim : (int(i)+1)*b.dim] }

// fit returns the scale for values that are not negative; inverses are tried from the peak at the
// top level on.
func (b *codebook) fit(x []float32, factors []float32) float32 {
	inv := (b.low + float32(b.step*float32(b.levels-1))) * inverse(most(x))
	var best least
	for _, f := range factors {
		var sums least
		for at := 0; at < len(x); at += b.dim {
			v := x[at : at+b.dim]
			for i, q := range b.point(b.find(v, inv*f, 0)) {
				sums.add(v[i], q)
			}
		}
		if sums.xq > 0 && sums.gain() > best.gain() {
			best = sums
		}
	}
	return best.scale()
}

func flatten8(points []point8) []float32 {
	out := make([]float32, 0, 8*len(points))
	for _, p := range points {
		for _, v := range p {
			out = append(out, float32(v))
		}
	}
	return out
}

func flatten4(points []point4) []float32 {
	out := make([]float32, 0, 4*len(points))
	for _, p := range points {
		for _, v := range p {
			out = append(out, float32(v))
		}
	}
	return out
}

var (
	bookIQ2XXS = sync.OnceValue(func() *codebook { return newCodebook(8, []float32{8, 25, 43}, flatten8(gridIQ2XXS())) })
	bookIQ2XS  = sync.OnceValue(func() *codebook { return newCodebook(8, []float32{8, 25, 43}, flatten8(gridIQ2XS())) })
	bookIQ2S   = sync.OnceValue(func() *codebook { return newCodebook(8, []float32{8, 25, 43}, flatten8(gridIQ2S())) })
	bookIQ1    = sync.OnceValue(func() *codebook { return newCodebook(8, []float32{-1, 0, 1}, flatten8(gridIQ1())) })
	bookIQ3XXS = sync.OnceValue(func() *codebook {
		return newCodebook(4, []float32{4, 12, 20, 28, 36, 44, 52, 62}, flatten4(gridIQ3XXS()))
	})
	bookIQ3S = sync.OnceValue(func() *codebook {
		return newCodebook(4, []float32{1, 3, 5, 7, 9, 11, 13, 15}, flatten4(gridIQ3S()))
	})
)

// gridBlock is a super-block of IQ2 or IQ3: magnitudes from a code book, signs apart.
type gridBlock struct {
	book    *codebook
	run     int     // values that share a scale
	a, b    float32 // the scale of a run is d·(a + b·s), s in 0…15
	even    bool    // the number of minus signs in eight values is even
	factors []float32

	d     float32 // as a half holds it
	scale [16]uint8
	signs [32]uint8
	index [64]uint16
	mag   [kk]float32
}

var (
	factorsIQ2 = []float32{1, 0.9, 1.15, 1.3, 1.5}
	factorsIQ3 = []float32{1, 0.93, 1.08, 1.18}
)

// fit encodes x.
func (g *gridBlock) fit(x *[kk]float32) {
	for i := range g.signs {
		g.signs[i] = splitSigns((*[8]float32)(g.mag[8*i:]), (*[8]float32)(x[8*i:]), g.even)
	}
	var want [16]float32
	runs := kk / g.run
	for r := range runs {
		want[r] = g.book.fit(g.mag[r*g.run:(r+1)*g.run], g.factors)
	}
	g.d = roundHalf(most(want[:]) / (g.a + float32(15*g.b)))
	inv := inverse(g.d)
	for r := range runs {
		s := nearest((float32(want[r]*inv)-g.a)/g.b, 0, 15)
		g.scale[r] = uint8(s)
		runInv := inverse(g.d * (g.a + float32(g.b*float32(s))))
		for at := r * g.run; at < (r+1)*g.run; at += g.book.dim {
			g.index[at/g.book.dim] = g.book.find(g.mag[at:], runInv, 0)
		}
	}
}

// splitSigns returns the signs of eight values and stores their magnitudes. If the number of minus
// signs must be even, the smallest value gives way.
func splitSigns(mag, x *[8]float32, even bool) (signs uint8) {
	small := 0
	for i, v := range x {
		mag[i] = abs(v)
		if v < 0 {
			signs |= 1 << i
		}
		if mag[i] < mag[small] {
			small = i
		}
	}
	if even && bits.OnesCount8(signs)%2 != 0 {
		signs ^= 1 << small
		mag[small] = -mag[small]
	}
	return signs
}

func encodeIQ2XXS(dst []byte, src []float32) {
	g := gridBlock{book: bookIQ2XXS(), run: 32, a: 0.125, b: 0.25, even: true, factors: factorsIQ2}
	for ; len(src) >= kk; src, dst = src[kk:], dst[66:] {
		b := (*[66]byte)(dst)
		g.fit((*[kk]float32)(src))
		putHalf(b[:], g.d)
		for run := range 8 {
			word := uint32(g.scale[run]) << 28
			for i := range 4 {
				b[2+8*run+i] = uint8(g.index[4*run+i])
				word |= uint32(g.signs[4*run+i]&127) << (7 * i)
			}
			binary.LittleEndian.PutUint32(b[6+8*run:], word)
		}
	}
}

func encodeIQ2XS(dst []byte, src []float32) {
	g := gridBlock{book: bookIQ2XS(), run: 16, a: 0.125, b: 0.25, even: true, factors: factorsIQ2}
	for ; len(src) >= kk; src, dst = src[kk:], dst[74:] {
		b := (*[74]byte)(dst)
		g.fit((*[kk]float32)(src))
		putHalf(b[:], g.d)
		for i := range 32 {
			binary.LittleEndian.PutUint16(b[2+2*i:], g.index[i]|uint16(g.signs[i]&127)<<9)
		}
		g.putScales(b[66:])
	}
}

// putScales stores a nibble for each run.
func (g *gridBlock) putScales(b []byte) {
	for i := range b {
		b[i] = g.scale[2*i] | g.scale[2*i+1]<<4
	}
}

func encodeIQ2S(dst []byte, src []float32) {
	g := gridBlock{book: bookIQ2S(), run: 16, a: 0.125, b: 0.25, factors: factorsIQ2}
	for ; len(src) >= kk; src, dst = src[kk:], dst[82:] {
		b := (*[82]byte)(dst)
		g.fit((*[kk]float32)(src))
		putHalf(b[:], g.d)
		clear(b[66:74])
		for i := range 32 {
			b[2+i], b[34+i] = uint8(g.index[i]), g.signs[i]
			b[66+i/4] |= uint8(g.index[i]>>8) << (i % 4 * 2)
		}
		g.putScales(b[74:])
	}
}

func encodeIQ3XXS(dst []byte, src []float32) {
	g := gridBlock{book: bookIQ3XXS(), run: 32, a: 0.25, b: 0.5, even: true, factors: factorsIQ3}
	for ; len(src) >= kk; src, dst = src[kk:], dst[98:] {
		b := (*[98]byte)(dst)
		g.fit((*[kk]float32)(src))
		putHalf(b[:], g.d)
		for i, p := range g.index {
			b[2+i] = uint8(p)
		}
		for run := range 8 {
			word := uint32(g.scale[run]) << 28
			for i := range 4 {
				word |= uint32(g.signs[4*run+i]&127) << (7 * i)
			}
			binary.LittleEndian.PutUint32(b[66+4*run:], word)
		}
	}
}

func encodeIQ3S(dst []byte, src []float32) {
	g := gridBlock{book: bookIQ3S(), run: 32, a: 1, b: 2, factors: factorsIQ3}
	for ; len(src) >= kk; src, dst = src[kk:], dst[110:] {
		b := (*[110]byte)(dst)
		g.fit((*[kk]float32)(src))
		putHalf(b[:], g.d)
		clear(b[66:74])
		for i, p := range g.index {
			b[2+i] = uint8(p)
			b[66+i/8] |= uint8(p>>8) << (i % 8)
		}
		copy(b[74:106], g.signs[:])
		g.putScales(b[106:])
	}
}
