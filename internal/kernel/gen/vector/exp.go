package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Comparison predicates of VCMPPS.
const (
	equal     = 0x00 // EQ_OQ
	less      = 0x11 // LT_OQ
	unordered = 0x03 // UNORD_Q
	greater   = 0x1e // GT_OQ
	notLess   = 0x15 // NLT_UQ
)

func float(name string, v float32) { words.add(name, math.Float32bits(v)) }

func constants() {
	float("least", -87.33)
	float("most", 88.72283172)
	float("log2e", 1.44269502)
	float("ln2hi", 0.693147182464599609375)
	float("ln2lo", -1.904654212e-09)
	float("magic", 12582912)
	float("c2", 0.49999994)
	float("c3", 0.16666517)
	float("c4", 0.041668102)
	float("c5", 0.0083691925)
	float("c6", 0.0013838902)
	float("one", 1)
	float("minusone", -1)
	float("inf", float32(math.Inf(1)))
	float("minusinf", float32(math.Inf(-1)))
	float("fp8scale", 256)
	words.add("fp8bits", 0xbfffbfff)
	words.add("sign", 1<<31)
	words.add("f16exp", 0x7c007c00)
	words.add("lanes", 0, 1, 2, 3, 4, 5, 6, 7)
	words.add("eight", 8)
}

// expVector replaces x by exp(x). Unless top is set, arguments above 88.7 do not occur, or give
// anything at all.
func expVector(x reg.VecVirtual, top bool) {
	t, n, p, mask := YMM(), YMM(), YMM(), YMM()
	VMOVUPS(words["log2e"], t)
	VFMADD213PS(words["magic"], x, t)
	VSUBPS(words["magic"], t, n)
	VMOVAPS(x, p)
	VFNMADD231PS(words["ln2hi"], n, p)
	VFNMADD231PS(words["ln2lo"], n, p) // p is r
	r := p
	p = YMM()
	VMOVUPS(words["c6"], p)
	for _, c := range []string{"c5", "c4", "c3", "c2", "one", "one"} {
		VFMADD213PS(words[c], r, p)
	}
	VPSLLD(Imm(23), t, t)
	VPADDD(t, p, p)
	VCMPPS(Imm(less), words["least"], x, mask)
	VANDNPS(p, mask, p)
	if top {
		VCMPPS(Imm(greater), words["most"], x, mask)
		VBLENDVPS(mask, words["inf"], p, p)
	}
	VCMPPS(Imm(unordered), x, x, mask)
	VORPS(mask, p, x)
}

// total adds the eight running sums of s; the result is in every lane of the lower half's low word.
func total(s reg.VecVirtual) reg.VecVirtual {
	lo, hi := XMM(), XMM()
	VEXTRACTF128(Imm(1), s, hi)
	VADDPS(s.AsX(), hi, lo) // s0+s4, s1+s5, s2+s6, s3+s7
	VPERMILPS(Imm(0x0e), lo, hi)
	VADDPS(lo, hi, lo) // (s0+s4)+(s2+s6), (s1+s5)+(s3+s7)
	VPERMILPS(Imm(0x01), lo, hi)
	VADDPS(lo, hi, lo)
	return lo
}
