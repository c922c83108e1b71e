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
	cheap  bool // two rows of activations do better unpacking each for itself
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

// intTile is a tile of integer products over n groups of columns.
type intTile struct {
	tile
	format           *intFormat
	x                []actGroup
	w                []panelGroup
	xStride, wStride int
	n                int
	next             int // what to fetch meanwhile: from x[next] on
}

// integers multiplies the panel's columns with rows r0 to r1 of activations.
func (p *panel) integers(r0, r1 int) {
	j := p.j
	n, stride := (p.to-p.at)/groupValues, j.a.Stride/groupValues
	w := p.s.groups(panelRows * n)
	for i := range p.n {
		p.unpack(w[i*n:(i+1)*n], i)
	}
	t := &p.s.tiles.integer
	p.begin(&t.tile)
	t.format, t.n, t.xStride, t.wStride = j.format, n, stride, n
	for r := r0; r < r1; r += 2 {
		nx := min(2, r1-r)
		t.x = j.a.groups[r*stride+p.at/groupValues:]
		for i := 0; i < p.n; i += 4 {
			p.move(&t.tile, r0, r, i, nx)
			t.w, t.next = w[i*n:], 0
			if q := nx + i/4; q < 2*nx && r+q < r1 {
				t.next = q * stride
			}
			active.matmul.intTile(t)
		}
	}
}

// unpack unpacks the panel's part of its row i.
func (p *panel) unpack(dst []panelGroup, i int) {
	if p.j.unpack != nil {
		p.j.unpack(dst, p.source(i), p.s)
	} else {
		p.j.format.unpackGo(dst, p.source(i), p.s)
	}
}

func intTileGo(t *intTile) {
	for r := range t.nx {
		for i := range t.nw {
			s := t.start(r, i)
			t.format.addGroups(s, t.w[i*t.wStride:][:t.n], t.x[r*t.xStride:][:t.n])
			t.finish(r, i)
		}
	}
}

// addGroups is the definition of an integer product: the integer sum T of each run is exact, becomes
// f32 once, and joins running sum (run mod 8) in rising order of runs.
func (f *intFormat) addGroups(s *sums, w []panelGroup, x []actGroup) {
	for i := range w {
		for r := range groupValues / f.run {
			f.addRun(&s[r%8], &w[i], &x[i], r)
		}
	}
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
