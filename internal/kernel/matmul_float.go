package kernel

import (
	"fmt"

	"github.com/spillway/spillway/internal/quant"
)

// floatTile is a tile of float products over k columns, a multiple of 8.
type floatTile struct {
	tile
	x, w             []float32
	xStride, wStride int
	k                int
	next             int // what to fetch meanwhile: from x[next] on
}

// floats multiplies the panel's columns with rows r0 to r1 of activations.
func (p *panel) floats(r0, r1 int) {
	j := p.j
	k := min(p.to, (j.w.Cols+7)&^7) - p.at
	w := p.s.floats(panelRows * k)
	for i := range p.n {
		p.decode(w[i*k:(i+1)*k], i)
	}
	t := &p.s.tiles.float
	p.begin(&t.tile)
	t.k, t.xStride, t.wStride = k, j.a.Stride, k
	for r := r0; r < r1; r += tileRows {
		nx := min(tileRows, r1-r)
		t.x = j.a.F32[r*j.a.Stride+p.at:]
		for i := 0; i < p.n; i += 4 {
			p.move(&t.tile, r0, r, i, nx)
			t.w, t.next = w[i*k:], 0
			if q := nx + i/4; q < 2*nx && r+q < r1 {
				t.next = q * j.a.Stride
			}
			active.matmul.floatTile(t)
		}
	}
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
