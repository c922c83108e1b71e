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

// softmaxLoop works on the four registers of a line's scores, for two lines at a time where both see
// anything: one alone is a chain of instructions that wait for each other.
type softmaxLoop struct {
	p, lo, hi, m, l reg.GPVirtual
	scale, infinite reg.VecVirtual
	c               expConstants
}

func wideSoftmax() {
	function("attnSoftmaxAVX512", "(scores *float32, lo, hi *int32, m, l *float32, n int, scale float32)",
		"turns the scores of n lines into probabilities and sets their maxima and sums.")
	f := &softmaxLoop{p: pointer("scores"), lo: pointer("lo"), hi: pointer("hi"), m: pointer("m"), l: pointer("l")}
	n := pointer("n")
	f.scale, f.c, f.infinite = broadcastParam("scale"), loadExpConstants(), ZMM()
	VMOVUPS(words["minusinf"], f.infinite)
	Label("next")
	CMPQ(n, Imm(2))
	JLT(LabelRef("one"))
	for line := range 2 {
		f.ifEmpty(line, "one")
	}
	f.lines(2)
	SUBQ(Imm(2), n)
	JMP(LabelRef("next"))
	Label("one")
	TESTQ(n, n)
	JE(LabelRef("end"))
	f.ifEmpty(0, "empty")
	f.lines(1)
	DECQ(n)
	JMP(LabelRef("next"))
	Label("empty")
	none, v := GP32(), ZMM()
	XORL(none, none)
	VPXORD(v, v, v)
	MOVL(none, at(f.m, 0))
	MOVL(none, at(f.l, 0))
	for i := range 4 {
		VMOVUPS(v, at(f.p, 64*i))
	}
	f.advance(1)
	DECQ(n)
	JMP(LabelRef("next"))
	Label("end")
	done()
}

// ifEmpty jumps if a line sees nothing.
func (f *softmaxLoop) ifEmpty(line int, label string) {
	from := GP32()
	MOVL(at(f.lo, 4*line), from)
	CMPL(from, at(f.hi, 4*line))
	JGE(LabelRef(label))
}

func (f *softmaxLoop) advance(lines int) {
	advance(uint64(4*lines), f.lo, f.hi, f.m, f.l)
	ADDQ(U32(uint32(lines*tileBytes)), f.p)
}

func (f *softmaxLoop) lines(n int) {
	s := make([][4]reg.VecVirtual, n)
	tops := make([]reg.VecVirtual, n)
	for line := range s {
		s[line] = f.load(line)
		tops[line] = wideMax(s[line])
		VMOVSS(tops[line].AsX(), at(f.m, 4*line))
	}
	for i := range 4 {
		for line := range s {
			VSUBPS(tops[line], s[line][i], s[line][i])
			f.c.exp(s[line][i], false)
		}
	}
	sums := make([]reg.VecVirtual, n)
	for line := range s {
		sums[line] = YMM()
		VPXORD(sums[line], sums[line], sums[line])
	}
	for i := range 4 {
		for line := range s {
			hi := YMM()
			VMOVUPS(s[line][i], at(f.p, line*tileBytes+64*i))
			VEXTRACTF32X8(Imm(1), s[line][i], hi)
			VADDPS(s[line][i].AsY(), sums[line], sums[line])
			VADDPS(hi, sums[line], sums[line])
		}
	}
	for line := range s {
		VMOVSS(wideTotal(sums[line]), at(f.l, 4*line))
	}
	f.advance(n)
}

// load scales a line's scores; those that it does not see are −Inf.
func (f *softmaxLoop) load(line int) (s [4]reg.VecVirtual) {
	from, to, mask := GP64(), GP64(), GP64()
	MOVL(at(f.lo, 4*line), from.As32())
	MOVL(at(f.hi, 4*line), to.As32())
	MOVQ(I32(-1), mask)
	BZHIQ(to, mask, mask)
	SHRXQ(from, mask, mask)
	SHLXQ(from, mask, mask)
	for i := range s {
		k := K()
		KMOVW(mask.As32(), k)
		if i < len(s)-1 {
			SHRQ(Imm(16), mask)
		}
		s[i] = ZMM()
		VMOVAPS(f.infinite, s[i])
		VMULPS(at(f.p, line*tileBytes+64*i), f.scale, k, s[i])
	}
	return s
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
