package kernel

func widenVec(t CacheType, dst []float32, src []byte, rows, n, stride int) {
	var f func(dst *float32, src *byte, rows, n, stride int)
	switch t {
	case CacheF16:
		f = widenF16NEON
	case CacheBF16:
		f = widenBF16NEON
	case CacheFP8:
		f = widenFP8NEON
	case CacheQ8:
		f = widenQ8NEON
	}
	if f == nil || rows == 0 || n == 0 || n%max(8, t.BlockValues()) != 0 {
		widenGo(t, dst, src, rows, n, stride)
		return
	}
	_, _ = dst[rows*n-1], src[(rows-1)*stride+t.RowBytes(n)-1]
	f(&dst[0], &src[0], rows, n, stride)
}

// attnScoresVec takes lines in blocks of four, but a single one alone. Keys are f32.
func attnScoresVec(dst, q []float32, k *attnRows, lo, hi, n, dim int) {
	f := attnScores4NEON
	if n == 1 {
		f = attnScores1NEON
	}
	blocks := (n + 3) / 4
	_, _ = dst[blocks*4*attnTile-1], q[blocks*4*dim-1]
	for g := lo; g < hi; g++ {
		keys := k.group[g]
		_ = keys[(attnGroup-1)*k.stride+4*dim-1]
		for b := range blocks {
			f(&dst[b*4*attnTile+g*attnGroup], &q[b*4*dim], &keys[0], k.stride, dim/8)
		}
	}
}

// attnSoftmaxVec takes the whole eighths of a range by vectors. Where NaN occurs Go finds the maximum, as
// the order in which numbers are compared then counts.
func attnSoftmaxVec(scores []float32, lo, hi []int32, m, l []float32, n int, scale float32) {
	var work softmaxWork
	for line := range n {
		s := scores[line*attnTile:][:attnTile]
		from, to := int(lo[line]), int(hi[line])
		if from != 0 || to != attnTile {
			clear(s[:from])
			clear(s[to:])
			m[line], l[line] = tileSoftmax(s, from, to, scale)
			continue
		}
		m[line], l[line] = work.whole(s, scale)
	}
}

// softmaxWork is what the loops write.
type softmaxWork struct {
	top float32
	sum [8]float32
}

// whole is tileSoftmax over all of a tile.
func (w *softmaxWork) whole(s []float32, scale float32) (m, l float32) {
	scaleMaxNEON(&s[0], len(s), &w.top, scale)
	m = w.top
	if m != m {
		m = s[0]
		for _, v := range s {
			if v > m {
				m = v
			}
		}
	}
	w.sum = [8]float32{}
	expSumNEON(&s[0], len(s), &w.sum, m)
	return m, total(&w.sum)
}

// attnValuesVec takes four lines that see the same positions over 16 columns at a time, single lines over
// 64. Values are f32.
func attnValuesVec(o, p []float32, v *attnRows, lo, hi []int32, alpha, beta []float32, n, stride, width int) {
	for line := 0; line < n; {
		block := 1
		if line+4 <= n && uniform(lo[line:line+4], hi[line:line+4]) {
			block = 4
		}
		if lo[line] < hi[line] {
			attnValuesLines(o[line*stride:], p[line*attnTile:], v, int(lo[line]), int(hi[line]), alpha[line:], beta[line:], block, stride, width)
		}
		line += block
	}
}

// attnValuesLines sums over the positions [lo, hi) for a block of 4 lines or 1, and joins the sums to o. The
// sums of 64 columns fill the registers: 16 for each of four lines, or 64 of one. width is a multiple of 16.
func attnValuesLines(o, p []float32, v *attnRows, lo, hi int, alpha, beta []float32, block, stride, width int) {
	first := lo / attnGroup
	for g := first; g*attnGroup < hi; g++ {
		_ = v.group[g][(attnGroup-1)*v.stride+4*width-1]
	}
	var sum [64]float32
	_ = p[(block-1)*attnTile+hi-1]
	for col := 0; col < width; {
		columns := 16
		switch { // called by name, so that sum stays on the stack
		case block == 4:
			attnValues4x16NEON(&sum[0], &p[lo], &v.group[first], lo%attnGroup, hi-lo, v.stride, 4*col)
		case width-col >= 64:
			columns = 64
			attnValues1x64NEON(&sum[0], &p[lo], &v.group[first], lo%attnGroup, hi-lo, v.stride, 4*col)
		default:
			attnValues1x16NEON(&sum[0], &p[lo], &v.group[first], lo%attnGroup, hi-lo, v.stride, 4*col)
		}
		for i := range block {
			attnFoldVec(o[i*stride+col:][:columns], sum[i*columns:][:columns], alpha[i], beta[i])
		}
		col += columns
	}
}

func attnFactorsVec(m, l, mt, lt, alpha, beta []float32, n int) {
	n = roundUp8(n) // the arrays are that long; what lies behind n is never read
	_, _, _, _, _, _ = m[n-1], l[n-1], mt[n-1], lt[n-1], alpha[n-1], beta[n-1]
	attnFactorsNEON(&m[0], &l[0], &mt[0], &lt[0], &alpha[0], &beta[0], n)
}

func attnFoldVec(o, add []float32, alpha, beta float32) {
	n := len(add)
	if alpha == -1 || n == 0 || n%8 != 0 {
		attnFoldGo(o, add, alpha, beta)
		return
	}
	_ = o[n-1]
	attnFoldNEON(&o[0], &add[0], n, alpha, beta)
}
