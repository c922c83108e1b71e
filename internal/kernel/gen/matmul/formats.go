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

	shifts []uint32 // bits by which runs of 32 stay shifted in direct products, repeated; nil if none do

	// words unpacks the 8 blocks of 32: yield(i, odd, block, y) for half i of blocks 0 to 3. y holds 8
	// words of that block and then 8 of block+4, of even or odd index. Unless direct, it keeps the
	// order of the first three arguments.
	words func(w Register, masks []VecVirtual, direct bool, yield yield)
	// masks returns the constants that words needs in registers.
	masks func(direct bool) []VecVirtual
	// scales returns the scales and minima of the runs, in order. It may use 32 bytes of stack: what
	// is stored and loaded again comes widened or broadcast without an operation of the vector units.
	scales func(w Register, stack Mem) (scale, minimum []VecVirtual)
	// zeros returns zero points of the runs of 32 as int32, where they have their own; else it is nil.
	zeros func(w Register) VecVirtual
	// wild says that scales of runs of 16 that a row lacks may be NaN: they are masked.
	wild bool
}

// yield takes one unpacked vector, see format.words.
type yield func(i, odd, block int, y VecVirtual)

var formats = []*format{
	{name: "Q4_0", group: 8 * 18, run: 32, tails: true, zero: 8,
		words: nibbleWords(18, 2), masks: masksNibble, scales: halfScales(18)},
	{name: "Q4_1", group: 8 * 20, run: 32, tails: true, offset: 1,
		words: nibbleWords(20, 4), masks: masksNibble, scales: halfPairs(20)},
	{name: "Q5_0", group: 8 * 22, run: 32, tails: true, zero: 16,
		words: wordsOf(halfQ5(22, 2, 6)), masks: masksQ5, scales: halfScales(22)},
	{name: "Q5_1", group: 8 * 24, run: 32, tails: true, offset: 1,
		words: wordsOf(halfQ5(24, 4, 8)), masks: masksQ5, scales: halfPairs(24)},
	{name: "Q8_0", group: 8 * 34, run: 32, tails: true,
		words: wordsQ8_0, masks: noMasks, scales: halfScales(34)},
	{name: "IQ4NL", group: 8 * 18, run: 32, tails: true,
		words: wordsOf(halfIQ4NL), masks: masksIQ4NL, scales: halfScales(18)},
	{name: "Q2K", group: 84, run: 16, offset: -1,
		words: wordsQ2K, masks: masksQ2K, scales: scalesQ2K},
	{name: "Q3K", group: 110, run: 16, zero: 4,
		words: wordsQ3K, masks: masksQ3K, scales: scalesQ3K},
	{name: "Q4K", group: 144, run: 32, offset: -1, twist: true,
		words: wordsQ4K, masks: masksQ4K, scales: scalesQ4K},
	{name: "Q5K", group: 176, run: 32, offset: -1,
		words: wordsQ5K, masks: masksQ5K, scales: scalesQ4K},
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
	return nibbleWordsAt(func(b int) int { return b*size + at })
}

// nibbleWordsAt is nibbleWords for blocks that lie anywhere.
func nibbleWordsAt(at func(b int) int) func(Register, []VecVirtual, bool, yield) {
	return func(w Register, masks []VecVirtual, _ bool, yield yield) {
		var bytes [4]VecVirtual
		for b := range bytes {
			bytes[b] = pair(w, at(b), at(b+4))
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

// halfPairs reads the f16 scale and minimum at the start of each of 8 blocks. Each blend reads so far
// before its block that the pair falls into its lane.
func halfPairs(size int) func(Register, Mem) (scale, minimum []VecVirtual) {
	return func(w Register, _ Mem) ([]VecVirtual, []VecVirtual) {
		y, d, m := YMM(), YMM(), YMM()
		VMOVDQU(mem(w, 0), y)
		for b := 1; b < 8; b++ {
			VPBLENDD(U8(1<<b), mem(w, (size-4)*b), y, y)
		}
		VPSHUFB(splitWords(), y, y)
		VPERMQ(U8(0xd8), y, y) // eight scales, eight minima
		VCVTPH2PS(y.AsX(), d)
		VEXTRACTI128(U8(1), y, y.AsX())
		VCVTPH2PS(y.AsX(), m)
		return []VecVirtual{d}, []VecVirtual{m}
	}
}
