package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// prefetchAhead is how many bytes ahead rows are fetched. Measured: 4 KiB gives the speed of memory,
// 1 KiB three quarters of it, and 8 KiB a little less again.
const prefetchAhead = 4096

// rows emits the product of rows of stored weights with one row of activations.
func (f *format) rows() {
	begin("intRows"+f.name+"AVX2",
		"func(w *byte, rowBytes int, rows int, groups int, mask *uint32, tail *byte, words *byte, acts *byte, out *float32)",
		"writes an output for each of rows ≥ 1 rows of groups whole groups.\n"+
			"If mask is not nil each row ends with a part of a group: mask is all ones for the blocks that it has. What follows\n"+
			"the row in memory is read too, unless tail points to a copy of the part. Only formats of blocks of 32 look at mask.")
	w, rows, out := param("w"), param("rows"), param("out")
	r := rowState{w: GP64(), words: GP64(), acts: GP64(), masks: f.masks(true), s: YMM(), stack: AllocLocal(32)}
	n := GP64()
	Label("row")
	VXORPS(r.s, r.s, r.s)
	MOVQ(w, r.w)
	Load(Param("words"), r.words)
	Load(Param("acts"), r.acts)
	Load(Param("groups"), n)
	if f.tails {
		TESTQ(n, n)
		JZ(LabelRef("tail"))
	}
	Label("group")
	for i := 0; i < f.group; i += 64 {
		PREFETCHT0(mem(r.w, prefetchAhead+i))
	}
	f.rowGroup(r)
	ADDQ(U32(uint32(f.group)), r.w)
	ADDQ(U32(wordsSize), r.words)
	ADDQ(U32(actSize), r.acts)
	DECQ(n)
	JNZ(LabelRef("group"))
	if f.tails {
		Label("tail")
		f.rowTail(r)
		Label("end")
	}
	VMOVSS(total(r.s), mem(out, 0))
	ADDQ(U8(4), out)
	step := param("rowBytes")
	ADDQ(step, w)
	DECQ(rows)
	JNZ(LabelRef("row"))
	end()
}

// rowTail adds the part of a group that ends a row.
func (f *format) rowTail(r rowState) {
	mask, tail := param("mask"), param("tail")
	TESTQ(mask, mask)
	JZ(LabelRef("end"))
	TESTQ(tail, tail)
	CMOVQNE(tail, r.w)
	r.mask = YMM()
	VMOVDQU(mem(mask, 0), r.mask)
	f.rowGroup(r)
}

// rowState is where a row stands: pointers to the group's weights and activations, running sums.
type rowState struct {
	w, words, acts GPVirtual
	masks          []VecVirtual
	s              VecVirtual
	mask           VecVirtual // of the runs that count; nil if all do
	stack          Mem
}

// rowGroup adds a group's runs to the running sums.
func (f *format) rowGroup(r rowState) {
	if f.run == 32 {
		f.addRuns32(r)
	} else {
		f.addRuns16(r)
	}
}

// multiply returns the products of y with the activations of a block's unit.
func (r rowState) multiply(y VecVirtual, block, i, odd int) VecVirtual {
	p := YMM()
	VPMADDWD(mem(r.words, block*128+i*64+odd*32), y, p)
	return p
}

// hadd adds neighbours as VPHADDD does, with one micro-operation less.
func hadd(a, b VecVirtual) VecVirtual {
	y := YMM()
	VSHUFPS(U8(0x88), b, a, y)
	VSHUFPS(U8(0xdd), b, a, a)
	VPADDD(y, a, a)
	return a
}

func (f *format) addRuns32(r rowState) {
	var t [4]sum
	f.words(r.w, r.masks, true, func(i, odd, block int, y VecVirtual) {
		t[block].add(r.multiply(y, block, i, odd))
	})
	v := hadd(hadd(t[0].y, t[1].y), hadd(t[2].y, t[3].y))
	if f.twist {
		VPSRAVD(constant("twist", 0, 4), v, v)
	}
	if f.shifts != nil {
		VPSRAVD(constant("shifts"+f.name, f.shifts...), v, v)
	}
	f.subtractZero(v, mem(r.acts, actSum32))
	if f.zeros != nil {
		z := f.zeros(r.w)
		VPMULLD(mem(r.acts, actSum32), z, z)
		VPSUBD(z, v, v)
	}
	VCVTDQ2PS(v, v)
	scale, minimum := f.scales(r.w, r.stack)
	if r.mask != nil {
		for _, y := range append(scale, minimum...) {
			VANDPS(r.mask, y, y)
		}
	}
	VMULPS(mem(r.acts, actScale), scale[0], scale[0])
	VFMADD231PS(scale[0], v, r.s)
	switch f.offset {
	case -1:
		VFNMADD231PS(mem(r.acts, actOffset), minimum[0], r.s)
	case 1:
		VFMADD231PS(mem(r.acts, actOffset), minimum[0], r.s)
	}
}

// subtractZero takes the format's zero point from the integer sums v; actSums are Σq of the runs.
func (f *format) subtractZero(v VecVirtual, actSums Mem) {
	switch f.zero {
	case 0:
		return
	case 1:
		VPSUBD(actSums, v, v)
		return
	}
	z := YMM()
	VMOVDQU(actSums, z)
	VPSLLD(U8(log2(f.zero)), z, z)
	VPSUBD(z, v, v)
}

func (f *format) addRuns16(r rowState) {
	var t [2][4]sum
	var h [4]VecVirtual
	f.words(r.w, r.masks, true, func(i, odd, block int, y VecVirtual) {
		t[i][block].add(r.multiply(y, block, i, odd))
		if i == 1 && odd == 1 { // early, to free a register
			h[block] = hadd(t[0][block].y, t[1][block].y)
		}
	})
	a, b := hadd(h[0], h[1]), hadd(h[2], h[3]) // runs 0–3 and 8–11, runs 4–7 and 12–15
	runs := [2]VecVirtual{YMM(), YMM()}
	VPERM2I128(U8(0x20), b, a, runs[0])
	VPERM2I128(U8(0x31), b, a, runs[1])
	scale, minimum := f.scales(r.w, r.stack)
	for half, v := range runs {
		f.subtractZero(v, mem(r.acts, actSum16+32*half))
		VCVTDQ2PS(v, v)
		if f.wild && r.mask != nil {
			VANDPS(spread(half, r.mask), scale[half], scale[half])
		}
		actScales := spread(half, mem(r.acts, actScale))
		VMULPS(actScales, scale[half], scale[half])
		VFMADD231PS(scale[half], v, r.s)
		if f.offset != 0 {
			o := YMM()
			VCVTDQ2PS(mem(r.acts, actSum16+32*half), o)
			VMULPS(actScales, o, o)
			VFNMADD231PS(o, minimum[half], r.s)
		}
	}
}

// spread returns 8 scales of runs of 16 from the group's 8 scales of blocks of 32.
func spread(half int, scales Op) VecVirtual {
	y := YMM()
	if half == 0 {
		VMOVDQU(constant("spread0", 0, 0, 1, 1, 2, 2, 3, 3), y)
	} else {
		VMOVDQU(constant("spread1", 4, 4, 5, 5, 6, 6, 7, 7), y)
	}
	VPERMD(scales, y, y)
	return y
}

func log2(n int32) uint8 {
	k := uint8(0)
	for ; n > 1; n /= 2 {
		k++
	}
	return k
}

// unpack emits the filling of a panel row.
func (f *format) unpack() {
	begin("unpack"+f.name+"AVX2", "func(dst *byte, src *byte, n int)", "unpacks n ≥ 1 groups to panel groups.")
	dst := param("dst")
	src := param("src")
	n := param("n")
	masks, stack := f.masks(false), AllocLocal(32)
	loop("group", n, func() {
		for i := 0; i < f.group; i += 64 {
			PREFETCHT1(mem(src, prefetchAhead+i))
		}
		var y [4]VecVirtual
		var zeros VecVirtual // in both words of each dword
		if f.zeros != nil {
			zeros = f.zeros(src)
			z := YMM()
			VPSLLD(U8(16), zeros, z)
			VPOR(z, zeros, zeros)
		}
		f.words(src, masks, false, func(i, odd, block int, v VecVirtual) {
			if zeros != nil {
				z := YMM()
				VPSHUFD(U8(block*0x55), zeros, z)
				VPSUBW(z, v, v)
			}
			if f.zero != 0 {
				z := uint32(f.zero) * 0x00010001
				VPSUBW(constant("zero"+f.name, z), v, v)
			}
			y[block] = v
			if block == 3 {
				storeLanes(dst, (i*2+odd)*4, y)
			}
		})
		f.storeScales(dst, src, stack)
		ADDQ(U32(panelSize), dst)
		ADDQ(U32(uint32(f.group)), src)
	})
	end()
}

// storeLanes stores words of blocks 0–3 (low halves) and 4–7 (high halves) so that each vector from v
// on holds one pair of every block, in their order.
func storeLanes(dst Register, v int, y [4]VecVirtual) {
	var t [4]VecVirtual
	for i := range t {
		t[i] = YMM()
	}
	VPUNPCKLDQ(y[1], y[0], t[0])
	VPUNPCKLDQ(y[3], y[2], t[1])
	VPUNPCKHDQ(y[1], y[0], t[2])
	VPUNPCKHDQ(y[3], y[2], t[3])
	for d := range 4 {
		z := YMM()
		if d%2 == 0 {
			VPUNPCKLQDQ(t[d/2*2+1], t[d/2*2], z)
		} else {
			VPUNPCKHQDQ(t[d/2*2+1], t[d/2*2], z)
		}
		VMOVDQU(z, mem(dst, 32*(v+d)))
	}
}

func (f *format) storeScales(dst, src Register, stack Mem) {
	scale, minimum := f.scales(src, stack)
	for i, y := range scale {
		VMOVUPS(y, mem(dst, panelScale+32*i))
	}
	for i, y := range minimum {
		if f.offset > 0 {
			VXORPS(constant("sign", 0x80000000), y, y)
		}
		VMOVUPS(y, mem(dst, panelMin+32*i))
	}
}
