package kernel

import (
	"fmt"
	"unsafe"

	"github.com/spillway/spillway/internal/quant"
)

// floatTile is a tile of float products over k columns, a multiple of 8.
type floatTile struct {
	tile
	x, w             []float32
	xStride, wStride int
	k                int
}

// floats multiplies the panel's columns with rows r0 to r1 of activations.
func (p *panel) floats(r0, r1 int) {
	k := min(p.to, (p.j.w.Cols+7)&^7) - p.at
	w := p.s.floats(panelRows * k)
	p.fillFloats(w, k)
	for b := r0; b < r1; b += actBlock {
		for at := 0; at < k; at += sliceFloats {
			p.floatSlice(w, k, at, min(at+sliceFloats, k), p.kept(r0, b), b, min(b+actBlock, r1))
		}
	}
}

// floatSlice multiplies columns at to end of the panel w, of k columns, with rows b to e of activations.
func (p *panel) floatSlice(w []float32, k, at, end, kept, b, e int) {
	j, t := p.j, &p.s.tiles.float
	p.begin(&t.tile, at, end)
	t.k, t.xStride, t.wStride = end-at, j.a.Stride, k
	t.x = j.a.F32[b*j.a.Stride+p.at+at:]
	for i := 0; i < p.n; i += t.width {
		t.w = p.slice(w, k, i, at)
		p.move(&t.tile, kept, b, i, e-b)
		active.matmul.floatTile(t)
	}
}

// slice returns a panel of rows of k values from value at of row i on, the first of a tile.
func (p *panel) slice(w []float32, k, i, at int) []float32 {
	if active.matmul.pieces != nil {
		at *= tileWeights
	}
	return w[i*k+at:]
}

// fillFloats decodes the panel's part of its rows, of k values each.
func (p *panel) fillFloats(w []float32, k int) {
	pieces := active.matmul.pieces
	for i := range p.n {
		if pieces == nil {
			p.decode(w[i*k:(i+1)*k], i)
			continue
		}
		dst, at := w[i/tileWeights*tileWeights*k+i%tileWeights*8:], 0
		if f := pieces.decode[p.j.w.Type]; f != nil {
			if at = min(k, p.j.w.Cols-p.at) &^ 7; at > 0 {
				f(&dst[0], &p.source(i)[0], at/8)
			}
		}
		if at < k {
			p.decodePieces(dst[tileWeights*at:], i, at, k)
		}
	}
}

// decodePieces decodes values from at to to of row i of the panel to pieces of dst.
func (p *panel) decodePieces(dst []float32, i, at, to int) {
	row := p.s.row()
	rest := unsafe.Slice((*float32)(unsafe.Pointer(&row[0])), to-at)
	n, src := min(to, p.j.w.Cols-p.at)-at, p.source(i)
	if at > 0 { // then values are not in blocks
		src = src[at*p.j.w.Type.BlockBytes():]
	}
	if p.j.decode != nil {
		p.j.decode(rest[:n], src)
	} else {
		mustDecode(p.j.w.Type, rest[:n], src)
	}
	clear(rest[n:])
	active.matmul.pieces.interleave(bytePtr(&dst[0]), &row[0], (to-at)/8)
}

// decode decodes the panel's part of its row i and pads it with zeros.
func (p *panel) decode(dst []float32, i int) {
	n, src := min(len(dst), p.j.w.Cols-p.at), p.source(i)
	if p.j.decode != nil {
		p.j.decode(dst[:n], src)
	} else {
		mustDecode(p.j.w.Type, dst[:n], src)
	}
	clear(dst[n:])
}

// mustDecode decodes the first values of src that fill dst; sizes and type were checked before.
func mustDecode(t quant.Type, dst []float32, src []byte) {
	if err := quant.DecodeRow(t, dst, src); err != nil {
		panic(fmt.Sprintf("kernel: %v", err))
	}
}

func floatTileGo(t *floatTile) {
	for r := range t.nx {
		for i := range t.nw {
			s := t.start(r, i)
			s.addFloats(t.w[i*t.wStride:][:t.k], t.x[r*t.xStride:][:t.k])
			t.finish(r, i)
		}
	}
}

// addFloats is the definition of a float product: element k joins running sum k mod 8, in rising k,
// and the sums start at +0. Rows are padded with zeros to a multiple of 8.
func (s *sums) addFloats(w, x []float32) {
	for k := range w {
		s[k%8] = fma32(w[k], x[k], s[k%8])
	}
}

func (s *sums) total() float32 { return total((*[8]float32)(s)) }

// total adds 8 running sums in the order that docs/numerics.md fixes.
func total(s *[8]float32) float32 {
	return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}
