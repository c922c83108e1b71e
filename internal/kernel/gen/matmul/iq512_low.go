package main

import (
	"fmt"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// levelWords are 16 levels twice, so that bit 4 of an index does not matter.
func levelWords(name string, levels [16]int16) VecVirtual {
	var words []uint32
	for k := 0; k < 16; k += 2 {
		words = append(words, uint32(uint16(levels[k]))|uint32(uint16(levels[k+1]))<<16)
	}
	return loadWide(name, words...)
}

func levelsIQ4Words() VecVirtual {
	return levelWords("levelWords", [16]int16{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113})
}

func levelsE2M1Words() VecVirtual {
	return levelWords("e2m1Words", [16]int16{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12})
}

// permuted looks the low four bits of every word up.
func permuted(levels, z VecVirtual) VecVirtual {
	t := ZMM()
	VPERMW(levels, z, t)
	return t
}

func shiftedRight(z VecVirtual, n int) VecVirtual {
	t := ZMM()
	VPSRLW(U8(n), z, t)
	return t
}

// nibbleVectors yields the vectors of blocks 2h to 2h+5 of 16 bytes, whose low nibbles are the first 16
// values: low has the blocks 2h and 2h+1, high 2h+4 and 2h+5.
func nibbleVectors(h int, low, high, levels VecVirtual, yield func(int, VecVirtual)) {
	first, second := YMM(), YMM() // 8 bytes of every block
	VPUNPCKLQDQ(high, low, first)
	VPUNPCKHQDQ(high, low, second)
	for g, y := range []VecVirtual{first, second} {
		z := ZMM()
		VPMOVZXBW(y, z)
		yield(4*h+g, permuted(levels, z))
		yield(4*h+g+2, permuted(levels, shiftedRight(z, 4)))
	}
}

func bindIQ4XS512(Register) (words512Func, scales512Func) {
	levels := levelsIQ4Words()
	words := func(w Register, yield func(int, VecVirtual)) {
		for h := range 2 {
			low, high := YMM(), YMM()
			VMOVDQU(mem(w, 8+32*h), low)
			VMOVDQU(mem(w, 8+64+32*h), high)
			nibbleVectors(h, low, high, levels, yield)
		}
	}
	return words, scalesIQ4XS
}

func bindMXFP4512(Register) (words512Func, scales512Func) {
	levels := levelsE2M1Words()
	words := func(w Register, yield func(int, VecVirtual)) {
		for h := range 2 {
			nibbleVectors(h, pair(w, 34*h+1, 34*h+18), pair(w, 68+34*h+1, 68+34*h+18), levels, yield)
		}
	}
	return words, scalesMXFP4
}

func bindNVFP4512(Register) (words512Func, scales512Func) {
	levels := levelsE2M1Words()
	words := func(w Register, yield func(int, VecVirtual)) {
		for h := range 2 {
			low, high := YMM(), YMM() // four runs of 8 bytes, those of blocks 2h and 2h+1, 2h+4 and 2h+5
			VMOVDQU(mem(w, 36*h+4), low)
			VMOVDQU(mem(w, 72+36*h+4), high)
			first, second := YMM(), YMM()
			VPUNPCKLQDQ(high, low, first)
			VPUNPCKHQDQ(high, low, second)
			for i, y := range []VecVirtual{first, second} {
				z := ZMM()
				VPMOVZXBW(y, z)
				yield(4*h+2*i, permuted(levels, z))
				yield(4*h+2*i+1, permuted(levels, shiftedRight(z, 4)))
			}
		}
	}
	return words, scalesNVFP4
}

// alternate returns 16 bytes at even in lanes 0 and 2, those at odd in lanes 1 and 3.
func alternate(even, odd Mem, lanes Register) VecVirtual {
	z := ZMM()
	VBROADCASTI32X4(even, z)
	VBROADCASTI32X4(odd, lanes, z)
	return z
}

// oddLanes is the mask of the dwords of lanes 1 and 3.
func oddLanes() Register { return maskOf(0xf0f0) }

// bindTQ2512 leaves the values of blocks b and b+4 multiplied by 4^b.
func bindTQ2512(Register) (words512Func, scales512Func) {
	lanes, odd := oddLanes(), loadWide("oddDown", twice4(0, 0, 8, 8)...)
	var masks [4]VecVirtual
	for b := range masks {
		masks[b] = loadWide(fmt.Sprint("pair", b), 0x00030003<<(2*b))
	}
	words := func(w Register, yield func(int, VecVirtual)) {
		for i := range 2 {
			q := alternate(mem(w, 16*i), mem(w, 32+16*i), lanes)
			VPSRLVW(odd, q, q)
			for b := range 4 {
				z := ZMM()
				VPANDD(masks[b], q, z)
				yield(2*b+i, z)
			}
		}
	}
	return words, oneScale(64)
}

// twice4 repeats each word over a lane of 128 bits.
func twice4(lanes ...uint32) (words []uint32) {
	for _, v := range lanes {
		for range 4 {
			words = append(words, v*0x00010001)
		}
	}
	return words
}

// sourceTQ1512 is sourceTQ1 for lanes that alternate.
func sourceTQ1512(w Register, b, i int, lanes Register) VecVirtual {
	z := ZMM()
	VBROADCASTI32X4(mem(w, 16*i), z)
	switch {
	case b == 3 && i == 1:
		VPBROADCASTD(mem(w, 48), lanes, z)
	case b > 0:
		VBROADCASTI32X4(mem(w, 32), lanes, z)
	}
	return z
}

func bindTQ1512(Register) (words512Func, scales512Func) {
	three := loadWide("words3", 0x00030003)
	shift := loadWide("evenUp", twice4(8, 8, 0, 0)...)
	top, lanes := loadWide("tops", 0xff00ff00), oddLanes()
	words := func(w Register, yield func(int, VecVirtual)) {
		for i := range 2 {
			var z VecVirtual
			for b := range 4 {
				if b < 2 || b == 3 && i == 1 { // else as for the block before
					z = sourceTQ1512(w, b, i, lanes)
					VPSLLVW(shift, z, z)
					VPANDD(top, z, z)
				}
				low, high := digitsTQ1(b, i)
				t := ZMM()
				digits := append(append([]uint32{}, low...), high...)
				VPMULLW(wideConstant(fmt.Sprintf("digits16%d%d", b, i), append(digits, digits...)...), z, t)
				VPMULHUW(three, t, t)
				yield(2*b+i, t)
			}
		}
	}
	return words, oneScale(52)
}

func bindQ1512(Register) (words512Func, scales512Func) {
	one, minus := loadWide("ones16", 0x00010001), loadWide("minus16", 0xffffffff)
	g := grid512{signs: newSignMasks(false)}
	z := ZMM() // one for all: it seems to be read too
	words := func(w Register, yield func(int, VecVirtual)) {
		bits := blockLanes(pair(w, 2, 20))
		for v := range 8 {
			VPBLENDMW(one, minus, g.mask(bits, v), z)
			yield(v, z)
		}
	}
	return words, func(w Register) []VecVirtual { return blockScales(w, 2) }
}

func bindQ2512(Register) (words512Func, scales512Func) {
	mask, lanes := loadWide("words3", 0x00030003), oddLanes()
	shifts := loadWide("pairShifts16", 0x00020000, 0x00060004, 0x000a0008, 0x000e000c)
	words := func(w Register, yield func(int, VecVirtual)) {
		for h := range 2 {
			q := alternate(mem(w, 18*h+2), mem(w, 36+18*h+2), lanes) // 8 bytes of one block, 8 of the next
			for g := range 4 {
				var pick []uint32
				for lane := range 4 {
					k := uint32(lane/2*8 + 2*g)
					pick = append(pick, slices.Repeat([]uint32{k*0x01010101 + 0x01000100}, 4)...)
				}
				z := ZMM()
				VPSHUFB(wideConstant(fmt.Sprint("wordOf8", g), pick...), q, z)
				VPSRLVW(shifts, z, z)
				VPANDD(mask, z, z)
				yield(4*h+g, z)
			}
		}
	}
	return words, func(w Register) []VecVirtual { return blockScales(w, 4) }
}
