package main

// quantize rounds n groups of 256 activations to 16 bits in blocks of 32.
func (a *asm) quantize() {
	const params = "groups *byte, words *byte, x *float32, n int"
	a.fn("quantizeNEON", "rounds n groups of activations, and writes their words unless words is nil.", params, wordsSize, func() {
		a.args(params)
		a.g("MOVD R1, R4")
		a.g("MOVD $scratch-%d(SP), R5", wordsSize)
		a.g("MOVD $-32767, R12")
		a.dupH(31, 12)
		a.loop("R3", func() {
			a.g("CMP $0, R4")
			a.g("CSEL EQ, R5, R4, R1")
			for b := range 8 {
				a.quantizeBlock(b)
			}
			a.toLanes(1, 0)
			a.blockSums()
			a.g("CMP $0, R4")
			a.g("ADD $%d, R4, R6", wordsSize)
			a.g("CSEL EQ, R4, R6, R4")
			a.g("ADD $%d, R0, R0", actSize)
		})
	})
}

// quantizeBlock takes the next 32 values at R2: to words at R1; scale and sums of 16 to the group at R0.
func (a *asm) quantizeBlock(b int) {
	for i := range v(4) {
		a.ldpNext(2*i, 2*i+1, 2)
	}
	a.blockTop()
	a.blockScale()
	a.g("MOVW R8, %d(R0)", actScale+4*b)
	a.dupW(16, 9)
	for i := range v(8) {
		a.o("fmul.4s", i, i, 16)
		a.u("fcvtns.4s", i, i)
	}
	for i := range v(4) {
		a.u("sqxtn.4h", i, 2*i)
		a.u("sqxtn2.8h", i, 2*i+1)
		a.o("smax.8h", i, i, 31)
	}
	for unit := range 2 {
		u, x := 2*b+unit, v(2*unit)
		a.o("uzp1.8h", 8, x, x+1)
		a.o("uzp2.8h", 9, x, x+1)
		a.stq(8, 1, wordAt(u, 0))
		a.stq(9, 1, wordAt(u, 1))
		a.u("saddlp.4s", 10, 8)
		a.u("sadalp.4s", 10, 9)
		a.addv(10, 10)
		a.sts(10, 0, actSum16+4*u)
	}
}

// blockTop leaves the largest of V0 to V7 without their signs, as integers, in R7.
func (a *asm) blockTop() {
	for i := range v(8) {
		a.u("fabs.4s", 8+i, i)
	}
	for step := v(4); step > 0; step /= 2 {
		for i := range step {
			a.o("umax.4s", 8+i, 8+i, 8+i+step)
		}
	}
	a.umaxv(8, 8)
	a.toW(7, 8)
}

// blockScale turns R7 into the bits of the scale in R8 and of its inverse in R9: 0 and 0 below 2^−100, NaN
// and 0 if a value is not finite.
func (a *asm) blockScale() {
	a.g("LSR $23, R7, R7")
	a.g("SUB $14, R7, R8")
	a.g("LSL $23, R8, R8")
	a.g("MOVD $268, R9")
	a.g("SUB R7, R9, R9")
	a.g("LSL $23, R9, R9")
	a.g("CMP $%d, R7", 127-100)
	a.g("CSEL LO, ZR, R8, R8")
	a.g("CSEL LO, ZR, R9, R9")
	a.g("CMP $255, R7")
	a.g("MOVD $0x7fc00000, R10")
	a.g("CSEL EQ, R10, R8, R8")
	a.g("CSEL EQ, ZR, R9, R9")
}

// blockSums makes the sums of blocks of 32, and the offsets.
func (a *asm) blockSums() {
	a.ldp(0, 1, 0, actSum16)
	a.ldp(2, 3, 0, actSum16+32)
	a.o("addp.4s", 0, 0, 1)
	a.o("addp.4s", 1, 2, 3)
	a.stp(0, 1, 0, actSum32)
	a.ldp(2, 3, 0, actScale)
	for i := range v(2) {
		a.u("scvtf.4s", i, i)
		a.o("fmul.4s", i, i, 2+i)
	}
	a.stp(0, 1, 0, actOffset)
}
