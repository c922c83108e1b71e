package kernel

// panelGroup is 256 weights of a row, unpacked: integers in the order of lanePlaces, and scale and
// offset of each run. Runs are of 16 or of 32 values; those of 32 fill the first 8 entries.
type panelGroup struct {
	q     [groupValues]int16
	scale [16]float32
	min   [16]float32 // what is subtracted from every weight of the run; 0 without offsets
}

// intFormat is a block format of the integer path.
type intFormat struct {
	run    int  // values that share a scale: 16 or 32
	bytes  int  // of 256 values
	offset bool // runs have a minimum
	// group unpacks up to 256 values in natural order; runs that src lacks stay zero.
	group func(g *rawGroup, src []byte)
}

// rawGroup is 256 weights in natural order.
type rawGroup struct {
	q          [groupValues]int16
	scale, min [16]float32
}

// unpackGo unpacks a row into whole groups; what the row lacks becomes runs of zeros.
func (f *intFormat) unpackGo(dst []panelGroup, src []byte, s workspace) {
	raw := s.raw()
	for i := range dst {
		*raw = rawGroup{}
		n := min(f.bytes, len(src))
		f.group(raw, src[:n])
		src = src[n:]
		for k, q := range raw.q {
			dst[i].q[lanePlaces[k]] = q
		}
		dst[i].scale, dst[i].min = raw.scale, raw.min
	}
}

// intTile is a tile of integer products: out[r*outStride+i] = row i of w · row r of x, of n groups.
type intTile struct {
	format    *intFormat
	x         []actGroup // rows of n groups, one after the other
	w         []panelGroup
	n         int
	nx, nw    int // up to 2 and 4 rows
	out       []float32
	outStride int
}

// intPanels unpacks rows lo to hi, a few at a time, and multiplies them with every row of activations.
func intPanels(j *product, s workspace, lo, hi int) {
	n := j.a.Stride / groupValues
	panel := s.groups(j.panel, n)
	t := intTile{format: j.format, n: n, outStride: j.outStride}
	for ; lo < hi; lo += j.panel {
		rows := min(j.panel, hi-lo)
		for i := range rows {
			j.unpack(panel[i*n:(i+1)*n], j.row(lo+i), s)
		}
		for r := 0; r < j.a.Rows; r += t.nx {
			t.nx = min(2, j.a.Rows-r)
			t.x = j.a.groups[r*n:]
			for i := 0; i < rows; i += t.nw {
				t.nw = min(4, rows-i)
				t.w = panel[i*n:]
				t.out = j.out[r*j.outStride+lo+i:]
				active.matmul.intTile(&t)
			}
		}
	}
}

func intTileGo(t *intTile) {
	for r := range t.nx {
		for i := range t.nw {
			t.out[r*t.outStride+i] = t.format.dot(t.w[i*t.n:][:t.n], t.x[r*t.n:][:t.n])
		}
	}
}

// dot is the definition of an integer product: the integer sum T of each run is exact, becomes f32
// once, and joins running sum (run mod 8) in rising order of runs.
func (f *intFormat) dot(w []panelGroup, x []actGroup) float32 {
	var s [8]float32
	for i := range w {
		for r := range groupValues / f.run {
			f.addRun(&s[r%8], &w[i], &x[i], r)
		}
	}
	return total(&s)
}

func (f *intFormat) addRun(s *float32, w *panelGroup, x *actGroup, r int) {
	sum, actSum := int32(0), x.sum32[r*f.run/32]
	if f.run == 16 {
		actSum = x.sum16[r]
	}
	for k := r * f.run; k < (r+1)*f.run; k++ {
		p := lanePlaces[k]
		sum += int32(w.q[p]) * int32(x.q[p])
	}
	scale := x.scale[r*f.run/32]
	*s = fma32(float32(sum), w.scale[r]*scale, *s)
	if f.offset {
		*s = fma32(-w.min[r], scale*float32(actSum), *s)
	}
}
