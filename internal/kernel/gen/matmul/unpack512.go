package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// unpack emits the filling of two rows of a panel of 8.
func (f *format512) unpack() {
	begin("unpack"+f.name+"AVX512", "func(dst *byte, first *byte, second *byte, n int)",
		"unpacks n ≥ 1 groups of two rows to a pair of a panel's 8 rows.")
	r := &rows512{f: f, w: [2]GPVirtual{param("first"), param("second")}, k: map[string]VecVirtual{}}
	dst, n := param("dst"), param("n")
	ones, m := GP32(), K()
	MOVL(U32(0xcccccccc), ones)
	KMOVD(ones, m)
	r.second = m
	f.consts(r)
	loop("group", n, func() {
		for i := 0; i < f.group; i += 64 {
			PREFETCHT1(r.at(0, prefetchAhead512+i))
			PREFETCHT1(r.at(1, prefetchAhead512+i))
		}
		f.eachPiece(r, func(piece int, v VecVirtual) { VMOVDQU32(v, mem(dst, pieceStride*piece)) })
		for h := range f.phases() {
			scale, minimum := f.pairScales(r, h)
			VMOVUPS(scale, mem(dst, pieceStride*(pieceScale+h)))
			if minimum != nil {
				VMOVUPS(minimum, mem(dst, pieceStride*(pieceMin+h)))
			}
		}
		ADDQ(U32(uint32(f.group)), r.w[0])
		ADDQ(U32(uint32(f.group)), r.w[1])
		ADDQ(U32(octetSize), dst)
	})
	end()
}

// eachPiece yields the words of a group of both rows, in the order of pieces.
func (f *format512) eachPiece(r *rows512, yield func(piece int, v VecVirtual)) {
	if f.run == 32 {
		f.unpack32(r, yield)
	} else {
		f.unpack16(r, yield)
	}
}

// transpose returns vectors d whose lanes have dword d of the same lane of all four.
func transpose(a [4]VecVirtual) (d [4]VecVirtual) {
	var t [4]VecVirtual
	for i := range t {
		t[i], d[i] = ZMM(), ZMM()
	}
	VPUNPCKLDQ(a[1], a[0], t[0])
	VPUNPCKLDQ(a[3], a[2], t[1])
	VPUNPCKHDQ(a[1], a[0], t[2])
	VPUNPCKHDQ(a[3], a[2], t[3])
	for i := range d {
		if i%2 == 0 {
			VPUNPCKLQDQ(t[i/2*2+1], t[i/2*2], d[i])
		} else {
			VPUNPCKHQDQ(t[i/2*2+1], t[i/2*2], d[i])
		}
	}
	return d
}

// unpack32: dword 4j + 2·row + i of the transposed has block run8(j, i) of the row.
func (f *format512) unpack32(r *rows512, yield func(piece int, v VecVirtual)) {
	var w [2][4]VecVirtual // by part, then 2·row + i
	for row := range 2 {
		f.weights(r, row, 0, func(i int, ws ...VecVirtual) {
			for q, z := range ws {
				w[q][2*row+i] = z
			}
		})
	}
	words := make([]uint32, 16)
	for k := range words {
		words[k/2%2*8+f.run8(k/4, k%2)] = uint32(k)
	}
	index := load512(constant512("byRow"+f.name, words...))
	for q := range w {
		for d, z := range transpose(w[q]) {
			VPERMD(z, index, z)
			f.words(q, d, z, yield)
		}
	}
}

// unpack16: dword 4j + 2h + i of a row's transposed has its run 8h + run8(j, i).
func (f *format512) unpack16(r *rows512, yield func(piece int, v VecVirtual)) {
	var rows [2][4]VecVirtual
	for row := range 2 {
		var w [4]VecVirtual
		for h := range 2 {
			f.weights(r, row, h, func(i int, ws ...VecVirtual) { w[2*h+i] = ws[0] })
		}
		rows[row] = transpose(w)
	}
	for q := range 2 {
		words := make([]uint32, 16)
		for k := range 16 {
			if run := 8*(k/2%2) + f.run8(k/4, k%2); run%2 == q {
				words[run/2], words[8+run/2] = uint32(k), uint32(16+k)
			}
		}
		index := load512(constant512(fmt.Sprintf("unit%d%s", q, f.name), words...))
		for d := range 4 {
			z := ZMM()
			VMOVDQU32(rows[0][d], z)
			VPERMT2D(rows[1][d], index, z)
			f.words(q, d, z, yield)
		}
	}
}

// words yields the even and the odd bytes of z, which are dword d of unit q of all blocks.
func (f *format512) words(q, d int, z VecVirtual, yield func(piece int, v VecVirtual)) {
	for odd := range 2 {
		v := ZMM()
		switch {
		case f.signed && odd == 0:
			VPSLLW(U8(8), z, v)
			VPSRAW(U8(8), v, v)
		case f.signed:
			VPSRAW(U8(8), z, v)
		case odd == 0:
			VPANDD(constant512("evenBytes", 0x00ff00ff), z, v)
		default:
			VPSRLW(U8(8), z, v)
		}
		if f.zero != 0 {
			VPSUBW(constant512(fmt.Sprint("zero", f.zero), uint32(f.zero)*0x10001), v, v)
		}
		yield((2*q+odd)*4+d, v)
	}
}

// pairScales returns the scales and minima, or nil, of runs 8h to 8h+7 of both rows.
func (f *format512) pairScales(r *rows512, h int) (scale, minimum VecVirtual) {
	words := make([]uint32, 16)
	for k := range words {
		words[k/2%2*8+f.run8(k/4, k%2)] = uint32(k)
	}
	index := load512(constant512("byRow"+f.name, words...))
	scale, minimum = f.scales(r, h)
	VPERMPS(scale, index, scale)
	if f.offset == 0 {
		return scale, nil
	}
	VPERMPS(minimum, index, minimum)
	if f.offset > 0 {
		VPXORD(constant512("sign", 0x80000000), minimum, minimum)
	}
	return scale, minimum
}

// interleave emits the copying of a row into a panel of 8.
func interleave() {
	begin("interleaveAVX512", "func(dst *byte, src *byte, n int)", "copies n ≥ 1 pieces of 32 bytes to every eighth piece of dst.")
	dst, src, n := param("dst"), param("src"), param("n")
	loop("loop", n, func() {
		y := YMM()
		VMOVDQU(mem(src, 0), y)
		VMOVDQU(y, mem(dst, 0))
		ADDQ(U8(32), src)
		ADDQ(U32(pieceStride), dst)
	})
	end()
}

// decodePieces emits the conversion of stored weights to f32 in a panel of 8 rows.
func decodePieces(name string, size int, load func(Mem) Op) {
	begin("decodePieces"+name+"AVX512", "func(dst *float32, src *byte, k8 int)", "decodes k8×8 weights, at least 8, to every eighth piece of dst.")
	dst, src, n := param("dst"), param("src"), param("k8")
	loop("loop", n, func() {
		VMOVUPS(load(mem(src, 0)).(VecVirtual), mem(dst, 0))
		ADDQ(U8(uint8(8*size)), src)
		ADDQ(U32(pieceStride), dst)
	})
	end()
}
