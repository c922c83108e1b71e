package kernel

// The pure Go steps of attention: the definition that assembly equals bit for bit.

// attnRows are the keys or values of a tile: four groups of 16 rows that lie stride bytes apart. next is
// what will be read after each group; loops may ask for it. Assembly knows that it lies behind group.
type attnRows struct {
	typ    CacheType
	stride int
	group  [attnTile / attnGroup][]byte
	next   [attnTile / attnGroup][]byte
}

// row returns n values of row r from value i on, for rows of f32.
func (a *attnRows) row(r, i, n int) []byte {
	return a.group[r/attnGroup][r%attnGroup*a.stride+4*i:][:4*n]
}

// queryAt is where value i of a line lies: lines come in blocks of four, eight values of each in turn.
func queryAt(line, i, dim int) int { return line/4*4*dim + i/8*32 + line%4*8 + i%8 }

// attnScoresGo writes the dot products of n query vectors with the keys of the groups [lo, hi) to
// dst[line·64 + key]. Vectors have dim values, a multiple of 8, and keys are f32.
func attnScoresGo(dst, q []float32, k *attnRows, lo, hi, n, dim int) {
	for line := range n {
		x := q[queryAt(line, 0, dim):]
		for key := lo * attnGroup; key < hi*attnGroup; key++ {
			y := k.row(key, 0, dim)
			var s [8]float32
			for i := 0; i < dim; i += 8 {
				a, b := x[queryAt(0, i, dim):][:8], y[4*i:][:32]
				for j := range s {
					s[j] = fma32(a[j], f32At(b[4*j:]), s[j])
				}
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
// the result to o: width columns, lines stride apart. Values are f32.
func attnValuesGo(o, p []float32, v *attnRows, lo, hi []int32, alpha, beta []float32, n, stride, width int) {
	var buf [attnGroup]float32
	for line := range n {
		from, to := int(lo[line]), int(hi[line])
		if from >= to {
			continue
		}
		for col := 0; col < width; col += len(buf) {
			t := buf[:min(len(buf), width-col)]
			clear(t)
			for i := from; i < to; i++ {
				x, y := p[line*attnTile+i], v.row(i, col, len(t))
				for c := range t {
					t[c] = fma32(x, f32At(y[4*c:]), t[c])
				}
			}
			attnFoldGo(o[line*stride+col:][:len(t)], t, alpha[line], beta[line])
		}
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

// widenGo widens rows of n values that lie stride bytes apart; dst has no gaps.
func widenGo(t CacheType, dst []float32, src []byte, rows, n, stride int) {
	for r := range rows {
		widenRowGo(t, dst[r*n:][:n], src[r*stride:])
	}
}
