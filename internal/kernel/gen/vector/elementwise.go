package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// advance moves pointers by a number of bytes.
func advance(bytes uint64, p ...reg.GPVirtual) {
	for _, x := range p {
		ADDQ(Imm(bytes), x)
	}
}

func elementwise() {
	sumSquares()
	function("scaleWeightAVX2", "(dst, x, w *float32, n int, f float32)", "is dst = x·f·w; n is a multiple of 8.")
	dst, x, w, n, f := pointer("dst"), pointer("x"), pointer("w"), pointer("n"), broadcastParam("f")
	loop("scaleWeight", n, 8, func() {
		y := YMM()
		VMULPS(at(x, 0), f, y)
		VMULPS(at(w, 0), y, y)
		VMOVUPS(y, at(dst, 0))
		advance(32, dst, x, w)
	})
	done()
	addAndScale()
	divide()
	siluMul()
}

func addAndScale() {
	function("addAVX2", "(dst, x *float32, n int)", "is dst += x; n is a multiple of 8.")
	dst, x, n := pointer("dst"), pointer("x"), pointer("n")
	loop("add", n, 8, func() {
		y := YMM()
		VMOVUPS(at(x, 0), y)
		VADDPS(at(dst, 0), y, y)
		VMOVUPS(y, at(dst, 0))
		advance(32, dst, x)
	})
	done()

	function("scaleAVX2", "(x *float32, n int, f float32)", "is x *= f; n is a multiple of 8.")
	x, n, f := pointer("x"), pointer("n"), broadcastParam("f")
	loop("scale", n, 8, func() {
		y := YMM()
		VMULPS(at(x, 0), f, y)
		VMOVUPS(y, at(x, 0))
		advance(32, x)
	})
	done()
}

func divide() {
	function("divideAVX2", "(dst, x *float32, n int, d float32)", "is dst = x / d; n is a multiple of 8.")
	dst, x, n, f := pointer("dst"), pointer("x"), pointer("n"), broadcastParam("d")
	loop("divide", n, 8, func() {
		y := YMM()
		VMOVUPS(at(x, 0), y)
		VDIVPS(f, y, y)
		VMOVUPS(y, at(dst, 0))
		advance(32, dst, x)
	})
	done()
}

func sumSquares() {
	function("sumSquaresAVX2", "(sums *[8]float32, x *float32, n int)", "writes the running sums of x²; n is a multiple of 8.")
	sums, x, n := pointer("sums"), pointer("x"), pointer("n")
	s := YMM()
	VXORPS(s, s, s)
	loop("sumSquares", n, 8, func() {
		y := YMM()
		VMOVUPS(at(x, 0), y)
		VFMADD231PS(y, y, s)
		advance(32, x)
	})
	VMOVUPS(s, at(sums, 0))
	done()
}

func siluMul() {
	function("siluMulAVX2", "(dst, gate, up *float32, n int)", "is dst = silu(gate)·up; n is a multiple of 8.")
	dst, gate, up, n := pointer("dst"), pointer("gate"), pointer("up"), pointer("n")
	loop("siluMul", n, 8, func() {
		x, e := YMM(), YMM()
		VMOVUPS(at(gate, 0), x)
		VXORPS(words["sign"], x, e)
		expVector(e, true)
		VADDPS(words["one"], e, e)
		VDIVPS(e, x, x)
		VMULPS(at(up, 0), x, x)
		VMOVUPS(x, at(dst, 0))
		advance(32, dst, gate, up)
	})
	done()
}

func rope() {
	function("ropeHalvesAVX2", "(lo, hi, cos, sin *float32, n int)", "rotates n pairs (lo[i], hi[i]); n is a multiple of 8.")
	lo, hi, cos, sin, n := pointer("lo"), pointer("hi"), pointer("cos"), pointer("sin"), pointer("n")
	loop("ropeHalves", n, 8, func() {
		a, b, c, s, t := YMM(), YMM(), YMM(), YMM(), YMM()
		VMOVUPS(at(lo, 0), a)
		VMOVUPS(at(hi, 0), b)
		VMOVUPS(at(cos, 0), c)
		VMOVUPS(at(sin, 0), s)
		VMULPS(b, s, t)
		VMULPS(b, c, b)
		VMULPS(a, c, c)
		VMULPS(a, s, a)
		VSUBPS(t, c, c)
		VADDPS(a, b, b)
		VMOVUPS(c, at(lo, 0))
		VMOVUPS(b, at(hi, 0))
		advance(32, lo, hi, cos, sin)
	})
	done()

	function("ropePairsAVX2", "(x, cos, sin *float32, n int)", "rotates n pairs (x[2i], x[2i+1]); n is a multiple of 4.")
	x, cos, sin, n := pointer("x"), pointer("cos"), pointer("sin"), pointer("n")
	loop("ropePairs", n, 4, func() {
		v, w, c, s := YMM(), YMM(), YMM(), YMM()
		VPMOVZXDQ(at(cos, 0), c)
		VMOVSLDUP(c, c)
		VPMOVZXDQ(at(sin, 0), s)
		VMOVSLDUP(s, s)
		VMOVUPS(at(x, 0), v)
		VPERMILPS(Imm(0xb1), v, w)
		VMULPS(v, c, c)
		VMULPS(w, s, s)
		VADDSUBPS(s, c, c)
		VMOVUPS(c, at(x, 0))
		advance(32, x)
		advance(16, cos, sin)
	})
	done()
}

func conversions() {
	function("toF16AVX2", "(dst *uint16, src *float32, n int, bad *[8]uint16)",
		"rounds to binary16 and sets words of bad where a result is not finite; n is a multiple of 8.")
	dst, src, n, bad := pointer("dst"), pointer("src"), pointer("n"), pointer("bad")
	mask := XMM()
	VPXOR(mask, mask, mask)
	exps := XMM()
	VMOVDQU(words["f16exp"], exps)
	loop("toF16", n, 8, func() {
		x, h, e := YMM(), XMM(), XMM()
		VMOVUPS(at(src, 0), x)
		VCVTPS2PH(Imm(0), x, h)
		VMOVDQU(h, at(dst, 0))
		VPAND(exps, h, e)
		VPCMPEQW(exps, e, e)
		VPOR(e, mask, mask)
		advance(32, src)
		advance(16, dst)
	})
	VMOVDQU(mask, at(bad, 0))
	done()
}
