package kernel

type (
	widenFunc  = func(dst *float32, src *byte, rows, n, stride int)
	scoresFunc = func(dst, q *float32, rows *[]byte, groups, blocks, dim, stride int)
	valuesFunc = func(o, p *float32, rows *[]byte, lo, hi *int32, alpha, beta *float32, lines, ostride, stride, voff, soff int)
)

// cacheLoops are an instruction set's loops over rows of one type of the cache.
type cacheLoops struct {
	widen            widenFunc
	scores4, scores1 scoresFunc
	// Blocks of four lines over 64 columns (nil: none) and 16, single lines over both.
	values4x64, values4x16, values1x64, values1x16 valuesFunc
}

// cacheSet is those loops for every type; vector is the least number of values that widen takes.
type cacheSet struct {
	vector int
	loops  [cacheTypes + 1]cacheLoops
}

func (c *cacheSet) widen(t CacheType, dst []float32, src []byte, rows, n, stride int) {
	unit := max(c.vector, t.BlockValues())
	if rows == 0 || n == 0 || n%unit != 0 {
		widenGo(t, dst, src, rows, n, stride)
		return
	}
	_, _ = dst[rows*n-1], src[(rows-1)*stride+t.RowBytes(n)-1]
	c.loops[t].widen(&dst[0], &src[0], rows, n, stride)
}

func (c *cacheSet) scores(dst, q []float32, k *attnRows, lo, hi, n, dim int) {
	f, blocks := c.loops[k.typ].scores4, (n+3)/4
	if n == 1 {
		f = c.loops[k.typ].scores1
	}
	_, _ = dst[blocks*4*attnTile-1], q[blocks*4*dim-1]
	k.check(lo, hi, dim)
	f(&dst[lo*attnGroup], &q[0], &k.group[lo], hi-lo, blocks, dim, k.stride)
}

// check panics where a row would end behind its group.
func (a *attnRows) check(lo, hi, n int) {
	for _, g := range a.group[lo:hi] {
		_ = g[(attnGroup-1)*a.stride+a.typ.RowBytes(n)-1]
	}
}

func (c *cacheSet) values(o, p []float32, v *attnRows, lo, hi []int32, alpha, beta []float32, n, stride, width int) {
	if n > 1 {
		n = (n + 3) &^ 3
	}
	_, _ = o[(n-1)*stride+width-1], p[n*attnTile-1]
	_, _, _, _ = lo[n-1], hi[n-1], alpha[n-1], beta[n-1]
	for line := 0; line < n; {
		end := line + 4
		if end > n || !uniform(lo[line:end], hi[line:end]) {
			c.valueLines(o, p, v, lo, hi, alpha, beta, line, min(end, n), stride, width, 1)
			line = end
			continue
		}
		for end+4 <= n && uniform(lo[end:end+4], hi[end:end+4]) {
			end += 4
		}
		c.valueLines(o, p, v, lo, hi, alpha, beta, line, end, stride, width, 4)
		line = end
	}
}

// valueLines runs the lines [from, to) in blocks of 4 or 1, by chunks of columns.
func (c *cacheSet) valueLines(o, p []float32, v *attnRows, lo, hi []int32, alpha, beta []float32, from, to, stride, width, block int) {
	k := &c.loops[v.typ]
	wide, narrow := k.values4x64, k.values4x16
	if block == 1 {
		wide, narrow = k.values1x64, k.values1x16
	}
	for col := 0; col < width; {
		f, columns := narrow, 16
		if wide != nil && width-col >= 64 {
			f, columns = wide, 64
		}
		voff, soff := v.typ.column(col)
		f(&o[from*stride+col], &p[from*attnTile], &v.group[0], &lo[from], &hi[from], &alpha[from], &beta[from],
			to-from, 4*stride, v.stride, voff, soff)
		col += columns
	}
}

// column is where in a row a value lies, and for Q8 the scale of its block.
func (t CacheType) column(i int) (value, scale int) {
	if t == CacheQ8 {
		block := i / q8Values * q8Bytes
		return block + 2 + i%q8Values, block
	}
	return t.RowBytes(i), 0
}

var avx2Cache = &cacheSet{vector: 8, loops: [cacheTypes + 1]cacheLoops{
	CacheF32:  {widenF32AVX2, attnScores4F32AVX2, attnScores1F32AVX2, nil, attnValues4x16F32AVX2, attnValues1x64F32AVX2, attnValues1x16F32AVX2},
	CacheF16:  {widenF16AVX2, attnScores4F16AVX2, attnScores1F16AVX2, nil, attnValues4x16F16AVX2, attnValues1x64F16AVX2, attnValues1x16F16AVX2},
	CacheBF16: {widenBF16AVX2, attnScores4BF16AVX2, attnScores1BF16AVX2, nil, attnValues4x16BF16AVX2, attnValues1x64BF16AVX2, attnValues1x16BF16AVX2},
	CacheFP8:  {widenFP8AVX2, attnScores4FP8AVX2, attnScores1FP8AVX2, nil, attnValues4x16FP8AVX2, attnValues1x64FP8AVX2, attnValues1x16FP8AVX2},
	CacheQ8:   {widenQ8AVX2, attnScores4Q8AVX2, attnScores1Q8AVX2, nil, attnValues4x16Q8AVX2, attnValues1x64Q8AVX2, attnValues1x16Q8AVX2},
	cacheTile: {nil, attnScores4TileAVX2, attnScores1TileAVX2, nil, attnValues4x16TileAVX2, attnValues1x64TileAVX2, attnValues1x16TileAVX2},
}}
