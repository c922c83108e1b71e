package main

import "fmt"

// Sizes and offsets in bytes of the Go types actGroup and panelGroup, and of 256 int16 words.
const (
	wordsSize = 512

	actScale  = 512
	actOffset = 544
	actSum32  = 576
	actSum16  = 608
	actSize   = 672

	panelScale = 512
	panelMin   = 576
	panelSize  = 640
)

// wordAt is where the words keep the 8 values of even or odd index of unit 16 of a group, see wordPlaces.
func wordAt(unit, odd int) int { return unit%8*64 + odd*32 + unit/8*16 }

type tileKind struct {
	run    int
	offset bool
}

func (k tileKind) name(n int) string {
	s := ""
	if k.offset {
		s = "Offset"
	}
	return fmt.Sprintf("intTile%dx%d%sNEON", k.run, n, s)
}

// tileRegs are the registers of an integer tile: general ones for the groups of activations and weights,
// and for walking over their integers.
type tileRegs struct{ x, w, xq, wq []int }

// intTile continues the running sums of n rows of activations with 2 rows of a panel. Four registers sum
// an output's products: each pair of lanes belongs to one block of 32 (see lanePlaces).
func (a *asm) intTile(k tileKind, n int) {
	const params = "x *byte, xStride int, w *byte, wStride int, n int, sums *float32"
	a.fn(k.name(n), "continues the running sums, 2 of 4 for each row of x, over n groups; strides are in bytes.", params, 0, func() {
		a.args(params)
		t := tileRegs{x: []int{0, 6}[:n], w: []int{2, 7}, xq: []int{8, 9}[:n], wq: []int{10, 11}}
		if n == 2 {
			a.g("ADD R1, R0, R6")
		}
		a.g("ADD R3, R2, R7")
		a.loop("R4", func() {
			for i := range t.x {
				a.g("MOVD R%d, R%d", t.x[i], t.xq[i])
			}
			for i := range t.w {
				a.g("MOVD R%d, R%d", t.w[i], t.wq[i])
			}
			if k.run == 32 {
				a.tileProducts(t, 16)
				a.tileSums(n, 0)
				a.tileScales32(k, t)
			} else {
				a.tileProducts(t, 8)
				a.tileSums(n, 24)
				a.tileProducts(t, 8)
				a.tileSums(n, 0)
				a.tileScales16(k, t)
			}
			for _, r := range t.x {
				a.g("ADD $%d, R%d, R%d", actSize, r, r)
			}
			for _, r := range t.w {
				a.g("ADD $%d, R%d, R%d", panelSize, r, r)
			}
		})
	})
}

// tileProducts sums count · 16 products of each output: output o's in V(4o) to V(4o+3).
func (a *asm) tileProducts(t tileRegs, count int) {
	n := len(t.x)
	for i := range v(8 * n) {
		a.zero(i)
	}
	const unroll = 4
	a.g("MOVD $%d, R13", count/unroll)
	a.loop("R13", func() {
		for range unroll {
			for r, p := range t.xq {
				a.ldpNext(v(16+2*r), v(17+2*r), p)
			}
			for i, p := range t.wq {
				a.ldpNext(v(20+2*i), v(21+2*i), p)
			}
			for r := range t.x {
				for i := range t.w {
					to, x, w := v(4*(2*r+i)), v(16+2*r), v(20+2*i)
					a.o("smlal.4s", to, w, x)
					a.o("smlal2.4s", to+1, w, x)
					a.o("smlal.4s", to+2, w+1, x+1)
					a.o("smlal2.4s", to+3, w+1, x+1)
				}
			}
		}
	})
}

// tileSums joins the lanes of an output's four registers to eight sums in V(to+2o) and V(to+2o+1).
func (a *asm) tileSums(n int, to v) {
	for o := range v(2 * n) {
		a.o("addp.4s", to+2*o, 4*o, 4*o+1)
		a.o("addp.4s", to+2*o+1, 4*o+2, 4*o+3)
	}
}

// tileScales32 joins the integer sums V(2o), V(2o+1) of runs of 32 to the running sums.
func (a *asm) tileScales32(k tileKind, t tileRegs) {
	for i, w := range t.w {
		a.ldp(16, 17, w, panelScale)
		if k.offset {
			a.ldp(18, 19, w, panelMin)
		}
		for r, x := range t.x {
			sum, at := v(2*(2*r+i)), 32*(4*r+i)
			a.ldp(20, 21, x, actScale)
			a.ldp(24, 25, 5, at)
			for half := range v(2) {
				a.u("scvtf.4s", sum+half, sum+half)
				a.o("fmul.4s", 20+half, 16+half, 20+half)
				a.o("fmla.4s", 24+half, sum+half, 20+half)
			}
			if k.offset {
				a.ldp(22, 23, x, actOffset)
				a.o("fmls.4s", 24, 18, 22)
				a.o("fmls.4s", 25, 19, 23)
			}
			a.stp(24, 25, 5, at)
		}
	}
}

// tileScales16 does so with runs of 16: those of even number in V(24+2o), V(25+2o), the others in V(2o),
// V(2o+1).
func (a *asm) tileScales16(k tileKind, t tileRegs) {
	for i, w := range t.w {
		for r, x := range t.x {
			out, at := v(2*r+i), 32*(4*r+i)
			a.ldp(22, 23, 5, at)
			for half := range v(2) { // runs 0 to 7, then 8 to 15
				even, odd := 24+2*out+half, 2*out+half
				a.o("zip1.4s", 8, even, odd)
				a.o("zip2.4s", 9, even, odd)
				a.ldp(12, 13, w, panelScale+32*int(half))
				a.ldq(16, x, actScale+16*int(half))
				a.o("zip1.4s", 14, 16, 16)
				a.o("zip2.4s", 15, 16, 16)
				if k.offset {
					a.ldp(16, 17, w, panelMin+32*int(half))
					a.ldp(18, 19, x, actSum16+32*int(half))
				}
				for q := range v(2) {
					a.joinRun16(k.offset, 22+q, 8+q, 12+q, 14+q, 16+q, 18+q)
				}
			}
			a.stp(22, 23, 5, at)
		}
	}
}

// joinRun16 joins the integer sums of 4 runs to the running sums: s = fma(T, ws·as, s), and with an offset
// s = fma(−min, as·A, s).
func (a *asm) joinRun16(offset bool, s, sum, ws, as, least, acts v) {
	a.u("scvtf.4s", sum, sum)
	a.o("fmul.4s", ws, ws, as)
	a.o("fmla.4s", s, sum, ws)
	if offset {
		a.u("scvtf.4s", acts, acts)
		a.o("fmul.4s", acts, acts, as)
		a.o("fmls.4s", s, least, acts)
	}
}
