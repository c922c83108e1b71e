package kernel

import "unsafe"

// wideOps are tiles of a whole panel's rows of weights, for many rows of activations. Their panels are in an order
// of their own, into which those of pieces are brought.
type wideOps struct {
	// arrange brings groups of 16 rows of pieces to half a panel, for runs of 32 and of 16.
	arrange [2]func(dst, src *byte, octet, n int)
	// from is how many rows of activations are worth the arrangement, for runs of 32 and of 16.
	from [2]int
	// bytes of a panel's groups, for runs of 32 and of 16.
	bytes [2]int
	tile  func(t *intTile)
}

const (
	wideRows = 12 // the most rows of activations of a tile
	halfRows = panelRows / 2
	stageMax = 3 // groups of half a panel that are unpacked at a time, at most
)

// wideIntegers is integers with wide tiles.
func (p *panel) wideIntegers(r0, r1 int) {
	n := (p.to - p.at) / groupValues
	w := p.s.groups(panelRows * n)
	p.fillWide(bytePtr(&w[0]), n)
	j, t, stride := p.j, &p.s.tiles.integer, p.j.a.Stride/groupValues
	p.begin(&t.tile, 0, p.to-p.at)
	t.width = panelRows
	t.format, t.n, t.xStride, t.w = j.format, n, stride, w
	t.ahead = p.ahead()
	for r := r0; r < r1; r += wideRows {
		t.x = j.a.groups[r*stride+p.at/groupValues:]
		p.move(&t.tile, p.kept(r0, r), r, 0, min(wideRows, r1-r))
		active.matmul.wide.tile(t)
	}
}

// fillWide unpacks the panel's part of its rows, n groups each. Pieces lie behind the panel, where f32 would have
// room.
func (p *panel) fillWide(w *byte, n int) {
	wide, short := active.matmul.wide, p.j.format.short()
	stage := p.s.groups(panelBytes(p.j.w.Cols) / intGroup)[panelRows*n:]
	step := min(len(stage)/halfRows, stageMax)
	for i := 0; i < p.n; i += halfRows {
		half := panel{j: p.j, s: p.s, lo: p.lo + i, n: min(halfRows, p.n-i)}
		for g := 0; g < n; g += step {
			m := min(step, n-g)
			half.at = p.at + g*groupValues
			half.to = half.at + m*groupValues
			half.unpackPieces(stage, m)
			dst := unsafe.Add(unsafe.Pointer(w), g*wide.bytes[short]+i*4)
			wide.arrange[short]((*byte)(dst), bytePtr(&stage[0]), m*tileWeights*intGroup, m)
		}
	}
}

// ahead is stored weights that are fetched from memory while tiles are computed. Otherwise they would be waited for
// when they are unpacked, and memory would have nothing to do the rest of the time.
type ahead struct{ bytes []byte }

// runBytes are fetched in a run of a tile.
const runBytes = 384

// ahead returns the part of the rows that this thread is likely to unpack next that falls to the panel's columns.
func (p *panel) ahead() ahead {
	j := p.j
	lo := p.lo + panelRows*j.threads
	hi := min(lo+panelRows, j.w.Rows)
	if lo >= hi {
		return ahead{}
	}
	rows, cols := j.w.Data[lo*j.rowBytes:hi*j.rowBytes], PaddedCols(j.w.Cols)
	return ahead{rows[len(rows)*p.at/cols : len(rows)*p.to/cols]}
}

// at returns where to fetch from: anything that is there if there is nothing to fetch.
func (a *ahead) at() *byte {
	if len(a.bytes) == 0 {
		return nil
	}
	return &a.bytes[0]
}

func (a *ahead) step() int {
	if len(a.bytes) == 0 {
		return 0
	}
	return runBytes
}

// move notes that n runs have been fetched.
func (a *ahead) move(n int) { a.bytes = a.bytes[min(n*runBytes, len(a.bytes)):] }
