package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func wideConstants() {
	// From lane i = key i and key 4+i of one line, then of another, to the keys of each in order.
	words.add("order", 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)
}

// expConstants are exp's constants in registers.
type expConstants map[string]reg.VecVirtual

func loadExpConstants() expConstants {
	c := expConstants{}
	for _, name := range []string{"log2e", "magic", "ln2hi", "ln2lo", "c6", "c5", "c4", "c3", "c2", "one", "least"} {
		c[name] = ZMM()
		VMOVUPS(words[name], c[name])
	}
	return c
}

// exp replaces x by exp(x), as expVector does.
func (c expConstants) exp(x reg.VecVirtual, top bool) {
	t, n, r, p := ZMM(), ZMM(), ZMM(), ZMM()
	VMOVAPS(c["log2e"], t)
	VFMADD213PS(c["magic"], x, t)
	VSUBPS(c["magic"], t, n)
	VMOVAPS(x, r)
	VFNMADD231PS(c["ln2hi"], n, r)
	VFNMADD231PS(c["ln2lo"], n, r)
	VMOVAPS(c["c6"], p)
	for _, name := range []string{"c5", "c4", "c3", "c2", "one", "one"} {
		VFMADD213PS(c[name], r, p)
	}
	VPSLLD(Imm(23), t, t)
	normal, nan := K(), K()
	VCMPPS(Imm(notLess), c["least"], x, normal)
	VCMPPS(Imm(unordered), x, x, nan)
	VPADDD_Z(t, p, normal, p)
	if top {
		high := K()
		VCMPPS(Imm(greater), words["most"], x, high)
		VMOVUPS(words["inf"], t)
		VMOVAPS(t, high, p)
	}
	VMOVAPS(x, nan, p)
	VMOVAPS(p, x)
}

// wideSoftmax works on the four registers of one line's scores.
func wideSoftmax() {
	function("attnSoftmaxAVX512", "(scores *float32, lo, hi *int32, m, l *float32, n int, scale float32)",
		"turns the scores of n lines into probabilities and sets their maxima and sums.")
	p, lo, hi, m, l := pointer("scores"), pointer("lo"), pointer("hi"), pointer("m"), pointer("l")
	n, scale := pointer("n"), broadcastParam("scale")
	c := loadExpConstants()
	infinite := ZMM()
	VMOVUPS(words["minusinf"], infinite)
	loop("line", n, 1, func() {
		from, to, mask := GP64(), GP64(), GP64()
		MOVL(at(lo, 0), from.As32())
		MOVL(at(hi, 0), to.As32())
		CMPL(from.As32(), to.As32())
		JGE(LabelRef("empty"))
		MOVQ(I32(-1), mask)
		BZHIQ(to, mask, mask)
		SHRXQ(from, mask, mask)
		SHLXQ(from, mask, mask)
		var s [4]reg.VecVirtual
		for i := range s {
			k := K()
			KMOVW(mask.As32(), k)
			if i < len(s)-1 {
				SHRQ(Imm(16), mask)
			}
			s[i] = ZMM()
			VMOVAPS(infinite, s[i])
			VMULPS(at(p, 64*i), scale, k, s[i])
		}
		top := wideMax(s)
		VMOVSS(top.AsX(), at(m, 0))
		for i := range s {
			VSUBPS(top, s[i], s[i])
			c.exp(s[i], false)
		}
		sum := YMM()
		VPXORD(sum, sum, sum)
		for i := range s {
			hi := YMM()
			VMOVUPS(s[i], at(p, 64*i))
			VEXTRACTF32X8(Imm(1), s[i], hi)
			VADDPS(s[i].AsY(), sum, sum)
			VADDPS(hi, sum, sum)
		}
		VMOVSS(wideTotal(sum), at(l, 0))
		JMP(LabelRef("next"))
		Label("empty")
		none := GP32()
		XORL(none, none)
		MOVL(none, at(m, 0))
		MOVL(none, at(l, 0))
		for i := range 4 {
			v := ZMM()
			VPXORD(v, v, v)
			VMOVUPS(v, at(p, 64*i))
		}
		Label("next")
		advance(4, lo, hi, m, l)
		ADDQ(U32(tileBytes), p)
	})
	done()
}

// wideMax is the largest score, in every lane.
func wideMax(s [4]reg.VecVirtual) reg.VecVirtual {
	a, b := ZMM(), ZMM()
	VMAXPS(s[0], s[1], a)
	VMAXPS(s[2], s[3], b)
	VMAXPS(a, b, a)
	VSHUFF32X4(Imm(0x4e), a, a, b)
	VMAXPS(a, b, a)
	VSHUFF32X4(Imm(0xb1), a, a, b)
	VMAXPS(a, b, a)
	VPERMILPS(Imm(0x4e), a, b)
	VMAXPS(a, b, a)
	VPERMILPS(Imm(0xb1), a, b)
	VMAXPS(a, b, a)
	return a
}

// wideTotal is total with instructions that reach all registers.
func wideTotal(s reg.VecVirtual) reg.VecVirtual {
	lo, hi := XMM(), XMM()
	VEXTRACTF32X4(Imm(1), s, hi)
	VADDPS(s.AsX(), hi, lo)
	VPERMILPS(Imm(0x0e), lo, hi)
	VADDPS(lo, hi, lo)
	VPERMILPS(Imm(0x01), lo, hi)
	VADDPS(lo, hi, lo)
	return lo
}

func wideSiLUMul() {
	function("siluMulAVX512", "(dst, gate, up *float32, n int)", "is dst = silu(gate)·up; n is a multiple of 16.")
	dst, gate, up, n := pointer("dst"), pointer("gate"), pointer("up"), pointer("n")
	c := loadExpConstants()
	loop("siluMul", n, 16, func() {
		x, e := ZMM(), ZMM()
		VMOVUPS(at(gate, 0), x)
		VXORPS(words["sign"], x, e)
		c.exp(e, true)
		VADDPS(c["one"], e, e)
		VDIVPS(e, x, x)
		VMULPS(at(up, 0), x, x)
		VMOVUPS(x, at(dst, 0))
		advance(64, dst, gate, up)
	})
	done()
}
