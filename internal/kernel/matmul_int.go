package kernel

import "unsafe"

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

// short returns 1 for runs of 16.
func (f *intFormat) short() int {
	if f.run == 16 {
		return 1
	}
	return 0
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
	ahead            ahead // of a wide tile
}

// integers multiplies the panel's columns with rows r0 to r1 of activations.
func (p *panel) integers(r0, r1 int) {
	n := (p.to - p.at) / groupValues
	w := p.s.groups(panelRows * n)
	if active.matmul.pieces != nil {
		p.unpackPieces(w, n)
	} else {
		for i := range p.n {
			p.unpack(w[i*n:(i+1)*n], i)
		}
	}
	for b := r0; b < r1; b += actBlock {
		for at := 0; at < n; at += sliceGroups {
			p.intSlice(w, n, at, min(at+sliceGroups, n), p.kept(r0, b), b, min(b+actBlock, r1))
		}
	}
}

// intSlice multiplies groups at to end of the panel w, of n groups, with rows b to e of activations.
func (p *panel) intSlice(w []panelGroup, n, at, end, kept, b, e int) {
	j, t, stride := p.j, &p.s.tiles.integer, p.j.a.Stride/groupValues
	p.begin(&t.tile, at*groupValues, end*groupValues)
	t.format, t.n, t.xStride, t.wStride = j.format, end-at, stride, n
	t.x = j.a.groups[b*stride+p.at/groupValues+at:]
	for i := 0; i < p.n; i += t.width {
		t.w = w[i*n+at:]
		if active.matmul.pieces != nil {
			t.w = w[i*n+tileWeights*at:]
		}
		p.move(&t.tile, kept, b, i, e-b)
		active.matmul.intTile(t)
	}
}

// unpackPieces unpacks the panel's part of its rows, n groups each, to pieces.
func (p *panel) unpackPieces(w []panelGroup, n int) {
	ops, pair := active.matmul.pieces, p.j.pair
	for i := 0; i < p.n; i += 2 {
		tile := w[i/tileWeights*tileWeights*n:]
		dst := unsafe.Add(unsafe.Pointer(&tile[0]), i%tileWeights*32)
		second := min(i+1, p.n-1)
		if pair != nil {
			p.unpackPair(pair, dst, p.source(i), p.source(second), n)
			continue
		}
		row := unsafe.Slice((*panelGroup)(unsafe.Pointer(&p.s.row()[0])), n)
		pieces := n * int(unsafe.Sizeof(panelGroup{})) / 32
		p.unpack(row, i)
		ops.interleave((*byte)(dst), bytePtr(&row[0]), pieces)
		p.unpack(row, second)
		ops.interleave((*byte)(unsafe.Add(dst, 32)), bytePtr(&row[0]), pieces)
	}
}

// unpackPair unpacks whole groups by f, and a last one from padded copies, to n groups.
func (p *panel) unpackPair(f pairFunc, dst unsafe.Pointer, first, second []byte, n int) {
	group := p.j.format.bytes
	whole := len(first) / group
	if whole > 0 {
		f((*byte)(dst), &first[0], &second[0], whole)
	}
	if whole < n {
		a, b := p.s.tail()[:group], p.s.tail()[group:2*group]
		padTail(a, first[whole*group:])
		padTail(b, second[whole*group:])
		f((*byte)(unsafe.Add(dst, whole*tileWeights*int(unsafe.Sizeof(panelGroup{})))), &a[0], &b[0], 1)
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

func bytePtr[T any](p *T) *byte { return (*byte)(unsafe.Pointer(p)) }

func padTail(dst, src []byte) {
	n := copy(dst, src)
	clear(dst[n:])
}
