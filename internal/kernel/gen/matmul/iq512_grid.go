package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// grid512 makes vectors of points. Indices that are not simply stored are put together in general
// registers, four at a time: to store a vector and to load its parts would take longer.
type grid512 struct {
	points Register
	size   int
	lanes  [3]Register // masks of the second to the fourth qword

	at     func(w Register, k int) index     // says where index k lies; or
	packed func(w Register, k int) GPVirtual // returns indices k to k+3, as words

	zero  VecVirtual
	signs *signMasks
}

// newGrid512 is for a format without signs, with them if they are given.
func newGrid512(points Register, size int, signs *signMasks) *grid512 {
	g := &grid512{points: points, size: size, signs: signs}
	for k := range g.lanes {
		g.lanes[k] = maskOf(2 << k)
	}
	if signs != nil {
		g.zero = ZMM()
		VPXORD(g.zero, g.zero, g.zero)
	}
	return g
}

// blocksOf are the blocks in the lanes of vectors 4h to 4h+3.
func blocksOf(h int) [4]int { return [4]int{2 * h, 2*h + 4, 2*h + 1, 2*h + 5} }

// words yields all vectors. Signs, if there are any, are bytes in the order of blocks.
func (g *grid512) words(w Register, signs VecVirtual, yield func(v int, z VecVirtual)) {
	if signs != nil {
		signs = blockLanes(signs)
	}
	next := g.indices(w)
	for v := range 8 {
		per := 8 / g.size
		y, high := YMM(), YMM() // points of 4 values: every second one
		for lane := range 4 {
			g.qword(y, lane, next(v, lane, 0), 0)
			if per == 2 {
				g.qword(high, lane, next(v, lane, 1), -4)
			}
		}
		if per == 2 {
			VPBLENDD(U8(0xaa), high, y, y)
		}
		z := ZMM()
		VPMOVSXBW(y, z)
		if signs != nil {
			VPSUBW(z, g.zero, g.mask(signs, v), z)
		}
		yield(v, z)
	}
}

// qword loads 8 bytes, from disp bytes after the point on, into one qword of y; the first one fills all.
func (g *grid512) qword(y VecVirtual, lane int, i GPVirtual, disp int) {
	at := Mem{Base: g.points, Index: i, Scale: uint8(g.size), Disp: disp}
	if lane == 0 {
		VPBROADCASTQ(at, y)
	} else {
		VPBROADCASTQ(at, g.lanes[lane-1], y)
	}
}

// indices returns a function that loads the index of a vector's point, or of its part; it must be
// called in rising order.
func (g *grid512) indices(w Register) func(v, lane, part int) GPVirtual {
	per := 8 / g.size
	var four [4]GPVirtual
	return func(v, lane, part int) GPVirtual {
		k := (blocksOf(v / 4)[lane]*4+v%4)*per + part
		if g.packed == nil {
			return g.at(w, k).load()
		}
		if k%4 == 0 {
			four[lane] = g.packed(w, k)
		}
		i := GP32()
		MOVWLZX(four[lane].As16(), i)
		if k%4 < 3 {
			SHRQ(U8(16), four[lane])
		}
		return i.As64().(GPVirtual)
	}
}

// blockLanes brings the dwords of even blocks into the low half, those of odd ones into the high half.
func blockLanes(signs VecVirtual) VecVirtual {
	t := YMM()
	VMOVDQU(constant("blockLanes", 0, 4, 2, 6, 1, 5, 3, 7), t)
	VPERMD(signs, t, t)
	return t
}

// mask returns the signs of vector v, from those that blockLanes returned.
func (g *grid512) mask(signs VecVirtual, v int) Register {
	t, k := YMM(), K()
	first := uint32(v/4*8+v%4) * 0x01010101
	second := first + 0x04040404
	VPSHUFB(constant(fmt.Sprint("signLanes", v), first, first, second, second), signs, t)
	VPTESTMB(g.signs.bits, t, k)
	return k
}

// spread4 returns four words: the low bits of x, as many as mask has, over the 4 bytes at m.
func spread4(m Mem, x, mask, bytes GPVirtual) GPVirtual {
	q := GP64()
	MOVL(m, q.As32())
	PDEPQ(bytes, q, q)
	PDEPQ(mask, x, x)
	ORQ(x, q)
	return q
}

// spreading returns the masks of spread4.
func spreading(high uint64) (mask, bytes GPVirtual) {
	mask, bytes = GP64(), GP64()
	MOVQ(U64(high*0x0001000100010001), mask)
	MOVQ(U64(0x00ff00ff00ff00ff), bytes)
	return mask, bytes
}

func bindIQ2XXS512(points Register) (words512Func, scales512Func) {
	g := newGrid512(points, 8, newSignMasks(true))
	g.at = func(w Register, k int) index { return index{at: mem(w, 2+k/4*8+k%4)} }
	var signWords VecVirtual
	words := func(w Register, yield func(int, VecVirtual)) {
		signWords = YMM()
		VSHUFPS(U8(0xdd), pair(w, 18, 50), pair(w, 2, 34), signWords)
		g.words(w, g.signs.four(signWords), yield)
	}
	return words, func(w Register) []VecVirtual { return topScales(signWords, halfAt(mem(w, 0)), quarter32()) }
}

func bindIQ3XXS512(points Register) (words512Func, scales512Func) {
	g := newGrid512(points, 4, newSignMasks(true))
	g.at = func(w Register, k int) index { return index{at: mem(w, 2+k)} }
	var signWords VecVirtual
	words := func(w Register, yield func(int, VecVirtual)) {
		signWords = YMM()
		VMOVDQU(mem(w, 66), signWords)
		g.words(w, g.signs.four(signWords), yield)
	}
	return words, func(w Register) []VecVirtual { return topScales(signWords, halfAt(mem(w, 0)), half32()) }
}

// nibbles16 returns d·(½ + s)/4 for 16 nibbles s at at.
func nibbles16(w Register, at int, upper Register) []VecVirtual {
	z, x, y, d := ZMM(), XMM(), YMM(), ZMM()
	VPBROADCASTD(mem(w, at), z)
	VPBROADCASTD(mem(w, at+4), upper, z)
	VPSRLVD(wideConstant("nibbleShifts16", 0, 4, 8, 12, 16, 20, 24, 28), z, z)
	VPANDD(wideConstant("dwords0f16", 0x0f), z, z)
	VCVTDQ2PS(z, z)
	VPBROADCASTW(mem(w, 0), x)
	VCVTPH2PS(x, y)
	VBROADCASTSS(y.AsX(), d)
	VADDPS(wideConstant("half16", 0x3f000000), z, z)
	VMULPS(wideConstant("quarter16", 0x3e800000), z, z)
	VMULPS(d, z, z)
	return []VecVirtual{z}
}

func bindIQ2XS512(points Register) (words512Func, scales512Func) {
	g, upper := newGrid512(points, 8, newSignMasks(true)), maskOf(0xff00)
	g.at = func(w Register, k int) index { return index{at: mem(w, 2+2*k), wide: true, mask: 0x1ff} }
	words := func(w Register, yield func(int, VecVirtual)) {
		x, y := pair(w, 2, 34), pair(w, 18, 50) // words 0–7 and 16–23, 8–15 and 24–31
		VPSRLW(U8(9), x, x)
		VPSRLW(U8(9), y, y)
		VPACKUSWB(y, x, x)
		g.signs.addEighth(x)
		g.words(w, x, yield)
	}
	return words, func(w Register) []VecVirtual { return nibbles16(w, 66, upper) }
}

// storedSigns yields the vectors of a grid whose signs are 32 bytes at at.
func (g *grid512) storedSigns(at int) words512Func {
	return func(w Register, yield func(int, VecVirtual)) {
		signs := YMM()
		VMOVDQU(mem(w, at), signs)
		g.words(w, signs, yield)
	}
}

func bindIQ2S512(points Register) (words512Func, scales512Func) {
	g, upper := newGrid512(points, 8, newSignMasks(true)), maskOf(0xff00)
	mask, bytes := spreading(0x0300)
	g.packed = func(w Register, k int) GPVirtual {
		high := GP64()
		MOVBQZX(mem(w, 66+k/4), high)
		return spread4(mem(w, 2+k), high, mask, bytes)
	}
	return g.storedSigns(34), func(w Register) []VecVirtual { return nibbles16(w, 74, upper) }
}

func bindIQ3S512(points Register) (words512Func, scales512Func) {
	g := newGrid512(points, 4, newSignMasks(true))
	mask, bytes := spreading(0x0100)
	g.packed = func(w Register, k int) GPVirtual {
		high := GP64()
		MOVBQZX(mem(w, 66+k/8), high)
		if k%8 == 4 {
			SHRL(U8(4), high.As32())
		}
		return spread4(mem(w, 2+k), high, mask, bytes)
	}
	return g.storedSigns(74), scalesIQ3S
}

// extraIQ1S adds or subtracts the sums of activations: an eighth of each, as points are times 8.
func extraIQ1S(r rowState, v VecVirtual) {
	sums, minus := YMM(), YMM()
	VPMOVSXWD(mem(r.w, 34), minus) // the sign on top
	VPSRAD(U8(31), minus, minus)
	VPXOR(mem(r.acts, actSum32), minus, sums)
	VPSUBD(minus, sums, sums)
	VPADDD(sums, v, v)
}

func bindIQ1S512(points Register) (words512Func, scales512Func) {
	g := newGrid512(points, 8, nil)
	mask, bytes := spreading(0x0700)
	g.packed = func(w Register, k int) GPVirtual {
		high := GP64()
		MOVWQZX(mem(w, 34+k/2), high)
		return spread4(mem(w, 2+k), high, mask, bytes)
	}
	return func(w Register, yield func(int, VecVirtual)) { g.words(w, nil, yield) }, scalesIQ1S
}

func bindIQ1M512(points Register) (words512Func, scales512Func) {
	g := newGrid512(points, 8, nil)
	mask, bytes := spreading(0x0f00)
	g.packed = func(w Register, k int) GPVirtual {
		high := GP64()
		MOVWQZX(mem(w, 32+k/2), high)
		return spread4(mem(w, k), high, mask, bytes)
	}
	return func(w Register, yield func(int, VecVirtual)) { g.words(w, nil, yield) }, scalesIQ1M
}
