package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// format is a block format with AVX2 loops. A group is 256 weights.
type format struct {
	name   string
	group  int // bytes of a group
	run    int // values that share a scale
	tails  bool
	offset int // sign with which min joins the products: −1 subtracts, +1 adds, 0 has none

	zero  int32 // what is subtracted from every stored integer
	twist bool  // in direct products the odd runs of 32 stay multiplied by 16

	// words unpacks the 8 blocks of 32: yield(i, odd, block, y) for half i of blocks 0 to 3. y holds 8
	// words of that block and then 8 of block+4, of even or odd index. Unless direct, it keeps the
	// order of the first three arguments.
	words func(w Register, masks []VecVirtual, direct bool, yield yield)
	// masks returns the constants that words needs in registers.
	masks func(direct bool) []VecVirtual
	// scales returns the scales and minima of the runs, in order. It may use 32 bytes of stack: what
	// is stored and loaded again comes widened or broadcast without an operation of the vector units.
	scales func(w Register, stack Mem) (scale, minimum []VecVirtual)
}

// yield takes one unpacked vector, see format.words.
type yield func(i, odd, block int, y VecVirtual)

var formats = []*format{
	{name: "Q4_0", group: 8 * 18, run: 32, tails: true, zero: 8,
		words: nibbleWords(18, 2), masks: masksNibble, scales: halfScales(18)},
	{name: "Q4_1", group: 8 * 20, run: 32, tails: true, offset: 1,
		words: nibbleWords(20, 4), masks: masksNibble, scales: scalesQ4_1},
	{name: "Q8_0", group: 8 * 34, run: 32, tails: true,
		words: wordsQ8_0, masks: noMasks, scales: halfScales(34)},
	{name: "Q4K", group: 144, run: 32, offset: -1, twist: true,
		words: wordsQ4K, masks: masksQ4K, scales: scalesQ4K},
	{name: "Q6K", group: 210, run: 16, zero: 32,
		words: wordsQ6K, masks: masksQ6K, scales: scalesQ6K},
}

// pairs loads 32 bytes at a and 32 at b; the results hold the first halves of both, and the second
// halves. Whole loads matter: a processor does only two of them in a cycle.
func pairs(base Register, a, b int) [2]VecVirtual {
	x, y, lo := YMM(), YMM(), YMM()
	VMOVDQU(mem(base, a), x)
	VMOVDQU(mem(base, b), y)
	VINSERTI128(U8(1), y.AsX(), x, lo)
	VPERM2I128(U8(0x31), y, x, y)
	return [2]VecVirtual{lo, y}
}

// pair loads 16 bytes at lo into the low half, and 16 at hi into the high half.
func pair(base Register, lo, hi int) VecVirtual {
	y := YMM()
	VBROADCASTI128(mem(base, lo), y)
	VINSERTI128(U8(1), mem(base, hi), y, y)
	return y
}

// Masks are loaded once, before the loop: operands in memory would compete with the activations.
func noMasks(bool) []VecVirtual { return nil }

func masksNibble(bool) []VecVirtual { return []VecVirtual{loadConstant("nibble", 0x000f000f)} }

func masksQ4K(direct bool) []VecVirtual {
	m := masksNibble(direct)
	if direct {
		m = append(m, loadConstant("nibble16", 0x00f000f0))
	}
	return m
}

func masksQ6K(bool) []VecVirtual {
	return []VecVirtual{loadConstant("bytes0f", 0x0f0f0f0f), loadConstant("bytes30", 0x30303030), loadConstant("bytes00ff", 0x00ff00ff)}
}

// shifted returns y shifted right by n bits in words, or y itself if n is 0.
func shifted(y VecVirtual, n int) VecVirtual {
	if n == 0 {
		return y
	}
	t := YMM()
	VPSRLW(U8(n), y, t)
	return t
}

func masked(y, m VecVirtual) VecVirtual {
	t := YMM()
	VPAND(m, y, t)
	return t
}

// nibbleWords unpacks 8 blocks of 16 bytes: the low nibbles are a block's first half.
func nibbleWords(size, at int) func(Register, []VecVirtual, bool, yield) {
	return func(w Register, masks []VecVirtual, _ bool, yield yield) {
		var bytes [4]VecVirtual
		for b := range bytes {
			bytes[b] = pair(w, b*size+at, (b+4)*size+at)
		}
		for k := range 4 {
			i, odd := k/2, k%2
			for b, y := range bytes {
				y = shifted(y, 4*i+8*odd)
				if k < 3 {
					y = masked(y, masks[0])
				}
				yield(i, odd, b, y)
			}
		}
	}
}

func wordsQ8_0(w Register, _ []VecVirtual, direct bool, yield yield) {
	var halves [4][2]VecVirtual
	load := func(b int) { halves[b] = pairs(w, b*34+2, (b+4)*34+2) }
	even := func(i, b int) {
		y := YMM()
		VPSLLW(U8(8), halves[b][i], y)
		VPSRAW(U8(8), y, y)
		yield(i, 0, b, y)
	}
	odd := func(i, b int) {
		y := halves[b][i]
		VPSRAW(U8(8), y, y)
		yield(i, 1, b, y)
	}
	if direct {
		for b := range 4 {
			load(b)
			for i := range 2 {
				even(i, b)
				odd(i, b)
			}
		}
		return
	}
	for b := range 4 {
		load(b)
	}
	for i := range 2 {
		for b := range 4 {
			even(i, b)
		}
		for b := range 4 {
			odd(i, b)
		}
	}
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

func wordsQ6K(w Register, masks []VecVirtual, direct bool, yield yield) {
	low := [2][2]VecVirtual{pairs(w, 0, 64), pairs(w, 32, 96)}
	high := pairs(w, 128, 160)
	for i := range 2 {
		var bytes [4]VecVirtual
		for b := range bytes {
			bytes[b] = byteQ6K(low[b%2][i], high[i], b, masks)
			if direct {
				yield(i, 0, b, masked(bytes[b], masks[2]))
				yield(i, 1, b, shifted(bytes[b], 8))
			}
		}
		for k := 0; k < 8 && !direct; k++ {
			if b := k % 4; k < 4 {
				yield(i, 0, b, masked(bytes[b], masks[2]))
			} else {
				yield(i, 1, b, shifted(bytes[b], 8))
			}
		}
	}
}

// byteQ6K returns bytes of block b: 4 low and 2 high bits.
func byteQ6K(low, high VecVirtual, b int, masks []VecVirtual) VecVirtual {
	y := masked(shifted(low, b/2*4), masks[0])
	h := YMM()
	switch b {
	case 0, 1:
		VPSLLW(U8(4-2*b), high, h)
	case 2:
		h = high
	case 3:
		h = shifted(high, 2)
	}
	VPOR(masked(h, masks[1]), y, y)
	return y
}

// halfScales reads the f16 scale at the start of each of 8 blocks.
func halfScales(size int) func(Register, Mem) (scale, minimum []VecVirtual) {
	return func(w Register, _ Mem) ([]VecVirtual, []VecVirtual) {
		x, y := XMM(), YMM()
		var quads [2]GPVirtual
		for q := range quads {
			quads[q] = GP64()
			MOVWQZX(mem(w, (4*q+3)*size), quads[q])
			for b := 2; b >= 0; b-- {
				h := GP64()
				SHLQ(U8(16), quads[q])
				MOVWQZX(mem(w, (4*q+b)*size), h)
				ORQ(h, quads[q])
			}
		}
		VMOVQ(quads[0], x)
		VPINSRQ(U8(1), quads[1], x, x)
		VCVTPH2PS(x, y)
		return []VecVirtual{y}, nil
	}
}

// scalesQ4_1 reads the f16 pairs at the start of 8 blocks. Each blend reads so far before its block
// that the pair falls into its lane.
func scalesQ4_1(w Register, _ Mem) (scale, minimum []VecVirtual) {
	y, d, m := YMM(), YMM(), YMM()
	VMOVDQU(mem(w, 0), y)
	for b := 1; b < 8; b++ {
		VPBLENDD(U8(1<<b), mem(w, 16*b), y, y)
	}
	VPSHUFB(splitWords(), y, y)
	VPERMQ(U8(0xd8), y, y) // eight scales, eight minima
	VCVTPH2PS(y.AsX(), d)
	VEXTRACTI128(U8(1), y, y.AsX())
	VCVTPH2PS(y.AsX(), m)
	return []VecVirtual{d}, []VecVirtual{m}
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
	halves := XMM()
	VCVTPH2PS(mem(w, 0), halves) // d, dmin, two that are no numbers
	VMOVUPS(halves, stack.Offset(16))
	widen := func(low, high GPVirtual, k int) VecVirtual {
		SHLQ(U8(32), high.As64())
		ORQ(low.As64(), high.As64())
		MOVQ(high.As64(), stack.Offset(8*k))
		y, d := YMM(), YMM()
		VPMOVZXBD(stack.Offset(8*k), y)
		VCVTDQ2PS(y, y)
		VBROADCASTSS(stack.Offset(16+4*k), d)
		VMULPS(d, y, y)
		return y
	}
	scale = []VecVirtual{widen(s, sHigh, 0)}
	return scale, []VecVirtual{widen(m, mHigh, 1)}
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
