package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Tiles of AVX-512 take up to 6 or 4 rows of activations and 8 rows of weights. Panels hold those together:
// 32 bytes of each row, then the next 32 bytes of each. A vector has a pair of rows, and activations are
// broadcast to both halves.
const (
	pairsAtOnce = 4
	pieceStride = 8 * 32
)

// rowPointers returns the first bytes of rows.
func rowPointers(first, stride Register, n int) (rows []Mem, bases []Register) {
	bases = []Register{first}
	for i := 3; i < n; i += 3 {
		far := GP64()
		LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, far)
		ADDQ(bases[i/3-1], far)
		bases = append(bases, far)
	}
	for i := range n {
		m := Mem{Base: bases[i/3]}
		if i%3 > 0 {
			m.Index, m.Scale = stride, uint8(i%3)
		}
		rows = append(rows, m)
	}
	return rows, bases
}

// tile512 is what both kinds of tiles have in common.
type tile512 struct {
	nx       int
	x        []Mem
	w        Register
	advanced []Register // pointers that move along the rows
	next     []Mem      // rows of activations to fetch meanwhile
	nexts    int        // how many pointers they have
	sums     Mem
}

const tileSignature = "func(x *%[1]s, xStride int, w *%[1]s, wStride int, n int, next *%[1]s, sums *float32, mode int, out *float32, outStride int)"

func newTile512(name, element string, nx int, unit string) (t tile512, n, mode Register) {
	TEXT(name, 0, fmt.Sprintf(tileSignature, element)) // its frame may be larger than NOSPLIT allows
	Pragma("noescape")
	Doc(strings.Split(fmt.Sprintf(name+" computes %d × 8 outputs over n ≥ 1 %s, and fetches %d rows from next on.\n"+
		"Strides are in bytes; wStride is not used. Mode is as in tile.mode.", nx, unit, nx), "\n")...)
	xStride := param("xStride")
	var xs []Register
	t.nx = nx
	t.x, xs = rowPointers(param("x"), xStride, nx)
	t.w = param("w")
	var nexts []Register
	t.next, nexts = rowPointers(param("next"), xStride, nx)
	t.advanced = append(xs, nexts...)
	t.sums = mem(param("sums"), 0)
	return t, param("n"), param("mode")
}

// fetch asks for bytes from at to to of the rows of activations that come next.
func (t *tile512) fetch(from, to int) {
	for r := range t.nx {
		for at := from; at < to; at += 64 {
			PREFETCHT0(t.next[r].Offset(at))
		}
	}
}

func broadcast256(m Mem) VecVirtual {
	z := ZMM()
	VBROADCASTF64X4(m, z)
	return z
}

func load512(m Mem) VecVirtual {
	z := ZMM()
	VMOVUPS(m, z)
	return z
}

func zero512() VecVirtual {
	z := ZMM()
	VPXORD(z, z, z)
	return z
}

// totals8 stores the totals of 4 pairs of rows.
func totals8(s []VecVirtual, out Mem) {
	halves := func(a, b VecVirtual) VecVirtual {
		lo, hi := ZMM(), ZMM()
		VSHUFF32X4(U8(0x88), b, a, lo)
		VSHUFF32X4(U8(0xdd), b, a, hi)
		VADDPS(hi, lo, lo) // p0 to p3 of 4 rows
		return lo
	}
	u, v := halves(s[0], s[1]), halves(s[2], s[3])
	a, b := ZMM(), ZMM()
	VSHUFPS(U8(0x44), v, u, a)
	VSHUFPS(U8(0xee), v, u, b)
	VADDPS(b, a, a) // p0+p2, p1+p3 of a row of u, of a row of v
	VSHUFPS(U8(0xb1), a, a, b)
	VADDPS(b, a, a)
	VMOVDQU32(constant512("every2nd", 0, 4, 8, 12, 2, 6, 10, 14), b)
	VPERMPS(a, b, a)
	VMOVUPS(a.AsY(), out)
}

// floatTile512 emits a tile of nx rows of activations and 8 rows of f32 weights.
func floatTile512(nx int) {
	t, n, mode := newTile512(fmt.Sprintf("floatTile%dAVX512", nx), "float32", nx, "times 8 values")
	acc := make([][]VecVirtual, nx)
	for r := range acc {
		for range pairsAtOnce {
			acc[r] = append(acc[r], zero512())
		}
	}
	at := func(r, p int) Mem { return t.sums.Offset(64 * (pairsAtOnce*r + p)) }
	TESTQ(U32(1), mode)
	JZ(LabelRef("begin"))
	for r := range acc {
		for p := range acc[r] {
			VMOVUPS(at(r, p), acc[r][p])
		}
	}
	step := func(k int) {
		var w [pairsAtOnce]VecVirtual
		for p := range w {
			w[p] = load512(t.weights(p, k))
		}
		for r := range nx {
			x := broadcast256(t.x[r].Offset(32 * k))
			for p := range w {
				VFMADD231PS(w[p], x, acc[r][p])
			}
		}
	}
	Label("begin")
	TESTQ(U32(1), n)
	JZ(LabelRef("even"))
	step(0)
	t.advance(32, pieceStride)
	DECQ(n)
	JZ(LabelRef("done"))
	Label("even")
	SHRQ(U8(1), n)
	loop("loop", n, func() { // a cache line of activations
		t.fetch(0, 64)
		step(0)
		step(1)
		t.advance(64, 2*pieceStride)
	})
	Label("done")
	TESTQ(U32(2), mode)
	JZ(LabelRef("totals"))
	for r := range acc {
		for p := range acc[r] {
			VMOVUPS(acc[r][p], at(r, p))
		}
	}
	end()
	Label("totals")
	out, outStride := param("out"), param("outStride")
	for r := range acc {
		totals8(acc[r], mem(out, 0))
		if r < nx-1 {
			ADDQ(outStride, out)
		}
	}
	end()
}

// advance moves the pointers by x bytes of activations and w bytes of weights.
func (t *tile512) advance(x, w int) {
	for _, p := range t.advanced {
		ADDQ(U32(uint32(x)), p)
	}
	ADDQ(U32(uint32(w)), t.w)
}

// weights returns piece k of pair p.
func (t *tile512) weights(p, k int) Mem { return mem(t.w, pieceStride*k+64*p) }

// intTile512 is a tile of integer products. Running sums, 64 bytes a pair of outputs, lie in memory.
type intTile512 struct {
	tile512
	tileKind
	even Mem // sums of runs of even index, where those are of 16
}

// Pieces of 8 panel groups.
const (
	pieceScale = panelScale / 32
	pieceMin   = panelMin / 32
	octetSize  = 8 * panelSize
)

func (k tileKind) name512(nx int) string {
	s := fmt.Sprintf("intTile%dx%d", k.run, nx)
	if k.offset {
		s += "Offset"
	}
	return s + "AVX512"
}

func emitIntTile512(kind tileKind, nx int) {
	base, n, mode := newTile512(kind.name512(nx), "byte", nx, "groups")
	t := intTile512{tile512: base, tileKind: kind}
	if kind.run == 16 {
		t.even = AllocLocal(64 * pairsAtOnce * nx)
	}
	TESTQ(U32(1), mode)
	JNZ(LabelRef("group"))
	zero := zero512()
	for i := range pairsAtOnce * nx {
		VMOVUPS(zero, t.sums.Offset(64*i))
	}
	loop("group", n, func() {
		t.fetch(0, actSize)
		if kind.run == 32 {
			t.fold32(t.multiply(0, 16))
		} else {
			sums := t.multiply(0, 8)
			for i, z := range sums {
				VMOVUPS(z, t.even.Offset(64*i))
				VPXORD(z, z, z)
			}
			t.addProducts(sums, 8, 16)
			t.fold16(sums)
		}
		t.advance(actSize, octetSize)
	})
	TESTQ(U32(2), mode)
	JZ(LabelRef("totals"))
	end()
	Label("totals")
	out, outStride := param("out"), param("outStride")
	for r := range nx {
		var s []VecVirtual
		for p := range pairsAtOnce {
			s = append(s, load512(t.sums.Offset(64*(r*pairsAtOnce+p))))
		}
		totals8(s, mem(out, 0))
		if r < nx-1 {
			ADDQ(outStride, out)
		}
	}
	end()
}

// multiply returns the products of vectors from to to of the group, by output.
func (t *intTile512) multiply(from, to int) (sums []VecVirtual) {
	for range t.nx * pairsAtOnce {
		sums = append(sums, zero512())
	}
	t.addProducts(sums, from, to)
	return sums
}

func (t *intTile512) addProducts(sums []VecVirtual, from, to int) {
	for v := from; v < to; v++ {
		var xs []VecVirtual
		for r := range t.nx {
			xs = append(xs, broadcast256(t.x[r].Offset(32*v)))
		}
		for p := range pairsAtOnce {
			w := load512(t.weights(p, v))
			for r, x := range xs {
				VPDPWSSD(w, x, sums[r*pairsAtOnce+p])
			}
		}
	}
}

func (t *intTile512) fold32(sums []VecVirtual) {
	for r := range t.nx {
		scale := broadcast256(t.x[r].Offset(actScale))
		var offset VecVirtual
		if t.offset {
			offset = broadcast256(t.x[r].Offset(actOffset))
		}
		for p := range pairsAtOnce {
			t.addRuns(r, p, 0, sums[r*pairsAtOnce+p], scale, offset)
		}
	}
}

// addRuns adds 8 runs of both rows of pair p with the integer sums v; half selects the panel's scales.
func (t *intTile512) addRuns(r, p, half int, v, scale, offset VecVirtual) {
	at := t.sums.Offset(64 * (r*pairsAtOnce + p))
	f, s := ZMM(), load512(at)
	VCVTDQ2PS(v, v)
	VMULPS(t.weights(p, pieceScale+half), scale, f)
	VFMADD231PS(f, v, s)
	if t.offset {
		VFNMADD231PS(t.weights(p, pieceMin+half), offset, s)
	}
	VMOVUPS(s, at)
}

// fold16 adds a group's 16 runs: sums of even ones lie in t.even, odd are those of odd ones.
func (t *intTile512) fold16(odd []VecVirtual) {
	low, high := load512(constant512("join0", joinWords(0)...)), load512(constant512("join1", joinWords(1)...))
	for i, o := range odd {
		e, h := load512(t.even.Offset(64*i)), ZMM()
		VMOVDQU32(e, h)
		VPERMT2D(o, high, h)
		VMOVDQU32(h, t.even.Offset(64*i))
		VPERMT2D(o, low, e)
		VMOVDQU32(e, o)
	}
	for half := range 2 {
		spread := load512(constant512(fmt.Sprintf("spreadScale%d", half), spreadWords(half)...))
		for r := range t.nx {
			scale := ZMM()
			VPERMPS(load512(t.x[r].Offset(actScale)), spread, scale)
			var offset VecVirtual
			if t.offset {
				offset = ZMM()
				VCVTDQ2PS(broadcast256(t.x[r].Offset(actSum16+32*half)), offset)
				VMULPS(scale, offset, offset)
			}
			for p := range pairsAtOnce {
				v := odd[r*pairsAtOnce+p]
				if half == 1 {
					v = load512(t.even.Offset(64 * (r*pairsAtOnce + p)))
				}
				t.addRuns(r, p, half, v, scale, offset)
			}
		}
	}
}

// joinWords takes runs 8·half + i of both rows from sums of even and of odd ones.
func joinWords(half int) []uint32 {
	words := make([]uint32, 16)
	for k := range words {
		i := k % 8
		words[k] = uint32(k/8*8 + 4*half + i/2 + i%2*16)
	}
	return words
}

// spreadWords are the blocks of 32 of the runs of a half, twice.
func spreadWords(half int) []uint32 {
	words := make([]uint32, 16)
	for k := range words {
		words[k] = uint32(4*half + k%8/2)
	}
	return words
}
