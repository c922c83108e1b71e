package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// half loads half i of blocks b and b+4 and returns what yields its words of even or odd index.
type half func(w Register, masks []VecVirtual, b, i int) func(odd int) VecVirtual

// wordsOf yields halves in the order that is wanted; loads are repeated rather than kept.
func wordsOf(one half) func(Register, []VecVirtual, bool, yield) {
	return func(w Register, masks []VecVirtual, direct bool, yield yield) {
		if direct {
			for b := range 4 {
				for i := range 2 {
					word := one(w, masks, b, i)
					yield(i, 0, b, word(0))
					yield(i, 1, b, word(1))
				}
			}
			return
		}
		for k := range 16 {
			i, odd, b := k/8, k/4%2, k%4
			yield(i, odd, b, one(w, masks, b, i)(odd))
		}
	}
}

func masksQ5(bool) []VecVirtual {
	return []VecVirtual{
		loadConstant("nibble", 0x000f000f), loadConstant("sixteen", 0x00100010),
		loadConstant("bitsEven", 0x00040001, 0x00400010, 0x04000100, 0x40001000),
		loadConstant("bitsOdd", 0x00080002, 0x00800020, 0x08000200, 0x80002000),
	}
}

// halfQ5 reads 16 bytes of nibbles at at, and 32 fifth bits at bits.
func halfQ5(size, bits, at int) half {
	return func(w Register, masks []VecVirtual, b, i int) func(int) VecVirtual {
		y := shifted(pair(w, b*size+at, (b+4)*size+at), 4*i)
		h, high := YMM(), YMM()
		VPBROADCASTD(mem(w, b*size+bits), h)
		VPBROADCASTD(mem(w, (b+4)*size+bits), high)
		VPBLENDD(U8(0xf0), high, h, h)
		spread := uint32(0x01000100 + i*0x02020202) // the half's 16 bits, in every word
		VPSHUFB(constant([]string{"spreadLow", "spreadHigh"}[i], spread), h, h)
		return func(odd int) VecVirtual {
			bit := masked(h, masks[2+odd])
			VPCMPEQW(masks[2+odd], bit, bit)
			VPAND(masks[1], bit, bit)
			word := masked(shifted(y, 8*odd), masks[0])
			VPOR(bit, word, word)
			return word
		}
	}
}

func masksIQ4NL(bool) []VecVirtual {
	return []VecVirtual{loadConstant("bytes0f", 0x0f0f0f0f), loadConstant("levels", 0xbfad9881, 0xf6eaddcf, 0x26190d01, 0x71594535)}
}

func halfIQ4NL(w Register, masks []VecVirtual, b, i int) func(int) VecVirtual {
	y := masked(shifted(pair(w, b*18+2, (b+4)*18+2), 4*i), masks[0])
	VPSHUFB(y, masks[1], y)
	return func(odd int) VecVirtual {
		t := YMM()
		if odd == 1 {
			VPSRAW(U8(8), y, t)
			return t
		}
		VPSLLW(U8(8), y, t)
		VPSRAW(U8(8), t, t)
		return t
	}
}
