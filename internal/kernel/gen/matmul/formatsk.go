package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// splitBytes yields the words of half i of blocks that bytes returns; mask is 0x00ff in every word.
func splitBytes(i int, mask VecVirtual, direct bool, yield yield, bytes func(b int) VecVirtual) {
	var all [4]VecVirtual
	for b := range all {
		all[b] = bytes(b)
		if direct {
			yield(i, 0, b, masked(all[b], mask))
			yield(i, 1, b, shifted(all[b], 8))
		}
	}
	if direct {
		return
	}
	for b, y := range all {
		yield(i, 0, b, masked(y, mask))
	}
	for b, y := range all {
		yield(i, 1, b, shifted(y, 8))
	}
}

func byteMasks(first, second uint32) []VecVirtual {
	name := map[uint32]string{0x03: "bytes03", 0x04: "bytes04", 0x0f: "bytes0f", 0x10: "bytes10", 0x30: "bytes30"}
	return []VecVirtual{
		loadConstant("bytes00ff", 0x00ff00ff),
		loadConstant(name[first], first*0x01010101), loadConstant(name[second], second*0x01010101),
	}
}

func masksQ6K(bool) []VecVirtual { return byteMasks(0x0f, 0x30) }

func wordsQ6K(w Register, masks []VecVirtual, direct bool, yield yield) {
	low := [2][2]VecVirtual{pairs(w, 0, 64), pairs(w, 32, 96)}
	high := pairs(w, 128, 160)
	for i := range 2 {
		splitBytes(i, masks[0], direct, yield, func(b int) VecVirtual {
			y := masked(shifted(low[b%2][i], b/2*4), masks[1])
			h := high[i]
			switch b {
			case 0, 1:
				h = YMM()
				VPSLLW(U8(4-2*b), high[i], h)
			case 3:
				h = shifted(h, 2)
			}
			VPOR(masked(h, masks[2]), y, y)
			return y
		})
	}
}

func scalesQ6K(w Register, stack Mem) (scale, minimum []VecVirtual) {
	halves, d := XMM(), YMM()
	VCVTPH2PS(mem(w, 202), halves) // three that are no numbers, d
	VMOVUPS(halves, stack)
	VBROADCASTSS(stack.Offset(12), d)
	for half := range 2 {
		y := YMM()
		VPMOVSXBD(mem(w, 192+8*half), y)
		VCVTDQ2PS(y, y)
		VMULPS(d, y, y)
		scale = append(scale, y)
	}
	return scale, nil
}

func masksQ4K(direct bool) []VecVirtual {
	m := masksNibble(direct)
	if direct {
		m = append(m, loadConstant("nibble16", 0x00f000f0))
	}
	return m
}

func wordsQ4K(w Register, masks []VecVirtual, direct bool, yield yield) {
	const at = 16
	chunks := [2][2]VecVirtual{pairs(w, at, at+64), pairs(w, at+32, at+96)}
	for i := range 2 {
		for odd := range 2 {
			for c := range chunks {
				y := shifted(chunks[c][i], 8*odd)
				yield(i, odd, 2*c, masked(y, masks[0]))
				if direct {
					yield(i, odd, 2*c+1, masked(y, masks[1]))
				} else {
					yield(i, odd, 2*c+1, masked(shifted(y, 4), masks[0]))
				}
			}
		}
	}
}

// scalesQ4K unpacks the 6-bit scales and minima in general registers, which are idle here.
func scalesQ4K(w Register, stack Mem) (scale, minimum []VecVirtual) {
	s, m, top, t := GP32(), GP32(), GP32(), GP32()
	MOVL(mem(w, 4), s)
	MOVL(mem(w, 8), m)
	MOVL(mem(w, 12), top)
	highBits := func(from GPVirtual) GPVirtual { // the two high bits of 4 bytes, as bits 4 and 5
		h := GP32()
		MOVL(from, h)
		SHRL(U8(2), h)
		ANDL(U32(0x30303030), h)
		return h
	}
	sHigh, mHigh := highBits(s), highBits(m)
	MOVL(top, t)
	ANDL(U32(0x0f0f0f0f), t)
	ORL(t, sHigh)
	SHRL(U8(4), top)
	ANDL(U32(0x0f0f0f0f), top)
	ORL(top, mHigh)
	ANDL(U32(0x3f3f3f3f), s)
	ANDL(U32(0x3f3f3f3f), m)
	storePair(s, sHigh, stack)
	storePair(m, mHigh, stack.Offset(8))
	halves := XMM()
	VCVTPH2PS(mem(w, 0), halves) // d, dmin, two that are no numbers
	VMOVUPS(halves, stack.Offset(16))
	return []VecVirtual{scaled(stack, stack.Offset(16))}, []VecVirtual{scaled(stack.Offset(8), stack.Offset(20))}
}

// storePair stores 8 bytes from the low halves of two registers.
func storePair(low, high GPVirtual, m Mem) {
	SHLQ(U8(32), high.As64())
	ORQ(low.As64(), high.As64())
	MOVQ(high.As64(), m)
}

// scaled returns 8 bytes times the f32 at d.
func scaled(bytes, d Mem) VecVirtual {
	y, f := YMM(), YMM()
	VPMOVZXBD(bytes, y)
	VCVTDQ2PS(y, y)
	VBROADCASTSS(d, f)
	VMULPS(f, y, y)
	return y
}

func masksQ5K(bool) []VecVirtual { return byteMasks(0x0f, 0x10) }

func wordsQ5K(w Register, masks []VecVirtual, direct bool, yield yield) {
	const bits, at = 16, 48
	for i := range 2 {
		// Blocks below 4 have their bit in the low half of a byte, the others in the high half.
		h, low := YMM(), YMM()
		VBROADCASTI128(mem(w, bits+16*i), h)
		VPSLLW(U8(4), h, low)
		VPBLENDD(U8(0x0f), low, h, h)
		splitBytes(i, masks[0], direct, yield, func(b int) VecVirtual {
			y := masked(shifted(pair(w, at+b/2*32+16*i, at+64+b/2*32+16*i), b%2*4), masks[1])
			VPOR(masked(shifted(h, b), masks[2]), y, y)
			return y
		})
	}
}

func masksQ3K(bool) []VecVirtual { return byteMasks(0x03, 0x04) }

// wordsQ3K leaves values from 0 to 7: the third bit says that 4 is not to be subtracted.
func wordsQ3K(w Register, masks []VecVirtual, direct bool, yield yield) {
	const bits, at = 0, 32
	for i := range 2 {
		q, h, low := pair(w, at+16*i, at+32+16*i), YMM(), YMM()
		VBROADCASTI128(mem(w, bits+16*i), h)
		VPSLLW(U8(2), h, low)
		VPSRLW(U8(2), h, h)
		VPBLENDD(U8(0x0f), low, h, h)
		splitBytes(i, masks[0], direct, yield, func(b int) VecVirtual {
			y := masked(shifted(q, 2*b), masks[1])
			VPOR(masked(shifted(h, b), masks[2]), y, y)
			return y
		})
	}
}

// scalesQ3K joins the low 4 bits of 16 scales with their high 2 bits.
func scalesQ3K(w Register, stack Mem) (scale, minimum []VecVirtual) {
	const at, d = 96, 108
	var parts [4]GPVirtual
	for k := range parts {
		low, high := GP32(), GP32()
		MOVL(mem(w, at+k%2*4), low)
		MOVL(mem(w, at+8), high)
		if k >= 2 {
			SHRL(U8(4), low)
		}
		ANDL(U32(0x0f0f0f0f), low)
		if k < 2 {
			SHLL(U8(4-2*k), high)
		} else if k == 3 {
			SHRL(U8(2), high)
		}
		ANDL(U32(0x30303030), high)
		ORL(high, low)
		parts[k] = low
	}
	storePair(parts[0], parts[1], stack)
	storePair(parts[2], parts[3], stack.Offset(8))
	halves, f := XMM(), YMM()
	VCVTPH2PS(mem(w, d-6), halves) // three that are no numbers, d
	VMOVUPS(halves, stack.Offset(16))
	VBROADCASTSS(stack.Offset(28), f)
	for half := range 2 {
		y := YMM()
		VPMOVZXBD(stack.Offset(8*half), y)
		VPSUBD(constant("thirtytwo", 32), y, y)
		VCVTDQ2PS(y, y)
		VMULPS(f, y, y)
		scale = append(scale, y)
	}
	return scale, nil
}

func masksQ2K(bool) []VecVirtual {
	return []VecVirtual{loadConstant("two", 0x00030003)}
}

func wordsQ2K(w Register, masks []VecVirtual, _ bool, yield yield) {
	const at = 16
	for i := range 2 {
		q := pair(w, at+16*i, at+32+16*i)
		for odd := range 2 {
			for b := range 4 {
				yield(i, odd, b, masked(shifted(q, 2*b+8*odd), masks[0]))
			}
		}
	}
}

func scalesQ2K(w Register, stack Mem) (scale, minimum []VecVirtual) {
	const d = 80
	all, low, halves := XMM(), XMM(), XMM()
	VMOVDQU(mem(w, 0), all)
	VPAND(constant("bytes0f", 0x0f0f0f0f), all, low)
	VPSRLW(U8(4), all, all)
	VPAND(constant("bytes0f", 0x0f0f0f0f), all, all)
	VCVTPH2PS(mem(w, d-4), halves) // two that are no numbers, d, dmin
	VMOVUPS(halves, stack)
	for k, bytes := range []VecVirtual{low, all} {
		f := YMM()
		VBROADCASTSS(stack.Offset(8+4*k), f)
		for half := range 2 {
			y := YMM()
			if half == 1 {
				VPSRLDQ(U8(8), bytes, bytes)
			}
			VPMOVZXBD(bytes, y)
			VCVTDQ2PS(y, y)
			VMULPS(f, y, y)
			if k == 0 {
				scale = append(scale, y)
			} else {
				minimum = append(minimum, y)
			}
		}
	}
	return scale, minimum
}
