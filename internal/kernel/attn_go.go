package kernel

import (
	"encoding/binary"
	"math"

	"github.com/spillway/spillway/internal/quant"
)

// The pure Go steps of attention: the definition that assembly equals bit for bit.

// attnScoresGo writes the dot products of n query vectors with 8 keys to dst[line·64 …]. Vectors have
// dim values, a multiple of 8.
func attnScoresGo(dst, q, k []float32, n, dim int) {
	for line := range n {
		x := q[line*dim:][:dim]
		for key := range 8 {
			y := k[key*dim:][:dim]
			var s [8]float32
			for i, v := range x {
				s[i&7] = fma32(v, y[i], s[i&7])
			}
			dst[line*attnTile+key] = total(&s)
		}
	}
}

// attnSoftmaxGo turns scores into probabilities over the positions [lo, hi) of each line, 0 outside,
// and sets the tile's maximum and sum; both are 0 for an empty range.
func attnSoftmaxGo(scores []float32, lo, hi []int32, m, l []float32, n int, scale float32) {
	for line := range n {
		s := scores[line*attnTile:][:attnTile]
		from, to := lo[line], hi[line]
		clear(s[:from])
		clear(s[to:])
		m[line], l[line] = tileSoftmax(s, int(from), int(to), scale)
	}
}

func tileSoftmax(s []float32, from, to int, scale float32) (m, l float32) {
	if from >= to {
		return 0, 0
	}
	for i := from; i < to; i++ {
		s[i] = float32(s[i] * scale)
		if i == from || s[i] > m {
			m = s[i]
		}
	}
	var sum [8]float32
	for i := from; i < to; i++ {
		s[i] = Exp(s[i] - m)
		sum[i&7] += s[i]
	}
	return m, total(&sum)
}

// attnFactorsGo joins the item (mt, lt) to the state (m, l) of each line.
func attnFactorsGo(m, l, mt, lt, alpha, beta []float32, n int) {
	for i := range n {
		switch {
		case lt[i] == 0:
			alpha[i], beta[i] = 1, 0
		case l[i] == 0:
			alpha[i], beta[i] = -1, 1
			m[i], l[i] = mt[i], lt[i]
		default:
			top := m[i]
			if mt[i] > top {
				top = mt[i]
			}
			alpha[i], beta[i] = Exp(m[i]-top), Exp(mt[i]-top)
			m[i], l[i] = top, fma32(l[i], alpha[i], float32(lt[i]*beta[i]))
		}
	}
}

// attnValuesGo sums probabilities times values over each line's range in rising position, and joins
// the result to o: width columns, lines stride apart.
func attnValuesGo(o, p, v []float32, lo, hi []int32, alpha, beta []float32, n, stride, width int) {
	var buf [64]float32
	for line := range n {
		from, to := int(lo[line]), int(hi[line])
		if from >= to {
			continue
		}
		t := buf[:width]
		clear(t)
		for i := from; i < to; i++ {
			x := p[line*attnTile+i]
			for c, y := range v[i*width:][:width] {
				t[c] = fma32(x, y, t[c])
			}
		}
		attnFoldGo(o[line*stride:][:width], t, alpha[line], beta[line])
	}
}

// attnFoldGo is o = o·α + add·β; o = add if α is −1.
func attnFoldGo(o, add []float32, alpha, beta float32) {
	if alpha == -1 {
		copy(o, add)
		return
	}
	for i, x := range add {
		o[i] = fma32(o[i], alpha, float32(x*beta))
	}
}

func divideGo(dst, x []float32, d float32) {
	for i, v := range x {
		dst[i] = v / d
	}
}

// widenF16Go widens rows of n binary16 values that lie srcStride apart; dst has no gaps.
func widenF16Go(dst []float32, src []byte, rows, n, srcStride int) {
	for r := range rows {
		d, s := dst[r*n:][:n], src[2*r*srcStride:]
		for i := range d {
			d[i] = quant.F16ToF32(binary.LittleEndian.Uint16(s[2*i:]))
		}
	}
}

func widenF32Go(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}
