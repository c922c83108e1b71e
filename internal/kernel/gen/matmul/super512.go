package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Formats of blocks of 256 but for Q4_K. Runs of 16 lie in their natural order: accumulator i of phase h
// has runs 8h + 4i + j.

func constsQ5K(r *rows512) {
	constsQ4K(r)
	r.keep("sixteen", constant512("sixteen", 0x10101010))
	for i := range 2 {
		r.keep(fmt.Sprint("fifth", i), constant512(fmt.Sprint("fifth", i), bytes512(func(k int) byte { return 1 << (2*(k/16) + i) })...))
	}
}

func weightsQ5K(r *rows512, row, _ int, yield yield512) {
	const bits, at = 16, 48
	z := r.quarters(row, at)
	var h [2]VecVirtual
	for q := range h {
		h[q] = ZMM()
		VBROADCASTI32X4(r.at(row, bits+16*q), h[q])
	}
	for i := range 2 {
		var w [2]VecVirtual
		for q := range w {
			w[q] = and512(r.k["nibble"], shifted512(z[q], 4*i))
			k := K()
			VPTESTMB(r.k[fmt.Sprint("fifth", i)], h[q], k)
			VPADDB(r.k["sixteen"], w[q], k, w[q])
		}
		yield(i, w[0], w[1])
	}
}

// perHalf makes words of a in the lower 32 bytes and of b in the upper ones.
func perHalf(name string, a, b int) Mem {
	return constant512(name, words512(func(i int) int {
		if i < 16 {
			return a
		}
		return b
	})...)
}

// doubled returns half h of 64 bytes twice.
func doubled(m Mem, h int) VecVirtual {
	z := ZMM()
	VMOVDQU32(m, z)
	VSHUFI64X2(U8([]uint8{0x44, 0xee}[h]), z, z, z)
	return z
}

func constsQ6K(r *rows512) {
	r.keep("nibble", constant512("nibble", 0x0f0f0f0f))
	r.keep("two", constant512("bits45", 0x30303030))
	r.keep("up", perHalf("shift42", 4, 2))
	r.keep("down", perHalf("shift02", 0, 2))
	r.keep("runs", constant512("runs16", words512(runWords)...))
	r.keep("order", constant512("orderBytes", bytes512(runBytes)...))
}

func weightsQ6K(r *rows512, row, h int, yield yield512) {
	low, high := ZMM(), doubled(r.at(row, 128), h)
	VMOVDQU32(r.at(row, 64*h), low)
	var up, down = ZMM(), ZMM()
	VPSLLVW(r.k["up"], high, up)
	VPSRLVW(r.k["down"], high, down)
	for i, bits := range []VecVirtual{up, down} {
		w := and512(r.k["nibble"], shifted512(low, 4*i))
		VPTERNLOGD(U8(0xf8), r.k["two"], bits, w) // w | bits & two
		yield(i, w)
	}
}

// runBytes orders the 16 bytes of a row's runs as sums are, phase by phase; runWords then brings words of
// two of them from the first and the third lane, which hold the two rows, to every lane j: of phase 0 of
// both rows, then of phase 1.
func runBytes(k int) byte {
	h, j, i := k%16/8, k%8/2, k%2
	return byte(8*h + 4*i + j)
}

func runWords(k int) int {
	j, h, row := k/8, k%4/2, k%2
	return row*16 + 4*h + j
}

// runScales loads the 16 bytes at at of both rows and orders them for pick.
func (r *rows512) runScales(at int) VecVirtual {
	z := ZMM()
	VBROADCASTI32X4(r.at(0, at), z)
	VINSERTI32X4(U8(2), r.at(1, at), z, z)
	return z
}

func (r *rows512) order(z VecVirtual) {
	VPSHUFB(r.k["order"], z, z)
	VPERMW(z, r.k["runs"], z)
}

// pick returns the bytes of phase h as dwords.
func pick(bytes VecVirtual, h int) VecVirtual {
	z := ZMM()
	m := constant512("byte0123", 0x80808000, 0x80808001, 0x80808002, 0x80808003)
	if h == 1 {
		m = constant512("byte4567", 0x80808004, 0x80808005, 0x80808006, 0x80808007)
	}
	VPSHUFB(m, bytes, z)
	return z
}

// factors returns the f16 numbers at at of both rows, for their sums.
func (r *rows512) factors(at int) VecVirtual {
	z, d := ZMM(), [2]GPVirtual{GP64(), GP64()}
	for row := range d {
		MOVWQZX(r.at(row, at), d[row])
		IMUL3Q(U32(0x10001), d[row], d[row])
	}
	SHLQ(U8(32), d[1])
	ORQ(d[1], d[0])
	VPBROADCASTQ(d[0], z)
	VCVTPH2PS(z.AsY(), z)
	return z
}

// scaledBy converts dwords and multiplies them.
func scaledBy(v, d VecVirtual) VecVirtual {
	VCVTDQ2PS(v, v)
	VMULPS(d, v, v)
	return v
}

func scalesQ6K512(r *rows512, h int) (scale, minimum VecVirtual) {
	if h == 0 {
		r.d = []VecVirtual{r.factors(208)}
		r.bytes = r.runScales(192)
		r.order(r.bytes)
	}
	v := ZMM()
	at := constant512("high0123", 0x00808080, 0x01808080, 0x02808080, 0x03808080)
	if h == 1 {
		at = constant512("high4567", 0x04808080, 0x05808080, 0x06808080, 0x07808080)
	}
	VPSHUFB(at, r.bytes, v)
	VPSRAD(U8(24), v, v)
	return scaledBy(v, r.d[0]), nil
}

func constsQ3K(r *rows512) {
	r.keep("two", constant512("bits01", 0x03030303))
	r.keep("four", constant512("four", 0x04040404))
	constsTwoBits(r)
}

func constsTwoBits(r *rows512) {
	r.keep("down0", perHalf("shift02", 0, 2))
	r.keep("down1", perHalf("shift46", 4, 6))
	r.keep("runs", constant512("runs16", words512(runWords)...))
	r.keep("order", constant512("orderBytes", bytes512(runBytes)...))
}

// twoBits returns the 2-bit values of accumulator i, of half h of the 64 bytes z twice.
func (r *rows512) twoBits(z VecVirtual, i int) VecVirtual {
	w := ZMM()
	VPSRLVW(r.k[fmt.Sprint("down", i)], z, w)
	VPANDD(r.k["two"], w, w)
	return w
}

func weightsQ3K(r *rows512, row, h int, yield yield512) {
	const bits, at = 0, 32
	z, third := doubled(r.at(row, at), h), doubled(r.at(row, bits), 0)
	for i := range 2 {
		w, k := r.twoBits(z, i), K()
		VPTESTMB(constant512(fmt.Sprintf("third%d%d", h, i), bytes512(func(k int) byte { return 1 << (4*h + 2*i + k/32) })...), third, k)
		VPADDB(r.k["four"], w, k, w)
		yield(i, w)
	}
}

// scalesQ3K512 joins the low 4 bits of 16 scales, in dwords A and B, with their high 2 bits, in C.
func scalesQ3K512(r *rows512, h int) (scale, minimum VecVirtual) {
	const at, d = 96, 108
	if h == 0 {
		r.d = []VecVirtual{r.factors(d)}
		z, high := r.runScales(at-2), ZMM() // so that the load ends with the block
		VPSHUFB(constant512("cccc", 0x0d0c0b0a), z, high)
		VPSHUFB(constant512("abab", 0x05040302, 0x09080706), z, z)
		VPSRLVD(constant512("shift0044", 0, 0, 4, 4), z, z)
		VPANDD(constant512("nibble", 0x0f0f0f0f), z, z)
		VPRORVD(constant512("rotate", 28, 30, 0, 2), high, high)
		VPTERNLOGD(U8(0xf8), constant512("bits45", 0x30303030), high, z)
		r.order(z)
		r.bytes = z
	}
	v := pick(r.bytes, h)
	VPSUBD(constant512("thirtytwo", 32), v, v)
	return scaledBy(v, r.d[0]), nil
}

func constsQ2K(r *rows512) {
	r.keep("two", constant512("bits01", 0x03030303))
	constsTwoBits(r)
}

func weightsQ2K(r *rows512, row, h int, yield yield512) {
	z := doubled(r.at(row, 16), h)
	for i := range 2 {
		yield(i, r.twoBits(z, i))
	}
}

func scalesQ2K512(r *rows512, h int) (scale, minimum VecVirtual) {
	const d = 80
	if h == 0 {
		r.d = []VecVirtual{r.factors(d), r.factors(d + 2)}
		r.bytes = r.runScales(0)
		r.order(r.bytes)
	}
	low, high := ZMM(), ZMM()
	VPANDD(constant512("nibble", 0x0f0f0f0f), r.bytes, low)
	VPSRLW(U8(4), r.bytes, high)
	VPANDD(constant512("nibble", 0x0f0f0f0f), high, high)
	return scaledBy(pick(low, h), r.d[0]), scaledBy(pick(high, h), r.d[1])
}

var _ Register
