package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Direct products with AVX-512 of the formats in lookups: 32 words of weights at a time meet as many
// activations in VPDPWSSD.
//
// In the order of points, vector 4h+g holds the eight values with number g of blocks 2h, 2h+4, 2h+1 and
// 2h+5, in lanes of 128 bits; the values of runs of 16 are those of g below 2 and above. Formats that
// unpack words take the order of words as it is, where vector 2b+i holds half i of blocks b and b+4, first
// the even values of both and then the odd ones.

// lookup512 is a format with such a loop.
type lookup512 struct {
	name   string
	group  int // bytes of a group of 256
	run    int
	tails  bool
	points bool // takes the order of points
	zero   bool // 1 is subtracted from every stored integer

	shifts []uint32 // bits by which runs of 32 stay shifted, repeated; nil if none do

	// extra, if there is one, adds to the sums of 8 runs what words leave out.
	extra func(r rowState, v VecVirtual)

	// bind loads what the loop keeps in registers and returns the parts of its body. words yields
	// vectors, by number. scales returns those of 8 runs, or of 16 in one register or in two.
	bind func(points Register) (words func(w Register, yield func(v int, z VecVirtual)), scales func(w Register) []VecVirtual)
}

var lookups512 = []*lookup512{
	{name: "IQ1S", group: 50, run: 32, points: true, bind: bindIQ1S512, extra: extraIQ1S},
	{name: "IQ1M", group: 56, run: 16, points: true, bind: bindIQ1M512},
	{name: "IQ2XXS", group: 66, run: 32, points: true, bind: bindIQ2XXS512},
	{name: "IQ2XS", group: 74, run: 16, points: true, bind: bindIQ2XS512},
	{name: "IQ2S", group: 82, run: 16, points: true, bind: bindIQ2S512},
	{name: "IQ3XXS", group: 98, run: 32, points: true, bind: bindIQ3XXS512},
	{name: "IQ3S", group: 110, run: 32, points: true, bind: bindIQ3S512},
	{name: "IQ4XS", group: 136, run: 32, points: true, bind: bindIQ4XS512},
	{name: "TQ1_0", group: 54, run: 32, zero: true, bind: bindTQ1512},
	{name: "TQ2_0", group: 66, run: 32, zero: true, shifts: []uint32{0, 2, 4, 6}, bind: bindTQ2512},
	{name: "Q1_0", group: 2 * 18, run: 32, points: true, tails: true, bind: bindQ1512},
	{name: "Q2_0", group: 4 * 18, run: 32, points: true, zero: true, tails: true, bind: bindQ2512},
	{name: "MXFP4", group: 8 * 17, run: 32, points: true, tails: true, bind: bindMXFP4512},
	{name: "NVFP4", group: 4 * 36, run: 16, points: true, tails: true, bind: bindNVFP4512},
}

type (
	words512Func  = func(w Register, yield func(v int, z VecVirtual))
	scales512Func = func(w Register) []VecVirtual
)

// rows emits the product of rows of stored weights with one row of activations.
func (f *lookup512) rows() {
	begin("intRows"+f.name+"AVX512",
		"func(w *byte, rowBytes int, rows int, groups int, mask *uint32, tail *byte, words *byte, acts *byte, out *float32, points *byte)",
		"is as intRows"+f.name+"AVX2; some formats take words in the order of points.")
	w, out, points := param("w"), param("out"), param("points")
	rows, err := Param("rows").Resolve() // counted in memory: registers are short
	if err != nil {
		panic(err)
	}
	s, r := YMM(), rowState{w: GP64(), words: GP64(), acts: GP64()}
	words, scales := f.bind(points)
	body := func() { f.addGroup(r, s, words, scales) }
	n := GP64()
	Label("row")
	VXORPS(s, s, s)
	MOVQ(w, r.w)
	Load(Param("words"), r.words)
	Load(Param("acts"), r.acts)
	Load(Param("groups"), n)
	if f.tails {
		TESTQ(n, n)
		JZ(LabelRef("tail"))
	}
	loop("group", n, func() {
		for i := 0; i < f.group; i += 64 {
			PREFETCHT0(mem(r.w, prefetchAhead+i))
		}
		body()
		ADDQ(U32(uint32(f.group)), r.w)
		ADDQ(U32(wordsSize), r.words)
		ADDQ(U32(actSize), r.acts)
	})
	if f.tails {
		Label("tail")
		mask, tail := param("mask"), param("tail")
		TESTQ(mask, mask)
		JZ(LabelRef("end"))
		TESTQ(tail, tail)
		CMOVQNE(tail, r.w)
		r.mask = YMM()
		VMOVDQU(mem(mask, 0), r.mask)
		body()
		Label("end")
	}
	VMOVSS(total(s), mem(out, 0))
	ADDQ(U8(4), out)
	ADDQ(param("rowBytes"), w)
	DECQ(rows.Addr)
	JNZ(LabelRef("row"))
	end()
}

// addGroup adds a group's runs to the running sums s.
func (f *lookup512) addGroup(r rowState, s VecVirtual, words words512Func, scales scales512Func) {
	var acc [4]VecVirtual
	words(r.w, func(v int, z VecVirtual) {
		a := v / 2 // order of words: a block
		if f.points {
			a = v / 4 * 2 // h, or h and the half of a block
			if f.run == 16 {
				a += v / 2 % 2
			}
		}
		if acc[a] == nil {
			acc[a] = ZMM()
			VPMADDWD(mem(r.words, 64*v), z, acc[a])
		} else {
			VPDPWSSD(mem(r.words, 64*v), z, acc[a])
		}
	})
	switch {
	case !f.points:
		f.fold8(r, s, wordSums(acc), scales(r.w)[0])
	case f.run == 32:
		f.fold8(r, s, pointSums(acc[0], acc[2]), scales(r.w)[0])
	default:
		fold16(r, s, pointSums16(acc), scales(r.w))
	}
}

// unpackAdd joins neighbours: of four dwords each, a0+a2, b0+b2, a1+a3, b1+b3.
func unpackAdd(a, b VecVirtual) VecVirtual {
	lo, hi := ZMM(), ZMM()
	VPUNPCKLDQ(b, a, lo)
	VPUNPCKHDQ(b, a, hi)
	VPADDD(hi, lo, lo)
	return lo
}

// transposeAdd returns the sums of four dwords of a, b, c and d in each lane.
func transposeAdd(a, b, c, d VecVirtual) VecVirtual {
	x, y, lo, hi := unpackAdd(a, b), unpackAdd(c, d), ZMM(), ZMM()
	VPUNPCKLQDQ(y, x, lo)
	VPUNPCKHQDQ(y, x, hi)
	VPADDD(hi, lo, lo)
	return lo
}

// wordSums returns the sums of the 8 blocks; acc[b] has blocks b and b+4, twice.
func wordSums(acc [4]VecVirtual) VecVirtual {
	z, y := transposeAdd(acc[0], acc[1], acc[2], acc[3]), YMM()
	VEXTRACTI64X4(U8(1), z, y)
	VPADDD(y, z.AsY(), y)
	return y
}

// pointSums returns the sums of the 8 blocks; a has blocks 0, 4, 1, 5, and b 2, 6, 3, 7.
func pointSums(a, b VecVirtual) VecVirtual {
	z, t := unpackAdd(a, b), ZMM()
	VPSHUFD(U8(0x4e), z, t)
	VPADDD(t, z, z)
	VMOVDQU32(wideConstant("pointBlocks", 0, 8, 1, 9, 4, 12, 5, 13, 0, 8, 1, 9, 4, 12, 5, 13), t)
	VPERMD(z, t, z)
	return z.AsY().(VecVirtual)
}

// pointSums16 returns the sums of the 16 runs.
func pointSums16(acc [4]VecVirtual) VecVirtual {
	z, t := transposeAdd(acc[0], acc[1], acc[2], acc[3]), ZMM()
	VMOVDQU32(wideConstant("pointRuns", 0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15), t)
	VPERMD(z, t, z)
	return z
}

// fold8 adds 8 runs with the integer sums v to s.
func (f *lookup512) fold8(r rowState, s, v, scale VecVirtual) {
	if f.shifts != nil {
		VPSRAVD(constant("shifts"+f.name, f.shifts...), v, v)
	}
	if f.zero {
		VPSUBD(mem(r.acts, actSum32), v, v)
	}
	if f.extra != nil {
		f.extra(r, v)
	}
	VCVTDQ2PS(v, v)
	if r.mask != nil {
		VANDPS(r.mask, scale, scale)
	}
	VMULPS(mem(r.acts, actScale), scale, scale)
	VFMADD231PS(scale, v, s)
}

// fold16 adds 16 runs, of which the second eight come last.
func fold16(r rowState, s, v VecVirtual, scale []VecVirtual) {
	act, at, upper := ZMM(), ZMM(), YMM()
	VBROADCASTF64X4(mem(r.acts, actScale), act)
	VMOVDQU32(wideConstant("twiceEach", 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7), at)
	VPERMPS(act, at, act)
	VCVTDQ2PS(v, v)
	VEXTRACTF64X4(U8(1), v, upper)
	low, high := scale[0], YMM()
	if len(scale) == 1 {
		VMULPS(act, low, low)
		VEXTRACTF64X4(U8(1), low, high)
	} else {
		VEXTRACTF64X4(U8(1), act, high)
		VMULPS(scale[1], high, high)
		VMULPS(act.AsY(), low, low)
	}
	VFMADD231PS(low.AsY(), v.AsY(), s)
	VFMADD231PS(high, upper, s)
}

// wideConstant is constant for 16 words of 32 bits.
func wideConstant(name string, words ...uint32) Mem {
	if m, ok := constants[name]; ok {
		return m
	}
	m := GLOBL("matmul512_"+name, RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(words[i%len(words)]))
	}
	constants[name] = m
	return m
}

func loadWide(name string, words ...uint32) VecVirtual {
	z := ZMM()
	VMOVDQU32(wideConstant(name, words...), z)
	return z
}

// maskOf returns a mask register.
func maskOf(bits uint32) Register {
	r, k := GP32(), K()
	MOVL(U32(bits), r)
	KMOVW(r, k)
	return k
}

// pointWords emits the reordering of activations from the order of words to that of points.
func pointWords() {
	begin("pointWordsAVX2", "func(dst *byte, src *byte, groups int)", "reorders groups ≥ 1 groups of words for the AVX-512 loops of points.")
	dst, src, groups := param("dst"), param("src"), param("groups")
	loop("group", groups, func() {
		for u := range 8 { // half u%2 of blocks u/2 and u/2+4
			even, odd, first, second := YMM(), YMM(), YMM(), YMM()
			VMOVDQU(mem(src, 64*u), even)
			VMOVDQU(mem(src, 64*u+32), odd)
			VPUNPCKLWD(odd, even, first)
			VPUNPCKHWD(odd, even, second)
			h, upper, g := u/4, u/2%2, u%2*2
			VMOVDQU(first, mem(dst, (h*4+g)*64+32*upper))
			VMOVDQU(second, mem(dst, (h*4+g+1)*64+32*upper))
		}
		ADDQ(U32(wordsSize), src)
		ADDQ(U32(wordsSize), dst)
	})
	end()
}
