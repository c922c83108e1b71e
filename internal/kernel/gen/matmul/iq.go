package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// lookup is a format whose loops may look values up in a table of points. Its words and scales are
// made anew for each function, since they keep registers.
type lookup struct {
	format
	bind func(points Register, stack Mem) (words func(w Register, direct bool, yield yield), scales func(w Register) []VecVirtual)
}

// lookups are the formats of -set iq.
var lookups = []*lookup{
	{format{name: "IQ1S", group: 50, run: 32}, bindIQ1S},
	{format{name: "IQ1M", group: 56, run: 16}, bindIQ1M},
	{format{name: "IQ2XXS", group: 66, run: 32}, bindIQ2XXS},
	{format{name: "IQ2XS", group: 74, run: 16}, bindIQ2XS},
	{format{name: "IQ2S", group: 82, run: 16}, bindIQ2S},
	{format{name: "IQ3XXS", group: 98, run: 32}, bindIQ3XXS},
	{format{name: "IQ3S", group: 110, run: 32}, bindIQ3S},
	{format{name: "IQ4XS", group: 136, run: 32}, bindIQ4XS},
	{format{name: "TQ1_0", group: 54, run: 32, zero: 1}, bindTQ1},
	{format{name: "TQ2_0", group: 66, run: 32, zero: 1, shifts: []uint32{0, 2, 4, 6}}, bindTQ2},
	{format{name: "Q1_0", group: 2 * 18, run: 32, zero: 1, tails: true}, bindQ1},
	{format{name: "Q2_0", group: 4 * 18, run: 32, zero: 1, tails: true}, bindQ2},
	{format{name: "MXFP4", group: 8 * 17, run: 32, tails: true}, bindMXFP4},
	{format{name: "NVFP4", group: 4 * 36, run: 16, tails: true}, bindNVFP4},
}

func (f *lookup) enter(points Register, stack Mem) {
	words, scales := f.bind(points, stack)
	f.words = func(w Register, _ []VecVirtual, direct bool, yield yield) { words(w, direct, yield) }
	f.scales = func(w Register, _ Mem) (scale, minimum []VecVirtual) { return scales(w), nil }
}

// rows emits the product of rows of stored weights with one row of activations.
func (f *lookup) rows() {
	begin("intRows"+f.name+"AVX2",
		"func(w *byte, rowBytes int, rows int, groups int, mask *uint32, tail *byte, words *byte, acts *byte, out *float32, points *byte)",
		"is as the intRows of other formats, over a table of points, if the format has one.")
	w, rows, out, points := param("w"), param("rows"), param("out"), param("points")
	r := rowState{w: GP64(), words: GP64(), acts: GP64(), s: YMM()}
	f.enter(points, Mem{})
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
	loop("group", n, func() {
		for i := 0; i < f.group; i += 64 {
			PREFETCHT0(mem(r.w, prefetchAhead+i))
		}
		f.rowGroup(r)
		ADDQ(U32(uint32(f.group)), r.w)
		ADDQ(U32(wordsSize), r.words)
		ADDQ(U32(actSize), r.acts)
	})
	if f.tails {
		Label("tail")
		f.rowTail(r)
		Label("end")
	}
	VMOVSS(total(r.s), mem(out, 0))
	ADDQ(U8(4), out)
	ADDQ(param("rowBytes"), w)
	DECQ(rows)
	JNZ(LabelRef("row"))
	end()
}

// unpack emits the filling of a panel row.
func (f *lookup) unpack() {
	begin("unpack"+f.name+"AVX2", "func(dst *byte, src *byte, n int, points *byte)", "unpacks n ≥ 1 groups to panel groups.")
	dst, src, n, points := param("dst"), param("src"), param("n"), param("points")
	f.enter(points, Mem{})
	loop("group", n, func() {
		for i := 0; i < f.group; i += 64 {
			PREFETCHT1(mem(src, prefetchAhead+i))
		}
		var y [4]VecVirtual
		f.words(src, nil, false, func(i, odd, block int, v VecVirtual) {
			if f.zero != 0 {
				VPSUBW(constant("one", 0x00010001), v, v)
			}
			y[block] = v
			if block == 3 {
				storeLanes(dst, (i*2+odd)*4, y)
			}
		})
		f.storeScales(dst, src, Mem{})
		ADDQ(U32(panelSize), dst)
		ADDQ(U32(uint32(f.group)), src)
	})
	end()
}

// unpackPieces emits the filling of a panel row whose pieces of 32 bytes may lie apart.
func (f *lookup) unpackPieces() {
	begin("unpack"+f.name+"AVX2", "func(dst *byte, src *byte, n int, points *byte, stride int)",
		"unpacks n ≥ 1 groups to panel groups, whose pieces of 32 bytes lie stride bytes apart.")
	dst, src, n, points, stride := param("dst"), param("src"), param("n"), param("points"), param("stride")
	f.enter(points, Mem{})
	loop("group", n, func() {
		for i := 0; i < f.group; i += 64 {
			PREFETCHT1(mem(src, prefetchAhead+i))
		}
		store := func(y VecVirtual) {
			VMOVDQU(y, mem(dst, 0))
			ADDQ(stride, dst)
		}
		var y [4]VecVirtual
		f.words(src, nil, false, func(i, odd, block int, v VecVirtual) {
			if f.zero != 0 {
				VPSUBW(constant("one", 0x00010001), v, v)
			}
			y[block] = v
			if block == 3 {
				for _, lanes := range transposed(y) {
					store(lanes)
				}
			}
		})
		scale, _ := f.scales(src, Mem{})
		for _, v := range scale {
			store(v)
		}
		LEAQ(Mem{Base: dst, Index: stride, Scale: 2}, dst) // a group has 20 pieces
		if len(scale) == 1 {
			ADDQ(stride, dst)
		}
		ADDQ(U32(uint32(f.group)), src)
	})
	end()
}

// transposed returns words of blocks 0–3 (low halves) and 4–7 (high halves) so that each vector holds one
// pair of every block, in their order.
func transposed(y [4]VecVirtual) (d [4]VecVirtual) {
	var t [4]VecVirtual
	for i := range t {
		t[i], d[i] = YMM(), YMM()
	}
	VPUNPCKLDQ(y[1], y[0], t[0])
	VPUNPCKLDQ(y[3], y[2], t[1])
	VPUNPCKHDQ(y[1], y[0], t[2])
	VPUNPCKHDQ(y[3], y[2], t[3])
	for i := range d {
		if i%2 == 0 {
			VPUNPCKLQDQ(t[i/2*2+1], t[i/2*2], d[i])
		} else {
			VPUNPCKHQDQ(t[i/2*2+1], t[i/2*2], d[i])
		}
	}
	return d
}

// splitSigned yields the words of signed bytes: bytes returns those of half i of blocks b and b+4.
func splitSigned(direct bool, yield yield, bytes func(b, i int) VecVirtual) {
	even := func(y VecVirtual) VecVirtual {
		t := YMM()
		VPSLLW(U8(8), y, t)
		VPSRAW(U8(8), t, t)
		return t
	}
	odd := func(y VecVirtual) VecVirtual {
		VPSRAW(U8(8), y, y)
		return y
	}
	if direct {
		for b := range 4 {
			for i := range 2 {
				y := bytes(b, i)
				yield(i, 0, b, even(y))
				yield(i, 1, b, odd(y))
			}
		}
		return
	}
	for i := range 2 {
		var y [4]VecVirtual
		for b := range y {
			y[b] = bytes(b, i)
			yield(i, 0, b, even(y[b]))
		}
		for b := range y {
			yield(i, 1, b, odd(y[b]))
		}
	}
}

// halfAt returns the f16 number at m in eight lanes.
func halfAt(m Mem) VecVirtual {
	x, y := XMM(), YMM()
	VPBROADCASTW(m, x)
	VCVTPH2PS(x, y)
	return y
}

// nibbleScales returns the eight nibbles of the 4 bytes at m, as integers.
func nibbleScales(m Mem) VecVirtual {
	y := YMM()
	VPBROADCASTD(m, y)
	VPSRLVD(constant("nibbleShifts", 0, 4, 8, 12, 16, 20, 24, 28), y, y)
	VPAND(constant("dwords0f", 0x0f), y, y)
	return y
}

// times converts the integers y to f32, adds plus, and multiplies with d and with by, a power of two.
func times(y, d VecVirtual, plus, by Mem) {
	VCVTDQ2PS(y, y)
	VADDPS(plus, y, y)
	VMULPS(by, y, y)
	VMULPS(d, y, y)
}

// f32 constants by their bits.
func half32() Mem    { return constant("half", 0x3f000000) }
func quarter32() Mem { return constant("quarter", 0x3e800000) }
