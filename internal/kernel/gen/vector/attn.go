package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const tileBytes = 64 * 4 // one line's scores of a tile

func attention() {
	scores()
	softmax()
	factors()
	for _, vectors := range []int{8, 4, 2, 1} {
		values(vectors)
	}
	fold()
	prefetch()
}

// scores: a register holds the eight running sums of one query vector and one key.
func scores() {
	function("attnScoresAVX2", "(dst, q, k *float32, n, dim int)",
		"writes the dot products of n query vectors with 8 keys of dim values, a multiple of 8.")
	dst, q, k, n, dim := pointer("dst"), pointer("q"), pointer("k"), pointer("n"), pointer("dim")
	stride, stride3, half := GP64(), GP64(), GP64()
	MOVQ(dim, stride)
	SHLQ(Imm(2), stride)
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)
	LEAQ(Mem{Base: k, Index: stride, Scale: 4}, half)
	loop("scoresLine", n, 1, func() {
		lo, hi, left := GP64(), GP64(), GP64()
		MOVQ(k, lo)
		MOVQ(half, hi)
		MOVQ(dim, left)
		var acc [8]reg.VecVirtual
		for i := range acc {
			acc[i] = YMM()
			VXORPS(acc[i], acc[i], acc[i])
		}
		Label("scoresDim")
		y := YMM()
		VMOVUPS(at(q, 0), y)
		for i, base := range []reg.GPVirtual{lo, hi} {
			VFMADD231PS(at(base, 0), y, acc[4*i])
			VFMADD231PS(Mem{Base: base, Index: stride, Scale: 1}, y, acc[4*i+1])
			VFMADD231PS(Mem{Base: base, Index: stride, Scale: 2}, y, acc[4*i+2])
			VFMADD231PS(Mem{Base: base, Index: stride3, Scale: 1}, y, acc[4*i+3])
		}
		advance(32, q, lo, hi)
		SUBQ(Imm(8), left)
		JG(LabelRef("scoresDim"))
		VMOVUPS(totals(acc), at(dst, 0))
		ADDQ(U32(tileBytes), dst)
	})
	done()
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

// values sums probabilities times values for a chunk of 8·vectors columns.
func values(vectors int) {
	name := fmt.Sprintf("attnValues%dAVX2", 8*vectors)
	function(name, "(o, p, v *float32, lo, hi *int32, alpha, beta *float32, n, stride int)",
		"sums probabilities times values over the ranges of n lines and joins the sums to o, whose lines lie stride bytes apart.")
	o, p, v, lo, hi := pointer("o"), pointer("p"), pointer("v"), pointer("lo"), pointer("hi")
	alpha, beta, n, stride := pointer("alpha"), pointer("beta"), pointer("n"), pointer("stride")
	row := uint32(32 * vectors)
	loop("line", n, 1, func() {
		from, count, x, y := GP64(), GP64(), GP64(), GP64()
		MOVLQSX(at(lo, 0), from)
		MOVLQSX(at(hi, 0), count)
		SUBQ(from, count)
		JLE(LabelRef("next"))
		LEAQ(Mem{Base: p, Index: from, Scale: 4}, x)
		IMUL3Q(U32(row), from, y)
		ADDQ(v, y)
		acc := make([]reg.VecVirtual, vectors)
		for i := range acc {
			acc[i] = YMM()
			VXORPS(acc[i], acc[i], acc[i])
		}
		Label("position")
		w := YMM()
		VBROADCASTSS(at(x, 0), w)
		for i := range acc {
			VFMADD231PS(at(y, 32*i), w, acc[i])
		}
		ADDQ(Imm(4), x)
		ADDQ(U32(row), y)
		DECQ(count)
		JNE(LabelRef("position"))
		store(o, alpha, beta, acc)
		Label("next")
		advance(4, lo, hi, alpha, beta)
		ADDQ(U32(tileBytes), p)
		ADDQ(stride, o)
	})
	done()
}

// store is o = acc if *alpha is −1, else o·α + acc·β.
func store(o, alpha, beta reg.GPVirtual, acc []reg.VecVirtual) {
	CMPL(at(alpha, 0), U32(0xbf800000))
	JNE(LabelRef("join"))
	for i := range acc {
		VMOVUPS(acc[i], at(o, 32*i))
	}
	JMP(LabelRef("next"))
	Label("join")
	a, b := YMM(), YMM()
	VBROADCASTSS(at(alpha, 0), a)
	VBROADCASTSS(at(beta, 0), b)
	for i := range acc {
		VMULPS(acc[i], b, acc[i])
		VFMADD231PS(at(o, 32*i), a, acc[i])
		VMOVUPS(acc[i], at(o, 32*i))
	}
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
