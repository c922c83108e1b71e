package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// stores writes the functions that round to the cache's smaller types. Each sets words of bad where a
// result is not finite, and the result is then anything.
func stores() {
	words.add("exponent", 0x7f800000)
	words.add("bf16half", 0x7fff)
	words.add("bit", 1)
	words.add("magnitude", 0x7fffffff)
	words.add("fp8half", 0x7ffff)
	words.add("fp8bias", 120<<3)
	words.add("fp8least", 121<<23)
	words.add("fp8top", 0x7e)
	words.add("fp8code", 0x7f)
	words.add("fp8sign", 0x80)
	float("fp8sub", 0x1p14)
	float("most8", 127)
	float("least8", -127)
	words.add("bytes8", 0, 4, 1, 5, 2, 6, 3, 7)
	storeBF16()
	storeFP8()
	storeQ8()
}

// roundedUp adds half of what a shift by n cuts off, less a bit where what stays is even.
func roundedUp(b reg.VecVirtual, n uint64, half string) reg.VecVirtual {
	r := YMM()
	VPSRLD(Imm(n), b, r)
	VPAND(words["bit"], r, r)
	VPADDD(words[half], r, r)
	VPADDD(b, r, r)
	return r
}

func storeBF16() {
	function("storeBF16AVX2", "(dst *byte, src *float32, n int, bad *[8]uint32)", "rounds to bfloat16; n is a multiple of 8.")
	dst, src, n, bad := pointer("dst"), pointer("src"), pointer("n"), pointer("bad")
	wrong := YMM()
	VPXOR(wrong, wrong, wrong)
	loop("bf16", n, 8, func() {
		b, t := YMM(), YMM()
		VMOVDQU(at(src, 0), b)
		r := roundedUp(b, 16, "bf16half")
		for _, v := range []reg.VecVirtual{b, r} { // infinite before or after
			VPAND(words["exponent"], v, t)
			VPCMPEQD(words["exponent"], t, t)
			VPOR(t, wrong, wrong)
		}
		VPSRLD(Imm(16), r, r)
		VPACKUSDW(r, r, r)
		VPERMQ(Imm(0x08), r, r)
		VMOVDQU(r.AsX(), at(dst, 0))
		advance(32, src)
		advance(16, dst)
	})
	VMOVDQU(wrong, at(bad, 0))
	done()
}

func storeFP8() {
	function("storeFP8AVX2", "(dst *byte, src *float32, n int, bad *[8]uint32)", "rounds to E4M3; n is a multiple of 8.")
	dst, src, n, bad := pointer("dst"), pointer("src"), pointer("n"), pointer("bad")
	wrong := YMM()
	VPXOR(wrong, wrong, wrong)
	loop("fp8", n, 8, func() {
		b, m, small, mask := YMM(), YMM(), YMM(), YMM()
		VMOVDQU(at(src, 0), b)
		VPAND(words["magnitude"], b, m)
		VADDPS(words["fp8sub"], m, small)
		VPSUBD(words["fp8sub"], small, small)
		code := roundedUp(m, 20, "fp8half")
		VPSRLD(Imm(20), code, code)
		VPSUBD(words["fp8bias"], code, code)
		VMOVDQU(words["fp8least"], mask)
		VPCMPGTD(m, mask, mask) // m < least
		VPBLENDVB(mask, small, code, code)
		VPCMPGTD(words["fp8top"], code, mask)
		VPOR(mask, wrong, wrong)
		VPAND(words["fp8code"], code, code)
		VPSRLD(Imm(24), b, b)
		VPAND(words["fp8sign"], b, b)
		VPOR(b, code, code)
		VPACKUSDW(code, code, code)
		VPERMQ(Imm(0x08), code, code)
		VPACKUSWB(code.AsX(), code.AsX(), code.AsX())
		VMOVQ(code.AsX(), at(dst, 0))
		advance(32, src)
		advance(8, dst)
	})
	VMOVDQU(wrong, at(bad, 0))
	done()
}

func storeQ8() {
	function("storeQ8AVX2", "(dst *byte, src *float32, blocks int, bad *[8]uint32)", "rounds blocks of 32 values to a scale and 8 bits.")
	dst, src, blocks, bad := pointer("dst"), pointer("src"), pointer("blocks"), pointer("bad")
	wrong := YMM()
	VPXOR(wrong, wrong, wrong)
	loop("q8", blocks, 1, func() {
		var x [4]reg.VecVirtual
		top := YMM()
		for i := range x {
			x[i] = YMM()
			VMOVUPS(at(src, 32*i), x[i])
			if i == 0 {
				VPAND(words["magnitude"], x[i], top)
				continue
			}
			t := YMM()
			VPAND(words["magnitude"], x[i], t)
			VPMAXUD(t, top, top)
		}
		largest(top)
		h, d, t, some := XMM(), YMM(), YMM(), YMM()
		VDIVPS(words["most8"], top, d)
		VCVTPS2PH(Imm(0), d, h)
		VPEXTRW(Imm(0), h, at(dst, 0))
		VCVTPH2PS(h, d)
		for _, v := range []reg.VecVirtual{top, d} { // infinite before or after
			VPAND(words["exponent"], v, t)
			VPCMPEQD(words["exponent"], t, t)
			VPOR(t, wrong, wrong)
		}
		VXORPS(some, some, some)
		VCMPPS(Imm(less), d, some, some) // 0 < d
		for i := range x {
			VDIVPS(d, x[i], x[i])
			VMAXPS(words["least8"], x[i], x[i])
			VMINPS(words["most8"], x[i], x[i])
			VCVTPS2DQ(x[i], x[i])
			VPAND(some, x[i], x[i])
		}
		VPACKSSDW(x[1], x[0], x[0])
		VPACKSSDW(x[3], x[2], x[2])
		VPACKSSWB(x[2], x[0], x[0])
		VMOVDQU(words["bytes8"], t)
		VPERMD(x[0], t, x[0])
		VMOVDQU(x[0], at(dst, 2))
		ADDQ(U32(4*q8Values), src)
		advance(q8Bytes, dst)
	})
	VMOVDQU(wrong, at(bad, 0))
	done()
}

// largest spreads the largest word, unsigned, to all lanes.
func largest(v reg.VecVirtual) {
	t := YMM()
	VPERM2I128(Imm(0x01), v, v, t)
	VPMAXUD(t, v, v)
	VPSHUFD(Imm(0x4e), v, t)
	VPMAXUD(t, v, v)
	VPSHUFD(Imm(0xb1), v, t)
	VPMAXUD(t, v, v)
}
