package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// blocked is a row format of quant: blocks of values with an f32 scale in front.
type blocked struct {
	values, size, codes int // values and bytes of a block, offset of its codes
	bits                int
}

// at is where the codes of block b of 32 begin.
func (k blocked) at(b int) int {
	per := k.values / 32
	return b/per*k.size + k.codes + b%per*4*k.bits
}

// group is the bytes of 256 values.
func (k blocked) group() int { return 256 / k.values * k.size }

// spread returns the dwords at offset at of the blocks, each in the lanes of its runs of 32.
func (k blocked) spread(w Register, at int) VecVirtual {
	y := YMM()
	VPBROADCASTD(mem(w, at), y)
	per := k.values / 32
	for b := 1; b < 8/per; b++ {
		lanes := (1<<per - 1) << (b * per)
		if per == 1 { // reads before the block, so that the dword falls into its lane
			VPBLENDD(U8(lanes), mem(w, b*k.size+at-4*b), y, y)
			continue
		}
		t := YMM()
		VPBROADCASTD(mem(w, b*k.size+at), t)
		VPBLENDD(U8(lanes), t, y, y)
	}
	return y
}

func (k blocked) scales(w Register, _ Mem) (scale, minimum []VecVirtual) {
	return []VecVirtual{k.spread(w, 0)}, nil
}

// scales127 are those of LLM.int8.
func (k blocked) scales127(w Register, _ Mem) (scale, minimum []VecVirtual) {
	y := k.spread(w, 0)
	VMULPS(constant("inverse127", 0x3c010204), y, y)
	return []VecVirtual{y}, nil
}

// zeros are the bytes behind the scales.
func (k blocked) zeros(w Register) VecVirtual {
	y := k.spread(w, 1)
	VPSRLD(U8(24), y, y)
	return y
}

// words unpacks codes of eight bits, without a sign.
func (k blocked) words(w Register, masks []VecVirtual, direct bool, yield yield) {
	var halves [4][2]VecVirtual
	load := func(b int) { halves[b] = pairs(w, k.at(b), k.at(b+4)) }
	even := func(i, b int) { yield(i, 0, b, masked(halves[b][i], masks[0])) }
	odd := func(i, b int) {
		y := halves[b][i]
		VPSRLW(U8(8), y, y)
		yield(i, 1, b, y)
	}
	for b := range 4 {
		load(b)
		for i := range 2 {
			if direct {
				even(i, b)
				odd(i, b)
			}
		}
	}
	for i := 0; i < 2 && !direct; i++ {
		for b := range 4 {
			even(i, b)
		}
		for b := range 4 {
			odd(i, b)
		}
	}
}

func masksLowByte(bool) []VecVirtual { return []VecVirtual{loadConstant("lowByte", 0x00ff00ff)} }

// groupFormats are the formats of -set group that take the integer path.
func groupFormats() []*format {
	var list []*format
	add := func(name string, k blocked) {
		f := &format{name: fmt.Sprintf("%sx%d", name, k.values), group: k.group(), run: 32, tails: true, scales: k.scales, zeros: k.zeros}
		f.words, f.masks = nibbleWordsAt(k.at), masksNibble
		if k.bits == 8 {
			f.words, f.masks = k.words, masksLowByte
		}
		if name == "LLMInt8" {
			f.scales = k.scales127
		}
		list = append(list, f)
	}
	for _, n := range []int{32, 64, 128} {
		add("Int4", blocked{n, 5 + n/2, 5, 4})
	}
	for _, n := range []int{32, 128} {
		add("Int8", blocked{n, 5 + n, 5, 8})
		add("LLMInt8", blocked{n, 5 + n, 5, 8})
	}
	return list
}

func generateGroup() {
	for _, f := range groupFormats() {
		f.rows()
		f.unpack()
	}
	f := &lookup{format{name: "TensorNVFP4x128", group: 2 * 76, run: 16, tails: true, wild: true}, bindTensorNVFP4}
	f.rows()
	f.unpack()
	floatBlocks("E4M3", 8, e4m3)
	floatBlocks("E5M2", 8, loadE5M2)
	floatBlocks("NF4", 4, loadLevels("nf4", [16]uint32{
		0xbf800000, 0xbf3239b1, 0xbf066b30, 0xbeca32a0, 0xbe91a24d, 0xbe3d353f, 0xbdba7871, 0x00000000,
		0x3da2faff, 0x3e24cae3, 0x3e7c04dd, 0x3ead033a, 0x3ee1a4b8, 0x3f1007ab, 0x3f3913b3, 0x3f800000}))
	floatBlocks("FP4", 4, loadLevels("fp4", [16]uint32{
		0x00000000, 0x3baaaaab, 0x3f2aaaab, 0x3f800000, 0x3eaaaaab, 0x3f000000, 0x3e2aaaab, 0x3e800000,
		0x00000000, 0xbbaaaaab, 0xbf2aaaab, 0xbf800000, 0xbeaaaaab, 0xbf000000, 0xbe2aaaab, 0xbe800000}))
}

func bindTensorNVFP4(Register, Mem) (wordsFunc, scalesFunc) {
	k := blocked{128, 76, 12, 4}
	words := func(w Register, direct bool, yield yield) {
		mask, levels := loadConstant("bytes0f", 0x0f0f0f0f), levelsE2M1()
		var bytes VecVirtual
		splitSigned(direct, yield, func(b, i int) VecVirtual {
			if !direct || i == 0 {
				bytes = pair(w, k.at(b), k.at(b+4))
			}
			return nibbleLevels(bytes, levels, mask, i)
		})
	}
	scales := func(w Register) (scale []VecVirtual) {
		for b := range 2 {
			tensor, y := YMM(), e4m3(mem(w, b*k.size+4))
			VBROADCASTSS(mem(w, b*k.size), tensor)
			VDIVPS(tensor, y, y)
			VMULPS(constant("half", 0x3f000000), y, y)
			scale = append(scale, y)
		}
		return scale
	}
	return words, scales
}

// e4m3 widens 8 numbers of E4M3: below the exponent of an f32 number they are 2^−120 times that.
func e4m3(m Mem) VecVirtual {
	y, not := YMM(), YMM()
	VPMOVZXBD(m, y)
	VPSLLD(U8(24), y, y)
	VPSRAD(U8(4), y, y)
	VPAND(constant("e4m3Magnitude", 0x07f00000), y, not)
	VPAND(constant("e4m3Bits", 0x87f00000), y, y)
	VPCMPEQD(constant("e4m3Magnitude", 0x07f00000), not, not)
	VMULPS(constant("two120", 0x7b800000), y, y)
	VPOR(not, y, y)
	return y
}

// loadE5M2 widens 8 numbers of E5M2: they are the upper halves of f16 numbers.
func loadE5M2(m Mem) VecVirtual {
	x, y := XMM(), YMM()
	VPMOVZXBW(m, x)
	VPSLLW(U8(8), x, x)
	VCVTPH2PS(x, y)
	return y
}

// loadLevels looks up 8 codes of four bits, the high half of a byte first.
func loadLevels(name string, levels [16]uint32) func(Mem) VecVirtual {
	return func(m Mem) VecVirtual {
		low, high, at := constant(name+"Low", levels[:8]...), constant(name+"High", levels[8:]...), YMM()
		VPBROADCASTD(m, at)
		VPSRLVD(constant("highFirst", 4, 0, 12, 8, 20, 16, 28, 24), at, at)
		y, z := YMM(), YMM()
		VPERMPS(low, at, y)
		VPERMPS(high, at, z)
		VPSLLD(U8(28), at, at)
		VBLENDVPS(at, z, y, y)
		return y
	}
}

// floatBlocks emits the loops of a format of codes behind an f32 scale that is decoded to f32. Blocks have
// some parts of 32 values.
func floatBlocks(name string, bits int, load func(Mem) VecVirtual) {
	decodeBlocks(name, bits, load)
	blockRows(name, bits, load)
}

// parts emits a loop over blocks with a loop over the parts of each in it.
func parts(head, part func()) {
	n, parts, left := param("blocks"), param("parts"), GP64()
	loop("block", n, func() {
		head()
		MOVQ(parts, left)
		loop("part", left, part)
	})
}

// blockRows emits the product of 4 rows of blocks with one row of activations.
func blockRows(name string, bits int, load func(Mem) VecVirtual) {
	begin("blockRows"+name+"AVX2", "func(rows **byte, x *float32, blocks int, parts int, out *float32)",
		"writes 4 outputs: rows of at least one block of parts × 32 values, at 4 pointers, times x.")
	ptr, x := param("rows"), param("x")
	var row [4]GPVirtual
	var acc, scale [4]VecVirtual
	for i := range row {
		row[i], acc[i], scale[i] = GP64(), YMM(), YMM()
		MOVQ(mem(ptr, 8*i), row[i])
		VXORPS(acc[i], acc[i], acc[i])
	}
	xv := YMM()
	parts(func() {
		for i := range row {
			VBROADCASTSS(mem(row[i], 0), scale[i])
			ADDQ(U8(4), row[i])
		}
	}, func() {
		for i := range row {
			PREFETCHT0(mem(row[i], 1024))
		}
		for k := range 4 {
			VMOVUPS(mem(x, 32*k), xv)
			for i := range row {
				y := load(mem(row[i], k*bits))
				VMULPS(scale[i], y, y)
				VFMADD231PS(y, xv, acc[i])
			}
		}
		for i := range row {
			ADDQ(U8(4*bits), row[i])
		}
		SUBQ(I8(-128), x)
	})
	VMOVUPS(totals4(acc), mem(param("out"), 0))
	end()
}

// decodeBlocks emits the conversion to f32.
func decodeBlocks(name string, bits int, load func(Mem) VecVirtual) {
	begin("decode"+name+"AVX2", "func(dst *float32, src *byte, blocks int, parts int)", "decodes at least one block of parts × 32 values.")
	dst, src, scale := param("dst"), param("src"), YMM()
	parts(func() {
		VBROADCASTSS(mem(src, 0), scale)
		ADDQ(U8(4), src)
	}, func() {
		for k := range 4 {
			y := load(mem(src, k*bits))
			VMULPS(scale, y, y)
			VMOVUPS(y, mem(dst, 32*k))
		}
		ADDQ(U8(4*bits), src)
		SUBQ(I8(-128), dst)
	})
	end()
}
