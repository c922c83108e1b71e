package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func attention() {
	softmax()
	factors()
	fold()
	prefetch()
}

// totals adds the running sums of eight registers: lane i of the result is the total of acc[i].
func totals(acc [8]reg.VecVirtual) reg.VecVirtual {
	var x [4]reg.VecVirtual // s0+s4, s1+s5, s2+s6, s3+s7 of acc[i] and of acc[i+4]
	for i := range x {
		t := YMM()
		x[i] = YMM()
		VINSERTF128(Imm(1), acc[i+4].AsX(), acc[i], t)
		VPERM2F128(Imm(0x31), acc[i+4], acc[i], x[i])
		VADDPS(t, x[i], x[i])
	}
	var y [2]reg.VecVirtual
	for i := range y {
		t := YMM()
		y[i] = YMM()
		VUNPCKLPD(x[2*i+1], x[2*i], t)
		VUNPCKHPD(x[2*i+1], x[2*i], y[i])
		VADDPS(t, y[i], y[i])
	}
	even, odd := YMM(), YMM()
	VSHUFPS(Imm(0x88), y[1], y[0], even)
	VSHUFPS(Imm(0xdd), y[1], y[0], odd)
	VADDPS(odd, even, even)
	return even
}

// softmax works on the eight registers of one line's scores.
func softmax() {
	function("attnSoftmaxAVX2", "(scores *float32, lo, hi *int32, m, l *float32, n int, scale float32)",
		"turns the scores of n lines into probabilities and sets their maxima and sums.")
	p, lo, hi, m, l := pointer("scores"), pointer("lo"), pointer("hi"), pointer("m"), pointer("l")
	n, scale := pointer("n"), broadcastParam("scale")
	loop("softmaxLine", n, 1, func() {
		var s [8]reg.VecVirtual
		for i := range s {
			s[i] = YMM()
			VMULPS(at(p, 32*i), scale, s[i])
		}
		from, to := GP32(), GP32()
		MOVL(at(lo, 0), from)
		MOVL(at(hi, 0), to)
		CMPL(from, to)
		JGE(LabelRef("softmaxEmpty"))
		hideAbsent(s, from, to, lo, hi)
		top := lineMax(s)
		VMOVSS(top.AsX(), at(m, 0))
		sum := YMM()
		VXORPS(sum, sum, sum)
		for i := range s {
			VSUBPS(top, s[i], s[i])
			expVector(s[i], false)
			VMOVUPS(s[i], at(p, 32*i))
			VADDPS(s[i], sum, sum)
		}
		VMOVSS(total(sum), at(l, 0))
		JMP(LabelRef("softmaxNext"))
		Label("softmaxEmpty")
		zero := GP32()
		XORL(zero, zero)
		MOVL(zero, at(m, 0))
		MOVL(zero, at(l, 0))
		Label("softmaxNext")
		advance(4, lo, hi, m, l)
		ADDQ(U32(tileBytes), p)
	})
	done()
}

// hideAbsent makes the scores outside [from, to) −Inf, so that their probabilities are 0.
func hideAbsent(s [8]reg.VecVirtual, from, to reg.GPVirtual, lo, hi reg.GPVirtual) {
	span := GP32()
	MOVL(to, span)
	SUBL(from, span)
	CMPL(span, Imm(64))
	JEQ(LabelRef("softmaxWhole"))
	before, end, lanes := YMM(), YMM(), YMM()
	VPBROADCASTD(at(lo, 0), before)
	VPBROADCASTD(at(hi, 0), end)
	VMOVDQU(words["lanes"], lanes)
	for i := range s {
		out, late := YMM(), YMM()
		VPCMPGTD(lanes, before, out) // lane < lo
		VPCMPGTD(lanes, end, late)   // lane < hi
		VPANDN(late, out, out)       // lo ≤ lane < hi
		VMOVUPS(words["minusinf"], late)
		VBLENDVPS(out, s[i], late, s[i])
		if i < len(s)-1 {
			VPADDD(words["eight"], lanes, lanes)
		}
	}
	Label("softmaxWhole")
}

// lineMax is the largest score, in every lane.
func lineMax(s [8]reg.VecVirtual) reg.VecVirtual {
	a, b := YMM(), YMM()
	VMAXPS(s[0], s[1], a)
	VMAXPS(s[2], s[3], b)
	VMAXPS(a, b, a)
	for i := 4; i < 8; i++ {
		VMAXPS(s[i], a, a)
	}
	VPERM2F128(Imm(0x01), a, a, b)
	VMAXPS(a, b, a)
	VPERMILPS(Imm(0x4e), a, b)
	VMAXPS(a, b, a)
	VPERMILPS(Imm(0xb1), a, b)
	VMAXPS(a, b, a)
	return a
}

// factors joins tiles to states, eight lines at a time.
func factors() {
	function("attnFactorsAVX2", "(m, l, mt, lt, alpha, beta *float32, n int)",
		"joins the items (mt, lt) to the states (m, l) of n lines, a multiple of 8.")
	m, l, mt, lt := pointer("m"), pointer("l"), pointer("mt"), pointer("lt")
	alpha, beta, n := pointer("alpha"), pointer("beta"), pointer("n")
	loop("factors", n, 8, func() {
		top, a, b, sum, zero := YMM(), YMM(), YMM(), YMM(), YMM()
		empty, first := YMM(), YMM()
		VXORPS(zero, zero, zero)
		VMOVUPS(at(m, 0), a)
		VMOVUPS(at(mt, 0), b)
		VMAXPS(a, b, top)
		VSUBPS(top, a, a)
		VSUBPS(top, b, b)
		expVector(a, false)
		expVector(b, false)
		VMULPS(at(lt, 0), b, sum)
		VFMADD231PS(at(l, 0), a, sum)
		VCMPPS(Imm(equal), at(l, 0), zero, first)
		VCMPPS(Imm(equal), at(lt, 0), zero, empty)
		choose := func(v reg.VecVirtual, ifFirst, ifEmpty Mem, to Mem) {
			VBLENDVPS(first, ifFirst, v, v)
			VBLENDVPS(empty, ifEmpty, v, v)
			VMOVUPS(v, to)
		}
		choose(a, words["minusone"], words["one"], at(alpha, 0))
		VBLENDVPS(first, words["one"], b, b)
		VANDNPS(b, empty, b)
		VMOVUPS(b, at(beta, 0))
		choose(top, at(mt, 0), at(m, 0), at(m, 0))
		choose(sum, at(lt, 0), at(l, 0), at(l, 0))
		advance(32, m, l, mt, lt, alpha, beta)
	})
	done()
}

func fold() {
	function("attnFoldAVX2", "(o, add *float32, n int, alpha, beta float32)", "is o = o·α + add·β; n is a multiple of 8.")
	o, add, n := pointer("o"), pointer("add"), pointer("n")
	a, b := broadcastParam("alpha"), broadcastParam("beta")
	loop("fold", n, 8, func() {
		y := YMM()
		VMULPS(at(add, 0), b, y)
		VFMADD231PS(at(o, 0), a, y)
		VMOVUPS(y, at(o, 0))
		advance(32, o, add)
	})
	done()
}

func prefetch() {
	function("prefetchAVX2", "(b *byte, n int)", "asks for n bytes, at least one, to be brought to the second-level cache.")
	b, n := pointer("b"), pointer("n")
	Label("line")
	PREFETCHT1(at(b, 0))
	ADDQ(Imm(64), b)
	SUBQ(Imm(64), n)
	JG(LabelRef("line"))
	RET()
}
