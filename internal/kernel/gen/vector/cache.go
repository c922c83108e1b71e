package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// source is a number format of the key-value cache.
type source struct {
	name string
	size int // bytes of a value
	step int // values that loops over a row take at a time
}

const (
	q8Values = 32
	q8Bytes  = 34
)

var sources = []source{{"F32", 4, 8}, {"F16", 2, 8}, {"BF16", 2, 8}, {"FP8", 1, 8}, {"Q8", 1, q8Values}}

// tile is f32 that a tile was widened to. It is in the first-level cache: loops ask for nothing.
var tile = source{"Tile", 4, 8}

func (s source) q8() bool { return s.name == "Q8" }

// stepBytes is the bytes of step values.
func (s source) stepBytes() int {
	if s.q8() {
		return q8Bytes
	}
	return s.step * s.size
}

// offset is where value i of a step lies.
func (s source) offset(i int) int {
	if s.q8() {
		return 2 + i
	}
	return i * s.size
}

// load returns a vector of values at m; scale is that of their block, for Q8.
func (s source) load(m Mem, scale reg.VecVirtual) reg.VecVirtual {
	v := vec()
	switch s.name {
	case "F32", "Tile":
		VMOVUPS(m, v)
	case "F16":
		VCVTPH2PS(m, v)
	case "BF16":
		VPMOVZXWD(m, v)
		VPSLLD(Imm(16), v, v)
	case "FP8":
		h := half()
		VPMOVSXBW(m, h)
		fp8(h, v)
	case "Q8":
		VPMOVSXBD(m, v)
		q8(v, scale)
	}
	return v
}

// fp8 turns sign-extended codes into float32: as halves they mean 1/256 of their value.
func fp8(h, v reg.VecVirtual) {
	VPSLLW(Imm(7), h, h)
	if *wide {
		VPANDD(words["fp8bits"], h, h)
	} else {
		VPAND(words["fp8bits"], h, h)
	}
	VCVTPH2PS(h, v)
	VMULPS(words["fp8scale"], v, v)
}

func q8(v, scale reg.VecVirtual) {
	VCVTDQ2PS(v, v)
	VMULPS(scale, v, v)
}

// scale returns the f16 number at m in every lane.
func scale(m Mem) reg.VecVirtual {
	h, v := half(), vec()
	VPBROADCASTW(m, h)
	VCVTPH2PS(h, v)
	return v
}

// loadPair returns 8 values at a and 8 at b, for AVX-512.
func (s source) loadPair(a, b Mem, scale reg.VecVirtual) reg.VecVirtual {
	v := ZMM()
	switch s.name {
	case "F32", "Tile":
		VMOVUPS(a, v.AsY())
		VINSERTF32X8(Imm(1), b, v, v)
	case "F16", "BF16":
		y := YMM()
		VMOVUPS(a, y.AsX())
		VINSERTF32X4(Imm(1), b, y, y)
		if s.name == "F16" {
			VCVTPH2PS(y, v)
		} else {
			VPMOVZXWD(y, v)
			VPSLLD(Imm(16), v, v)
		}
	case "FP8", "Q8":
		x := XMM()
		VMOVSD(a, x)
		VMOVHPS(b, x, x)
		if s.q8() {
			VPMOVSXBD(x, v)
			q8(v, scale)
		} else {
			y := YMM()
			VPMOVSXBW(x, y)
			fp8(y, v)
		}
	}
	return v
}

// scalePair returns the f16 number at a in the lower half and that at b in the upper.
func scalePair(a, b Mem) reg.VecVirtual {
	xa, xb, v, y := XMM(), XMM(), ZMM(), YMM()
	VPBROADCASTW(a, xa)
	VPBROADCASTW(b, xb)
	VCVTPH2PS(xa, v.AsY())
	VCVTPH2PS(xb, y)
	VINSERTF32X8(Imm(1), y, v, v)
	return v
}

// widen converts rows of the cache.
func widen(s source) {
	unit := max(lanes(), s.step)
	function(named("widen"+s.name), "(dst *float32, src *byte, rows, n, stride int)",
		"widens rows of n values, a multiple of "+plain(unit)+", that lie stride bytes apart; dst has no gaps.")
	out, in, rows, width, stride := pointer("dst"), pointer("src"), pointer("rows"), pointer("n"), pointer("stride")
	loop("widenRow", rows, 1, func() {
		p, left := GP64(), GP64()
		MOVQ(in, p)
		MOVQ(width, left)
		Label("widen")
		var d reg.VecVirtual
		if s.q8() {
			d = scale(at(p, 0))
		}
		for i := 0; i < unit; i += lanes() {
			VMOVUPS(s.load(at(p, s.offset(i)), d), at(out, 4*i))
		}
		ADDQ(Imm(uint64(s.stepBytes()*unit/s.step)), p)
		ADDQ(Imm(uint64(4*unit)), out)
		SUBQ(Imm(uint64(unit)), left)
		JG(LabelRef("widen"))
		ADDQ(stride, in)
	})
	done()
}
