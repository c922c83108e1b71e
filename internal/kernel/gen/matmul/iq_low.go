package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func levelsIQ4() VecVirtual {
	return loadConstant("levels", 0xbfad9881, 0xf6eaddcf, 0x26190d01, 0x71594535)
}

// levelsE2M1 are the doubled values of MXFP4 and NVFP4.
func levelsE2M1() VecVirtual {
	return loadConstant("e2m1", 0x03020100, 0x0c080604, 0xfdfeff00, 0xf4f8fafc)
}

// nibbleLevels looks up the low nibbles of bytes for half 0, the high ones for half 1.
func nibbleLevels(bytes, levels, mask VecVirtual, i int) VecVirtual {
	y := masked(shifted(bytes, 4*i), mask)
	VPSHUFB(y, levels, y)
	return y
}

func bindIQ4XS(Register, Mem) (wordsFunc, scalesFunc) {
	mask, levels := loadConstant("bytes0f", 0x0f0f0f0f), levelsIQ4()
	words := func(w Register, direct bool, yield yield) {
		var blocks [2]VecVirtual
		splitSigned(direct, yield, func(b, i int) VecVirtual {
			switch {
			case !direct:
				blocks[b%2] = pair(w, 8+16*b, 8+16*(b+4))
			case b%2 == 0 && i == 0:
				blocks = pairs(w, 8+16*b, 8+16*(b+4))
			}
			return nibbleLevels(blocks[b%2], levels, mask, i)
		})
	}
	return words, scalesIQ4XS
}

// scalesIQ4XS joins the low 4 bits of 8 scales with their high 2 bits.
func scalesIQ4XS(w Register) []VecVirtual {
	y, high := nibbleScales(mem(w, 4)), YMM()
	VPBROADCASTD(mem(w, 0), high) // d, two high bits for each
	VPSRLVD(constant("pairShifts", 16, 18, 20, 22, 24, 26, 28, 30), high, high)
	VPAND(constant("dwords03", 3), high, high)
	VPSLLD(U8(4), high, high)
	VPOR(high, y, y)
	VPSUBD(constant("thirtytwo", 32), y, y)
	VCVTDQ2PS(y, y)
	VMULPS(halfAt(mem(w, 0)), y, y)
	return []VecVirtual{y}
}

func bindMXFP4(Register, Mem) (wordsFunc, scalesFunc) {
	mask, levels := loadConstant("bytes0f", 0x0f0f0f0f), levelsE2M1()
	words := func(w Register, direct bool, yield yield) {
		var bytes VecVirtual
		splitSigned(direct, yield, func(b, i int) VecVirtual {
			if !direct || i == 0 {
				bytes = pair(w, 17*b+1, 17*(b+4)+1)
			}
			return nibbleLevels(bytes, levels, mask, i)
		})
	}
	return words, scalesMXFP4
}

// scalesMXFP4 returns 2^(e−128) for the first bytes e of 8 blocks: the bits (e−1)<<23, or, for the two
// that are subnormal, (e+1)<<21, which is less for all others.
func scalesMXFP4(w Register) []VecVirtual {
	e, low := YMM(), YMM()
	VMOVDQU(mem(w, 0), e)
	for b := 1; b < 8; b++ {
		VPBLENDD(U8(1<<b), mem(w, 13*b), e, e)
	}
	VPAND(constant("dwordsff", 0xff), e, e)
	VPSLLD(U8(21), e, low)
	VPADDD(constant("bit21", 1<<21), low, low)
	VPSLLD(U8(23), e, e)
	VPSUBD(constant("bit23", 1<<23), e, e)
	VPMAXSD(low, e, e)
	return []VecVirtual{e}
}

func bindNVFP4(Register, Mem) (wordsFunc, scalesFunc) {
	mask, levels := loadConstant("bytes0f", 0x0f0f0f0f), levelsE2M1()
	words := func(w Register, direct bool, yield yield) {
		var low, high VecVirtual
		splitSigned(direct, yield, func(b, i int) VecVirtual {
			if !direct || i == 0 {
				bytes := pair(w, 36*(b/2)+4+16*(b%2), 36*(b/2+2)+4+16*(b%2)) // runs of 8 bytes: low nibbles first
				low, high = nibbleLevels(bytes, levels, mask, 0), nibbleLevels(bytes, levels, mask, 1)
			}
			y := YMM()
			if i == 0 {
				VPUNPCKLQDQ(high, low, y)
			} else {
				VPUNPCKHQDQ(high, low, y)
			}
			return y
		})
	}
	return words, scalesNVFP4
}

// scalesNVFP4 returns half of what 16 unsigned E4M3 bytes mean, 4 in front of each block. Below the sign
// of an f16 number they are 2^−7 times that.
func scalesNVFP4(w Register) (scale []VecVirtual) {
	x, y, not := XMM(), YMM(), XMM()
	VMOVDQU(mem(w, 0), x)
	for k := 1; k < 4; k++ {
		VPBLENDD(U8(1<<k), mem(w, 32*k), x, x)
	}
	VPCMPEQB(constant("bytes7f", 0x7f7f7f7f), x, not) // 0x7f counts as 0
	VPANDN(x, not, x)
	VPMOVZXBW(x, y)
	VPSLLW(U8(7), y, y)
	VPAND(constant("e4m3", 0x3f803f80), y, y)
	for half := range 2 {
		s := YMM()
		if half == 1 {
			VEXTRACTI128(U8(1), y, y.AsX())
		}
		VCVTPH2PS(y.AsX(), s)
		VMULPS(constant("two7", 0x43000000), s, s)
		scale = append(scale, s)
	}
	return scale
}

// oneScale returns the same f16 number for all runs.
func oneScale(at int) scalesFunc {
	return func(w Register) []VecVirtual { return []VecVirtual{halfAt(mem(w, at))} }
}

// bindTQ2 leaves the values of blocks b and b+4 multiplied by 4^b in direct products.
func bindTQ2(Register, Mem) (wordsFunc, scalesFunc) {
	var masks [4]VecVirtual
	for b := range masks {
		masks[b] = loadConstant(fmt.Sprint("pair", b), 0x00030003<<(2*b))
	}
	words := func(w Register, direct bool, yield yield) {
		for i := range 2 {
			q := pair(w, 16*i, 32+16*i)
			for odd := range 2 {
				y := shifted(q, 8*odd)
				for b := range 4 {
					if direct {
						yield(i, odd, b, masked(y, masks[b]))
					} else {
						yield(i, odd, b, masked(shifted(y, 2*b), masks[0]))
					}
				}
			}
		}
	}
	return words, oneScale(64)
}

// digitsTQ1 returns the powers of 3 for half i of block b and of block b+4, by dwords.
func digitsTQ1(b, i int) (low, high []uint32) {
	powers := [5]uint32{1, 3, 9, 27, 81}
	for k := range 4 {
		low = append(low, powers[b])
		switch {
		case b == 0:
			high = append(high, powers[4])
		case b == 3 && i == 1:
			high = append(high, powers[k])
		default:
			high = append(high, powers[2*b+i-2])
		}
	}
	return twice(low), twice(high)
}

// bindTQ1 takes digit n of a byte b as ((b·3^n mod 256)·3) >> 8, in the high bytes of words.
func bindTQ1(Register, Mem) (wordsFunc, scalesFunc) {
	three, top := loadConstant("three", 0x00030003), loadConstant("bytesff00", 0xff00ff00)
	half := func(w Register, _ []VecVirtual, b, i int) func(int) VecVirtual {
		source := sourceTQ1(w, b, i)
		return func(odd int) VecVirtual {
			y := YMM()
			if odd == 1 {
				VPAND(top, source, y)
			} else {
				VPSLLW(U8(8), source, y)
			}
			low, high := digitsTQ1(b, i)
			VPMULLW(constant(fmt.Sprintf("digits%d%d", b, i), append(low, high...)...), y, y)
			VPMULHUW(three, y, y)
			return y
		}
	}
	words := func(w Register, direct bool, yield yield) { wordsOf(half)(w, nil, direct, yield) }
	return words, oneScale(52)
}

// twice repeats each item in both words of a dword.
func twice(list []uint32) (words []uint32) {
	for _, v := range list {
		words = append(words, v*0x00010001)
	}
	return words
}

// sourceTQ1 returns the bytes that hold half i of blocks b and b+4. The first 32 bytes hold blocks 0 to
// 4, the next 16 the halves from 10 to 14, and the last four the last half.
func sourceTQ1(w Register, b, i int) VecVirtual {
	switch {
	case b == 0:
		y := YMM()
		VBROADCASTI128(mem(w, 16*i), y)
		return y
	case b == 3 && i == 1:
		y, t := YMM(), YMM()
		VPBROADCASTD(mem(w, 48), y)
		VMOVDQU(mem(w, 16), t.AsX())
		VPBLENDD(U8(0x0f), t, y, y)
		return y
	}
	return pair(w, 16*i, 32)
}

// either returns the dwords, or the quadwords, at low and at high, each repeated in its half.
func either(low, high Mem, quads bool) VecVirtual {
	y, t := YMM(), YMM()
	if quads {
		VPBROADCASTQ(low, y)
		VPBROADCASTQ(high, t)
	} else {
		VPBROADCASTD(low, y)
		VPBROADCASTD(high, t)
	}
	VPBLENDD(U8(0xf0), t, y, y)
	return y
}

func bindQ1(Register, Mem) (wordsFunc, scalesFunc) {
	bits := [2]VecVirtual{
		loadConstant("bitsEven", 0x00040001, 0x00400010, 0x04000100, 0x40001000),
		loadConstant("bitsOdd", 0x00080002, 0x00800020, 0x08000200, 0x80002000),
	}
	two := loadConstant("words2", 0x00020002)
	half := func(w Register, _ []VecVirtual, b, i int) func(int) VecVirtual {
		spread := either(mem(w, 2+4*b), mem(w, 20+4*b), false) // the half's 16 bits, in every word
		VPSHUFB(constant([]string{"spreadLow", "spreadHigh"}[i], uint32(0x01000100+i*0x02020202)), spread, spread)
		return func(odd int) VecVirtual {
			y := masked(spread, bits[odd])
			VPCMPEQW(bits[odd], y, y)
			VPAND(two, y, y)
			return y
		}
	}
	words := func(w Register, direct bool, yield yield) { wordsOf(half)(w, nil, direct, yield) }
	return words, func(w Register) []VecVirtual { return blockScales(w, 2) }
}

func bindQ2(Register, Mem) (wordsFunc, scalesFunc) {
	mask := loadConstant("two", 0x00030003)
	half := func(w Register, _ []VecVirtual, b, i int) func(int) VecVirtual {
		at := b/2*18 + 2 + b%2*8
		var each []uint32 // a byte for two words, in their high halves
		for k := range uint32(4) {
			each = append(each, 0x00800080|(4*uint32(i)+k)*0x01000100)
		}
		spread := either(mem(w, at), mem(w, at+36), true)
		VPSHUFB(constant([]string{"spread4Low", "spread4High"}[i], each...), spread, spread)
		return func(odd int) VecVirtual {
			y := YMM()
			VPMULHUW(constant([]string{"shifts04", "shifts26"}[odd], []uint32{0x00100100, 0x00040040}[odd]), spread, y)
			VPAND(mask, y, y)
			return y
		}
	}
	words := func(w Register, direct bool, yield yield) { wordsOf(half)(w, nil, direct, yield) }
	return words, func(w Register) []VecVirtual { return blockScales(w, 4) }
}

// blockScales returns the f16 numbers of 2 or 4 blocks of 18 bytes, for the runs of each.
func blockScales(w Register, blocks int) []VecVirtual {
	h := GP64()
	MOVWQZX(mem(w, 18*(blocks-1)), h)
	for b := blocks - 2; b >= 0; b-- {
		t := GP64()
		SHLQ(U8(16), h)
		MOVWQZX(mem(w, 18*b), t)
		ORQ(t, h)
	}
	x, d, y := XMM(), YMM(), YMM()
	VMOVQ(h, x)
	VCVTPH2PS(x, d)
	if blocks == 2 {
		VMOVDQU(constant("twoBlocks", 0, 0, 0, 0, 1, 1, 1, 1), y)
	} else {
		VMOVDQU(constant("spread0", 0, 0, 1, 1, 2, 2, 3, 3), y)
	}
	VPERMD(d, y, y)
	return []VecVirtual{y}
}
