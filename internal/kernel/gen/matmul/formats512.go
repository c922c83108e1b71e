package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// yield512 takes the weights of accumulator i.
type yield512 = func(i int, w ...VecVirtual)

var formats512 = []*format512{
	{name: "Q4_0", group: 8 * 18, run: 32, tails: true, zero: 8, run8: straight,
		consts: constsBlocks, weights: weightsNibbles(18, 2), scales: headsD},
	{name: "Q4_1", group: 8 * 20, run: 32, tails: true, offset: 1, run8: straight,
		consts: constsBlocks, weights: weightsNibbles(20, 4), scales: headsDM},
	{name: "Q5_0", group: 8 * 22, run: 32, tails: true, zero: 16, run8: straight,
		consts: constsQ5, weights: weightsQ5(22, 2), scales: headsD},
	{name: "Q5_1", group: 8 * 24, run: 32, tails: true, offset: 1, run8: straight,
		consts: constsQ5, weights: weightsQ5(24, 4), scales: headsDM},
	{name: "Q8_0", group: 8 * 34, run: 32, tails: true, signed: true, run8: straight,
		consts: constsFlip, weights: weightsQ8_0, scales: scalesQ8_0},
	{name: "IQ4NL", group: 8 * 18, run: 32, tails: true, signed: true, run8: straight,
		consts: constsIQ4NL, weights: weightsIQ4NL, scales: headsD},
	{name: "Q2K", group: 84, run: 16, offset: -1, run8: straight,
		consts: constsQ2K, weights: weightsQ2K, scales: scalesQ2K512},
	{name: "Q3K", group: 110, run: 16, zero: 4, run8: straight,
		consts: constsQ3K, weights: weightsQ3K, scales: scalesQ3K512},
	{name: "Q4K", group: 144, run: 32, offset: -1, run8: run8Q4K, consts: constsQ4K, weights: weightsQ4K, scales: scalesK},
	{name: "Q5K", group: 176, run: 32, offset: -1, run8: run8Q4K, consts: constsQ5K, weights: weightsQ5K, scales: scalesK},
	{name: "Q6K", group: 210, run: 16, zero: 32, run8: straight,
		consts: constsQ6K, weights: weightsQ6K, scales: scalesQ6K512},
}

// run8Q4K: the 32 bytes of nibbles j hold runs 2j and 2j+1.
func run8Q4K(j, i int) int { return 2*j + i }

func constsQ4K(r *rows512) {
	r.keep("nibble", constant512("nibble", 0x0f0f0f0f))
	constsScalesK(r)
}

func weightsQ4K(r *rows512, row, _ int, yield yield512) {
	z := r.quarters(row, 16)
	nibble := r.k["nibble"]
	yield(0, and512(nibble, z[0]), and512(nibble, z[1]))
	yield(1, and512(nibble, shifted512(z[0], 4)), and512(nibble, shifted512(z[1], 4)))
}

// quarters loads 128 bytes of a row: the first 16 bytes of each 32, and the second.
func (r *rows512) quarters(row, at int) (z [2]VecVirtual) {
	a, b := ZMM(), ZMM()
	VMOVDQU32(r.at(row, at), a)
	VMOVDQU32(r.at(row, at+64), b)
	return halves512(a, b)
}

// halves512 gathers the even and the odd 16 bytes of 128.
func halves512(a, b VecVirtual) (z [2]VecVirtual) {
	z[0], z[1] = ZMM(), ZMM()
	VSHUFI32X4(U8(0x88), b, a, z[0])
	VSHUFI32X4(U8(0xdd), b, a, z[1])
	return z
}

// constsScalesK are for the 16 bytes that begin blocks of Q4_K and Q5_K: d, dmin, then as dwords S, M, X:
// scales and minima 0 to 3 in 6 bits, X the low nibbles of 4 more of both, whose high bits are in S and M.
func constsScalesK(r *rows512) {
	r.keep("shift", constant512("shiftK", 0, 0, 0, 4))
	r.keep("low", constant512("lowK", 0x3f3f3f3f, 0x3f3f3f3f, 0x0f0f0f0f, 0x0f0f0f0f))
	r.keep("high", constant512("highK", 0, 0, 0x30303030, 0x30303030))
	// Words of two scales or minima: s01 s23 m01 m23 s45 s67 m45 m67. Lane j gets those of runs 2j and
	// 2j+1: s of both rows, m of both rows.
	r.keep("pairs", constant512("pairsK", words512(func(i int) int {
		j, which := i/8, i%4
		return which%2*16 + j/2*4 + j%2 + which/2*2
	})...))
	r.keep("pickScale", constant512("byte0123", 0x80808000, 0x80808001, 0x80808002, 0x80808003))
	r.keep("pickMin", constant512("byte4567", 0x80808004, 0x80808005, 0x80808006, 0x80808007))
	r.keep("pickD", constant512("pickD", words512(func(i int) int { return i/2%2*16 + i/4%2 })...))
}

func scalesK(r *rows512, _ int) (scale, minimum VecVirtual) {
	raw, a, b, d := ZMM(), ZMM(), ZMM(), ZMM()
	VBROADCASTI32X4(r.at(0, 0), raw)
	VINSERTI32X4(U8(2), r.at(1, 0), raw, raw)
	VPSHUFD(U8(0xf9), raw, a) // S M X X
	VPSRLVD(r.k["shift"], a, a)
	VPANDD(r.k["low"], a, a)
	VPSHUFD(U8(0x95), raw, b) // . . S M
	VPSRLD(U8(2), b, b)
	VPTERNLOGD(U8(0xf8), r.k["high"], b, a) // a | b & high
	VPERMW(a, r.k["pairs"], a)
	VPERMW(raw, r.k["pickD"], d)
	VCVTPH2PS(d.AsY(), d)
	pick := func(which string, lane uint8) VecVirtual {
		v, f := ZMM(), ZMM()
		VPSHUFB(r.k[which], a, v)
		VCVTDQ2PS(v, v)
		VSHUFF32X4(U8(lane*0x55), d, d, f)
		VMULPS(f, v, v)
		return v
	}
	return pick("pickScale", 0), pick("pickMin", 1)
}
