package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// quantize emits the rounding of activations to 16 bits per block of 32, see quantizeGo.
func quantize() {
	begin("quantizeAVX2", "func(groups *byte, words *byte, x *float32, n int)",
		"rounds n groups of 256 values, at least one. words may be nil.")
	split := splitWords()
	g := param("groups")
	words := param("words")
	x := param("x")
	n := param("n")
	q := quantizer{
		g: g, x: x, words: words, split: split, block: GP64(),
		abs: loadConstant("abs", 0x7fffffff), ones: loadConstant("ones16", 0x00010001), low: loadConstant("low16", 0x80018001),
	}
	Label("group")
	XORQ(q.block, q.block)
	Label("block")
	q.emitBlock()
	INCQ(q.block)
	CMPQ(q.block, U8(8))
	JL(LabelRef("block"))
	o := YMM()
	VCVTDQ2PS(mem(g, actSum32), o)
	VMULPS(mem(g, actScale), o, o)
	VMOVUPS(o, mem(g, actOffset))
	ADDQ(U32(actSize), g)
	TESTQ(words, words)
	JZ(LabelRef("next"))
	ADDQ(U32(wordsSize), words)
	Label("next")
	DECQ(n)
	JNZ(LabelRef("group"))
	end()
}

// splitWords moves the words of even index of a lane before those of odd index, by VPSHUFB.
func splitWords() Mem {
	return constant("split", 0x05040100, 0x0d0c0908, 0x07060302, 0x0f0e0b0a)
}

type quantizer struct {
	g, x, words, block GPVirtual
	split              Mem
	abs, ones, low     VecVirtual
}

func (q *quantizer) emitBlock() {
	var v [4]VecVirtual
	for i := range v {
		v[i] = YMM()
		VMOVUPS(mem(q.x, 32*i), v[i])
	}
	ADDQ(U32(128), q.x)
	inverse, mask := q.scale(v)
	for i := range v {
		VMULPS(inverse, v[i], v[i])
		VCVTPS2DQ(v[i], v[i])
	}
	var unit [2]VecVirtual
	for i := range unit {
		u := YMM()
		VPACKSSDW(v[2*i+1], v[2*i], u)
		VPMAXSW(q.low, u, u) // −32768 becomes −32767
		VPAND(mask, u, u)
		VPERMQ(U8(0xd8), u, u) // words in natural order
		unit[i] = u
	}
	q.sums(unit)
	for i, u := range unit {
		VPSHUFB(q.split, u, u)
		VPERMQ(U8(0xd8), u, u) // even words, odd words
		q.storeLanes(i, u)
		unit[i] = u
	}
	q.storeWords(unit)
}

// scale stores the block's scale and returns the vectors of its inverse and of the mask that clears
// every q where the inverse is 0.
func (q *quantizer) scale(v [4]VecVirtual) (inverse, mask VecVirtual) {
	var m [4]VecVirtual
	for i := range m {
		m[i] = YMM()
		VPAND(q.abs, v[i], m[i])
	}
	VPMAXUD(m[1], m[0], m[0])
	VPMAXUD(m[3], m[2], m[2])
	VPMAXUD(m[2], m[0], m[0])
	h, t := Register(XMM()), m[0].AsX()
	VEXTRACTI128(U8(1), m[0], h)
	VPMAXUD(h, t, t)
	VPSHUFD(U8(0x4e), t, h)
	VPMAXUD(h, t, t)
	VPSHUFD(U8(0xb1), t, h)
	VPMAXUD(h, t, t)

	e, s, inv, zero, nan := GP32(), GP32(), GP32(), GP32(), GP32()
	VMOVD(t, e)
	SHRL(U8(23), e)
	XORL(zero, zero)
	MOVL(U32(0x7fc00000), nan)
	MOVL(e, s)
	SUBL(U8(14), s)
	SHLL(U8(23), s)
	MOVL(U32(268), inv)
	SUBL(e, inv)
	SHLL(U8(23), inv)
	CMPL(e, U8(127-100))
	CMOVLLT(zero, s)
	CMOVLLT(zero, inv)
	CMPL(e, U32(255))
	CMOVLEQ(nan, s)
	CMOVLEQ(zero, inv)
	MOVL(s, Mem{Base: q.g, Index: q.block, Scale: 4, Disp: actScale})
	CMPL(inv, U8(1))
	SBBL(zero, zero) // all ones if inv is 0
	NOTL(zero)
	inverse, mask = YMM(), YMM()
	VMOVD(inv, inverse.AsX())
	VPBROADCASTD(inverse.AsX(), inverse)
	VMOVD(zero, mask.AsX())
	VPBROADCASTD(mask.AsX(), mask)
	return inverse, mask
}

// sums stores Σq of both units and of the block.
func (q *quantizer) sums(unit [2]VecVirtual) {
	a, b, h := YMM(), YMM(), XMM()
	VPMADDWD(q.ones, unit[0], a)
	VPMADDWD(q.ones, unit[1], b)
	VPHADDD(b, a, a)
	VEXTRACTI128(U8(1), a, h)
	VPADDD(h, a.AsX(), h)
	VPHADDD(h, h, h)
	VMOVQ(h, Mem{Base: q.g, Index: q.block, Scale: 8, Disp: actSum16})
	VPHADDD(h, h, h)
	VMOVD(h, Mem{Base: q.g, Index: q.block, Scale: 4, Disp: actSum32})
}

// storeLanes stores unit i of the block in the order of lanePlaces: 8 pairs, one every 32 bytes.
func (q *quantizer) storeLanes(i int, u VecVirtual) {
	h := XMM()
	VEXTRACTI128(U8(1), u, h)
	for odd, half := range []Register{u.AsX(), h} {
		for d := range 4 {
			m := Mem{Base: q.g, Index: q.block, Scale: 4, Disp: ((i*2+odd)*4 + d) * 32}
			if d == 0 {
				VMOVD(half, m)
			} else {
				VPEXTRD(U8(d), half, m)
			}
		}
	}
}

// storeWords stores the block in the order of wordPlaces, if words are wanted: unit u at u%8·64 +
// u/8·16, its odd values 32 further.
func (q *quantizer) storeWords(unit [2]VecVirtual) {
	TESTQ(q.words, q.words)
	JZ(LabelRef("nowords"))
	at, high := GP64(), GP64()
	MOVQ(q.block, at)
	ANDQ(U8(3), at)
	SHLQ(U8(7), at)
	MOVQ(q.block, high)
	SHRQ(U8(2), high)
	SHLQ(U8(4), high)
	ADDQ(high, at)
	ADDQ(q.words, at)
	for i, u := range unit {
		VMOVDQU(u.AsX(), mem(at, 64*i))
		VEXTRACTI128(U8(1), u, mem(at, 64*i+32))
	}
	Label("nowords")
}
