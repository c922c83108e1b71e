package main

import "math"

// elementwise writes the loops outside products and attention. n is a multiple of 8, but for ropePairs, and
// at least 8.
func (a *asm) elementwise() {
	a.sumSquares()
	a.each("addNEON", "is dst += x", "dst *float32, x *float32, n int", func() {
		a.ldp(0, 1, 0, 0)
		a.ldpNext(2, 3, 1)
		a.both("fadd.4s", 0, 0, 2)
		a.stpNext(0, 1, 0)
	})
	a.scaled1("scaleNEON", "is x *= f", "x *float32, n int", "f", func() {
		a.ldp(0, 1, 0, 0)
		a.both("fmul.4s", 0, 0, 16)
		a.stpNext(0, 1, 0)
	})
	a.scaled1("divideNEON", "is dst = x / f", "dst *float32, x *float32, n int", "f", func() {
		a.ldpNext(0, 1, 1)
		a.both("fdiv.4s", 0, 0, 16)
		a.stpNext(0, 1, 0)
	})
	a.scaled1("scaleWeightNEON", "is dst = x·f·w", "dst *float32, x *float32, w *float32, n int", "f", func() {
		a.ldpNext(0, 1, 1)
		a.ldpNext(2, 3, 2)
		a.both("fmul.4s", 0, 0, 16)
		a.o("fmul.4s", 0, 0, 2)
		a.o("fmul.4s", 1, 1, 3)
		a.stpNext(0, 1, 0)
	})
	a.siluMul()
	a.rope()
	a.toF16()
}

// both writes an operation on two vectors; V16 and above stand for two that are equal.
func (a *asm) both(name string, d, n, m v) {
	second := m + 1
	if m >= 16 {
		second = m
	}
	a.o(name, d, n, m)
	a.o(name, d+1, n+1, second)
}

// each writes a loop over n values, the last parameter, 8 at a time.
func (a *asm) each(name, doc, params string, body func()) {
	a.fn(name, doc+"; n is a multiple of 8.", params, 0, func() {
		a.args(params)
		counter := counterOf(params)
		a.g("LSR $3, %s, %s", counter, counter)
		a.loop(counter, body)
	})
}

// counterOf is the register of the last parameter.
func counterOf(params string) string {
	return "R" + string(rune('0'+paramBytes(params)/8-1))
}

// scaled1 is each with a further parameter, a float, in all lanes of V16.
func (a *asm) scaled1(name, doc, params, factor string, body func()) {
	a.fn(name, doc+"; n is a multiple of 8.", params+", "+factor+" float32", 0, func() {
		a.args(params)
		a.g("MOVWU %s+%d(FP), R12", factor, paramBytes(params))
		a.dupW(16, 12)
		counter := counterOf(params)
		a.g("LSR $3, %s, %s", counter, counter)
		a.loop(counter, body)
	})
}

func (a *asm) sumSquares() {
	const params = "sums *[8]float32, x *float32, n int"
	a.fn("sumSquaresNEON", "writes the running sums of x²; n is a multiple of 8.", params, 0, func() {
		a.args(params)
		a.zero(0)
		a.zero(1)
		a.g("LSR $3, R2, R2")
		a.loop("R2", func() {
			a.ldpNext(2, 3, 1)
			a.o("fmla.4s", 0, 2, 2)
			a.o("fmla.4s", 1, 3, 3)
		})
		a.stp(0, 1, 0, 0)
	})
}

func (a *asm) siluMul() {
	const params = "dst *float32, gate *float32, up *float32, n int"
	a.fn("siluMulNEON", "is dst = silu(gate)·up; n is a multiple of 8.", params, 0, func() {
		a.args(params)
		a.expConstants()
		a.constant(15, math.Float32bits(1))
		a.g("LSR $2, R3, R3")
		a.loop("R3", func() {
			a.ldqNext(6, 1)
			a.ldqNext(7, 2)
			a.u("fneg.4s", 0, 6)
			a.exp()
			a.o("fadd.4s", 0, 15, 0)
			a.o("fdiv.4s", 0, 6, 0)
			a.o("fmul.4s", 0, 0, 7)
			a.stqNext(0, 0)
		})
	})
}

// Registers of exp's constants.
const (
	expLog2E v = 16 + iota
	expMagic
	expHi
	expLo
	expC6
	expC5
	expC4
	expC3
	expC2
	expOne
	expLeast
	expMost
	expInf
)

// expConstants fills V16 to V28, see docs/numerics.md.
func (a *asm) expConstants() {
	for i, c := range []float32{1.44269502, 12582912, 0.693147182464599609375, 1.904654212e-09, 0.0013838902, 0.0083691925,
		0.041668102, 0.16666517, 0.49999994, 1, -87.33, 88.72283172, float32(math.Inf(1))} {
		a.constant(16+v(i), math.Float32bits(c))
	}
}

// exp sets V0 to its exponential; it uses V1 to V5.
func (a *asm) exp() {
	a.mov(1, expMagic)
	a.o("fmla.4s", 1, 0, expLog2E) // t
	a.o("fsub.4s", 2, 1, expMagic) // n
	a.mov(3, 0)
	a.o("fmls.4s", 3, 2, expHi)
	a.o("fmla.4s", 3, 2, expLo) // r
	p, next := expC6, v(4)
	for _, c := range []v{expC5, expC4, expC3, expC2, expOne, expOne} {
		a.mov(next, c)
		a.o("fmla.4s", next, p, 3)
		p, next = next, 9-next
	}
	a.s("shl.4s", 1, 1, 23)
	a.o("add.4s", p, p, 1)
	a.o("fcmgt.4s", 1, expLeast, 0)
	a.o("bic.16b", p, p, 1)
	a.o("fcmgt.4s", 1, 0, expMost)
	a.o("bit.16b", p, expInf, 1)
	a.o("fcmeq.4s", 1, 0, 0)
	a.o("bit.16b", 0, p, 1) // NaN stays
}

func (a *asm) rope() {
	const halves = "lo *float32, hi *float32, cos *float32, sin *float32, n int"
	a.fn("ropeHalvesNEON", "rotates n pairs (lo[i], hi[i]); n is a multiple of 4.", halves, 0, func() {
		a.args(halves)
		a.g("LSR $2, R4, R4")
		a.loop("R4", func() {
			a.ldq(0, 0, 0)
			a.ldq(1, 1, 0)
			a.rotate()
			a.stqNext(4, 0)
			a.stqNext(5, 1)
		})
	})
	const pairs = "x *float32, cos *float32, sin *float32, n int"
	a.fn("ropePairsNEON", "rotates n pairs (x[2i], x[2i+1]); n is a multiple of 4.", pairs, 0, func() {
		a.g("MOVD x+0(FP), R0")
		a.g("MOVD cos+8(FP), R2")
		a.g("MOVD sin+16(FP), R3")
		a.g("MOVD n+24(FP), R4")
		a.g("MOVD R0, R1")
		a.g("LSR $2, R4, R4")
		a.loop("R4", func() {
			a.ld2(0, 0)
			a.rotate()
			a.st2(4, 1)
		})
	})
}

// rotate turns the pairs (V0, V1) by the angles whose cosines and sines are at R2 and R3, to V4 and V5.
func (a *asm) rotate() {
	a.ldqNext(2, 2)
	a.ldqNext(3, 3)
	a.o("fmul.4s", 4, 0, 2)
	a.o("fmul.4s", 6, 1, 3)
	a.o("fsub.4s", 4, 4, 6)
	a.o("fmul.4s", 5, 1, 2)
	a.o("fmul.4s", 7, 0, 3)
	a.o("fadd.4s", 5, 5, 7)
}

func (a *asm) toF16() {
	const params = "dst *uint16, src *float32, n int, bad *[8]uint16"
	a.fn("toF16NEON", "rounds to binary16 and sets words of bad where a result is not finite; n is a multiple of 8.", params, 0, func() {
		a.args(params)
		a.g("MOVD $0x7c00, R12")
		a.dupH(16, 12)
		a.zero(3)
		a.g("LSR $3, R2, R2")
		a.loop("R2", func() {
			a.ldpNext(0, 1, 1)
			a.u("fcvtn.4h", 2, 0)
			a.u("fcvtn2.8h", 2, 1)
			a.stqNext(2, 0)
			a.o("and.16b", 2, 2, 16)
			a.o("cmeq.8h", 2, 2, 16)
			a.o("orr.16b", 3, 3, 2)
		})
		a.stq(3, 3, 0)
	})
}
