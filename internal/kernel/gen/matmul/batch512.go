package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// batchRows is how many rows of activations meet weights that are unpacked in registers. Fewer would not be worth
// it, more would not fit.
const batchRows = 8

// batch512 is where a product of a pair of rows of weights with 8 rows of activations stands.
type batch512 struct {
	f     *format512
	r     *rows512
	x     []Mem
	bases []Register
	twice GPVirtual
	acc   []VecVirtual
	sums  Register // 64 bytes a row of activations
}

// batched are the formats for which this is faster than panels, from memory too. Measured on one core of Zen 5, in
// Gop/s before and after: Q4_0 192 and 195, Q4_1 220 and 240, Q8_0 208 and 221, Q4_K 232 and 271, Q5_K 223 and 250;
// but Q5_0 160 and 156, Q5_1 205 and 197, Q6_K 145 and 93.
var batched = map[string]bool{"Q4_0": true, "Q4_1": true, "Q8_0": true, "Q4K": true, "Q5K": true}

// batch emits the product of pairs of rows with 8 rows of activations. Runs are of 32.
func (f *format512) batch() {
	name := "batch" + f.name + "AVX512"
	TEXT(name, 0, "func(w *byte, rowBytes int, pairs int, n int, x *byte, xStride int, twice *byte, sums *float32)")
	Pragma("noescape")
	Doc(name+" adds the products of n ≥ 1 groups of pairs ≥ 1 pairs of rows of weights with 8 rows of activations to",
		"their running sums: 16 of a pair, for each row of activations, then those of the next pair. twice holds the",
		"activations as twice leaves them.")
	w, n, pairs := GP64(), GP64(), GP64()
	b := &batch512{f: f, r: &rows512{f: f, w: [2]GPVirtual{GP64(), GP64()}, k: map[string]VecVirtual{}}, twice: GP64()}
	ones, m := GP32(), K()
	MOVL(U32(0xcccccccc), ones)
	KMOVD(ones, m)
	b.r.second = m
	f.consts(b.r)
	stride := param("xStride")
	Load(Param("w"), w)
	Load(Param("pairs"), pairs)
	b.sums = param("sums")
	loop("pair", pairs, func() {
		MOVQ(w, b.r.w[0])
		Load(Param("rowBytes"), n)
		LEAQ(Mem{Base: w, Index: n, Scale: 1}, b.r.w[1])
		LEAQ(Mem{Base: w, Index: n, Scale: 2}, w)
		b.x, b.bases = rowPointers(param("x"), stride, batchRows)
		Load(Param("twice"), b.twice)
		Load(Param("n"), n)
		loop("group", n, b.group)
		ADDQ(U32(64*batchRows), b.sums)
	})
	end()
}

func (b *batch512) group() {
	f, r := b.f, b.r
	ahead := GP64() // the same columns, 32 rows further
	Load(Param("rowBytes"), ahead)
	SHLQ(U8(4), ahead)
	for i := 0; i < f.group; i += 64 {
		for _, w := range r.w {
			PREFETCHT1(Mem{Base: w, Index: ahead, Scale: 2, Disp: i})
		}
	}
	b.begin()
	f.eachPiece(r, func(piece int, v VecVirtual) {
		for i, acc := range b.acc {
			VPDPWSSD(mem(b.twice, 64*(batchRows*piece+i)), v, acc)
		}
	})
	scale, minimum := f.pairScales(r, 0)
	for i, acc := range b.acc {
		b.add(i, acc, scale, minimum)
	}
	for i := range r.w {
		ADDQ(U32(uint32(f.group)), r.w[i])
	}
	for _, p := range b.bases {
		ADDQ(U32(actSize), p)
	}
	ADDQ(U32(wideVector*batchRows*pieceScale), b.twice)
}

func (b *batch512) begin() {
	b.acc = nil
	for range batchRows {
		b.acc = append(b.acc, fresh512())
	}
}

// add adds 8 runs of both rows with the integer sums v to the running sums of row i of activations.
func (b *batch512) add(i int, v, ws, minimum VecVirtual) {
	f, s, at := broadcast256(b.x[i].Offset(actScale)), ZMM(), mem(b.sums, 64*i)
	VMOVUPS(at, s)
	VCVTDQ2PS(v, v)
	VMULPS(ws, f, f)
	VFMADD231PS(f, v, s)
	if minimum != nil {
		VFNMADD231PS(minimum, broadcast256(b.x[i].Offset(actOffset)), s)
	}
	VMOVUPS(s, at)
}

// batchTwice emits the doubling of activations: loads of 64 bytes are as fast as operands of products, broadcasts are not.
func batchTwice() {
	begin("twiceAVX512", "func(dst *byte, x *byte, xStride int, n int)",
		"writes 32 bytes of each of 8 rows of activations, twice, then the next 32 of each, for n ≥ 1 groups.")
	dst, stride, n := param("dst"), param("xStride"), GP64()
	rows, bases := rowPointers(param("x"), stride, batchRows)
	Load(Param("n"), n)
	loop("group", n, func() {
		for piece := range pieceScale {
			for i, m := range rows {
				VMOVDQU32(broadcast256(m.Offset(32*piece)), mem(dst, 64*(batchRows*piece+i)))
			}
		}
		for _, p := range bases {
			ADDQ(U32(actSize), p)
		}
		ADDQ(U32(wideVector*batchRows*pieceScale), dst)
	})
	end()
}

// batchTotals emits the totals of running sums as batch leaves them.
func batchTotals() {
	begin("batchTotalsAVX512", "func(sums *float32, pairs int, out *float32, outStride int)",
		"writes the outputs of pairs ≥ 1 pairs of rows of weights for 8 rows of activations, outStride bytes apart.")
	sums, pairs, out, stride, row := param("sums"), param("pairs"), param("out"), param("outStride"), GP64()
	loop("pair", pairs, func() {
		MOVQ(out, row)
		for i := range batchRows {
			s, t, x := load512(mem(sums, 64*i)), ZMM(), XMM()
			VSHUFF32X4(U8(0xb1), s, s, t)
			VADDPS(t, s, s)
			VSHUFPS(U8(0x4e), s, s, t)
			VADDPS(t, s, s)
			VSHUFPS(U8(0xb1), s, s, t)
			VADDPS(t, s, s)
			VEXTRACTF32X4(U8(2), s, x)
			VUNPCKLPS(x, s.AsX(), x)
			VMOVSD(x, mem(row, 0))
			ADDQ(stride, row)
		}
		ADDQ(U32(64*batchRows), sums)
		ADDQ(U8(8), out)
	})
	end()
}
