package main

import (
	"fmt"
	"math"
)

const (
	attnTile  = 64
	attnGroup = 16
)

// attention writes the loops over a tile of keys or values in f32, and of the softmax.
func (a *asm) attention() {
	a.widen("F16", 8, func() { a.widenFloats(1) })
	a.widen("BF16", 8, func() { a.widenFloats(2) })
	a.widen("FP8", 8, a.widenFP8)
	a.widen("Q8", 32, a.widenQ8)
	a.scores(4, 2)
	a.scores(1, 8)
	a.values(4, 4)
	a.values(1, 16)
	a.values(1, 4)
	a.scaleMax()
	a.expSum()
	a.attnFactors()
	a.attnFold()
}

// widen writes a loop over rows: block turns some values at R5 into floats at R0, and moves both on.
func (a *asm) widen(name string, values int, block func()) {
	const params = "dst *float32, src *byte, rows int, n int, stride int"
	doc := fmt.Sprintf("widens rows of n values, a multiple of %d, that lie stride bytes apart; dst has no gaps.", values)
	a.fn("widen"+name+"NEON", doc, params, 0, func() {
		a.args(params)
		a.g("LSR $%d, R3, R3", log2(values))
		a.constant(16, 0x43800000) // 256
		a.constant(17, 0x40004000)
		a.loop("R2", func() {
			a.g("MOVD R1, R5")
			a.g("MOVD R3, R6")
			a.loop("R6", block)
			a.g("ADD R4, R1, R1")
		})
	})
}

func (a *asm) widenFloats(load int) {
	floatLoads[load].load(a, 0, 1, 5)
	a.stpNext(0, 1, 0)
}

// widenFP8 makes f16 numbers 256 times smaller of E4M3 codes: the sign moves up by 8 bits, the rest by 7.
func (a *asm) widenFP8() {
	a.ldd(0, 5, 0)
	a.g("ADD $8, R5, R5")
	a.u("sxtl.8h", 0, 0)
	a.s("shl.8h", 0, 0, 7) // the sign in bits 14 and 15
	a.o("bic.16b", 0, 0, 17)
	a.u("fcvtl2.4s", 1, 0)
	a.u("fcvtl.4s", 0, 0)
	a.both("fmul.4s", 0, 0, 16)
	a.stpNext(0, 1, 0)
}

// widenQ8 takes a block of 32: a scale in f16, and int8.
func (a *asm) widenQ8() {
	a.ldh(8, 5, 0)
	a.halfToFloat(8, 8)
	a.ldq(0, 5, 2)
	a.ldq(4, 5, 18)
	a.g("ADD $34, R5, R5")
	for _, r := range []v{0, 4} {
		a.u("sxtl2.8h", r+2, r)
		a.u("sxtl.8h", r, r)
		for i := v(0); i < 4; i += 2 {
			a.u("sxtl2.4s", r+i+1, r+i)
			a.u("sxtl.4s", r+i, r+i)
		}
	}
	for i := range v(8) {
		a.u("scvtf.4s", i, i)
		a.fmulBy(i, i, 8)
	}
	for i := v(0); i < 8; i += 2 {
		a.stpNext(i, i+1, 0)
	}
}

// scores writes the dot products of a block of lines, or of its first one, with a group of 16 keys, of
// which it takes some at a time.
func (a *asm) scores(lines, keys int) {
	const params = "dst *float32, q *float32, k *byte, stride int, dim8 int"
	name := "attnScores" + string(rune('0'+lines)) + "NEON"
	a.fn(name, "writes the dot products of a block of lines with 16 keys of dim8 · 8 values that lie stride bytes apart.", params, 0, func() {
		a.args(params)
		a.g("MOVD $%d, R5", attnGroup/keys)
		a.loop("R5", func() {
			for i := range keys {
				if i == 0 {
					a.g("MOVD R2, R8")
				} else {
					a.g("ADD R3, R%d, R%d", scoreKey(i-1), scoreKey(i))
				}
			}
			a.g("ADD R3, R%d, R2", scoreKey(keys-1))
			a.g("MOVD R1, R6")
			a.g("MOVD R4, R7")
			for i := range v(16) {
				a.zero(i)
			}
			a.loop("R7", func() {
				for l := range lines {
					a.ldp(16+2*v(l), 17+2*v(l), 6, 32*l)
				}
				a.g("ADD $128, R6, R6")
				for i := range keys {
					k := 24 + 2*v(i%4)
					a.ldpNext(k, k+1, scoreKey(i))
					for l := range lines {
						s := 2 * v(l*keys+i)
						a.o("fmla.4s", s, 16+2*v(l), k)
						a.o("fmla.4s", s+1, 17+2*v(l), k+1)
					}
				}
			})
			a.totals()
			if lines == 1 {
				a.stpNext(0, 1, 0)
				return
			}
			for half := range v(2) { // two lines, two keys each
				a.std(half, 0, int(half)*2*4*attnTile)
				a.g("ADD $%d, R0, R11", (int(half)*2+1)*4*attnTile)
				a.stdHigh(half, 11)
			}
			a.g("ADD $8, R0, R0")
		})
	})
}

func scoreKey(i int) int { return []int{8, 9, 10, 11, 12, 13, 14, 15}[i] }

// totals adds up the running sums of 8 outputs in V0 to V15, to V0 and V1.
func (a *asm) totals() {
	for i := range v(8) {
		a.o("fadd.4s", i, 2*i, 2*i+1) // s0+s4, s1+s5, s2+s6, s3+s7
	}
	for i := range v(4) {
		a.o("zip1.2d", 8, 2*i, 2*i+1)
		a.o("zip2.2d", 9, 2*i, 2*i+1)
		a.o("fadd.4s", i, 8, 9)
	}
	a.o("faddp.4s", 0, 0, 1)
	a.o("faddp.4s", 1, 2, 3)
}

// values sums probabilities times some columns of values, four to a register, for a block of lines or one.
func (a *asm) values(lines, regs int) {
	const params = "sums *float32, p *float32, rows *[]byte, from int, n int, stride int, at int"
	name := fmt.Sprintf("attnValues%dx%dNEON", lines, 4*regs)
	a.fn(name, "writes the sums over n positions from row from of the first group on; at is where the columns begin in a row, in bytes.", params, 0, func() {
		a.args(params)
		for i := range v(lines * regs) {
			a.zero(i)
		}
		a.g("MUL R3, R5, R9") // from rows into the first group
		a.g("ADD R9, R6, R9")
		a.g("MOVD $%d, R10", attnGroup)
		a.g("SUB R3, R10, R10")
		group := name + "Group"
		a.label(group)
		a.g("MOVD (R2), R8")
		a.g("ADD R9, R8, R8")
		a.g("ADD $24, R2, R2") // the next slice
		a.g("MOVD R6, R9")
		a.g("CMP R4, R10")
		a.g("CSEL GT, R4, R10, R10")
		a.g("SUB R10, R4, R4")
		a.loop("R10", func() { a.valuesRow(lines, regs) })
		a.g("MOVD $%d, R10", attnGroup)
		a.g("CBNZ R4, %s", group)
		for i := range lines * regs / 2 {
			a.stp(2*v(i), 2*v(i)+1, 0, 32*i)
		}
	})
}

// valuesRow adds the row at R8 times the probabilities at R1, and moves both on.
func (a *asm) valuesRow(lines, regs int) {
	for l := range v(lines) {
		a.lds(28+l, 1, 4*attnTile*int(l))
	}
	for i := 0; i < regs; i += 2 {
		x := 16 + v(i)%8
		a.ldp(x, x+1, 8, 16*i)
		for l := range lines {
			s := v(l*regs + i)
			a.fmlaBy(s, x, 28+v(l))
			a.fmlaBy(s+1, x+1, 28+v(l))
		}
	}
	a.g("ADD $4, R1, R1")
	a.g("ADD R5, R8, R8")
}

func (a *asm) scaleMax() {
	const params = "x *float32, n int, max *float32, scale float32"
	a.fn("scaleMaxNEON", "is x *= scale, and writes the largest of x, or NaN if there is one; n is a multiple of 8.", params, 0, func() {
		a.args("x *float32, n int, max *float32")
		a.g("MOVWU scale+24(FP), R12")
		a.dupW(16, 12)
		a.constant(2, 0xff800000) // −Inf
		a.g("LSR $3, R1, R1")
		a.loop("R1", func() {
			a.ldp(0, 1, 0, 0)
			a.both("fmul.4s", 0, 0, 16)
			a.stpNext(0, 1, 0)
			a.o("fmax.4s", 2, 2, 0)
			a.o("fmax.4s", 2, 2, 1)
		})
		a.fmaxv(2, 2)
		a.sts(2, 2, 0)
	})
}

func (a *asm) expSum() {
	const params = "x *float32, n int, sums *[8]float32, max float32"
	a.fn("expSumNEON", "is x = exp(x − max), and continues the running sums of x; n is a multiple of 8.", params, 0, func() {
		a.args("x *float32, n int, sums *[8]float32")
		a.g("MOVWU max+24(FP), R12")
		a.dupW(8, 12)
		a.expConstants()
		a.ldp(6, 7, 2, 0)
		a.g("LSR $3, R1, R1")
		a.loop("R1", func() {
			for half := range v(2) {
				a.ldq(0, 0, 0)
				a.o("fsub.4s", 0, 0, 8)
				a.exp()
				a.o("fadd.4s", 6+half, 6+half, 0)
				a.stqNext(0, 0)
			}
		})
		a.stp(6, 7, 2, 0)
	})
}

// attnFactors follows the three cases of attnFactorsGo, the first one last.
func (a *asm) attnFactors() {
	const params = "m *float32, l *float32, mt *float32, lt *float32, alpha *float32, beta *float32, n int"
	a.fn("attnFactorsNEON", "joins the items (mt, lt) to the states (m, l) of n lines, a multiple of 8.", params, 0, func() {
		a.args(params)
		a.expConstants()
		a.constant(31, math.Float32bits(-1))
		a.zero(30)
		a.g("LSR $2, R6, R6")
		a.loop("R6", func() {
			a.ldq(6, 0, 0)
			a.ldq(7, 1, 0)
			a.ldqNext(8, 2)
			a.ldqNext(9, 3)
			a.mov(11, 6)
			a.o("fcmgt.4s", 10, 8, 6)
			a.o("bit.16b", 11, 8, 10) // the new maximum
			a.o("fsub.4s", 0, 6, 11)
			a.exp()
			a.mov(12, 0) // alpha
			a.o("fsub.4s", 0, 8, 11)
			a.exp()
			a.o("fmul.4s", 14, 9, 0)
			a.o("fmla.4s", 14, 7, 12) // the new sum
			a.o("fcmeq.4s", 10, 7, 30)
			a.o("bit.16b", 12, 31, 10)
			a.o("bit.16b", 0, expOne, 10)
			a.o("bit.16b", 11, 8, 10)
			a.o("bit.16b", 14, 9, 10)
			a.o("fcmeq.4s", 10, 9, 30)
			a.o("bit.16b", 12, expOne, 10)
			a.o("bic.16b", 0, 0, 10)
			a.o("bit.16b", 11, 6, 10)
			a.o("bit.16b", 14, 7, 10)
			a.stqNext(11, 0)
			a.stqNext(14, 1)
			a.stqNext(12, 4)
			a.stqNext(0, 5)
		})
	})
}

func (a *asm) attnFold() {
	const params = "o *float32, add *float32, n int, alpha float32, beta float32"
	a.fn("attnFoldNEON", "is o = o·alpha + add·beta; n is a multiple of 8.", params, 0, func() {
		a.args("o *float32, add *float32, n int")
		a.g("MOVWU alpha+24(FP), R12")
		a.dupW(16, 12)
		a.g("MOVWU beta+28(FP), R12")
		a.dupW(17, 12)
		a.g("LSR $3, R2, R2")
		a.loop("R2", func() {
			a.ldp(0, 1, 0, 0)
			a.ldpNext(2, 3, 1)
			a.both("fmul.4s", 2, 2, 17)
			a.o("fmla.4s", 2, 0, 16)
			a.o("fmla.4s", 3, 1, 16)
			a.stpNext(2, 3, 0)
		})
	})
}
