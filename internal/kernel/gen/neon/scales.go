package main

// scalesK unpacks the scales and minima of Q4_K and Q5_K: 8 of 6 bits each in the 12 bytes behind d and dmin.
func scalesK(a *asm) {
	a.g("MOVWU 4(R7), R11")
	a.g("MOVWU 8(R7), R12")
	a.g("MOVWU 12(R7), R13")
	a.highBits("R11", "R14") // the upper bits of the last four scales
	a.highBits("R12", "R15") // and minima
	a.g("ANDW $0x3f3f3f3f, R11, R11")
	a.g("ANDW $0x3f3f3f3f, R12, R12")
	a.g("ANDW $0x0f0f0f0f, R13, R19")
	a.g("ORRW R19, R14, R14")
	a.g("LSRW $4, R13, R13")
	a.g("ANDW $0x0f0f0f0f, R13, R13")
	a.g("ORRW R13, R15, R15")
	a.g("ORR R14<<32, R11, R11")
	a.g("ORR R15<<32, R12, R12")
	a.lowD(16, 11)
	a.lowD(20, 12)
	a.ldh(22, 7, 0)
	a.halfToFloat(22, 22)
	a.ldh(23, 7, 2)
	a.halfToFloat(23, 23)
	for _, d := range []v{16, 20} {
		a.u("uxtl.8h", d, d)
		a.u("uxtl2.4s", d+1, d)
		a.u("uxtl.4s", d, d)
		for i := range v(2) {
			a.u("scvtf.4s", d+i, d+i)
			a.fmulBy(d+i, d+i, 22+(d-16)/4)
		}
	}
}

// highBits moves the two upper bits of each byte of src to bits 4 and 5 of dst.
func (a *asm) highBits(src, dst string) {
	a.g("LSRW $2, %s, %s", src, dst)
	a.g("ANDW $0x30303030, %s, %s", dst, dst)
}

// bytesToScales turns the 16 signed bytes in to into 16 floats, times the number in d.
func (a *asm) bytesToScales(to, d v) {
	a.u("sxtl2.8h", to+2, to)
	a.u("sxtl.8h", to, to)
	for _, r := range []v{to, to + 2} {
		a.u("sxtl2.4s", r+1, r)
		a.u("sxtl.4s", r, r)
	}
	for i := range v(4) {
		a.u("scvtf.4s", to+i, to+i)
		a.fmulBy(to+i, to+i, d)
	}
}

func scalesQ6K(a *asm) {
	a.ldh(15, 7, 208)
	a.halfToFloat(15, 15)
	a.ldq(16, 7, 192)
	a.bytesToScales(16, 15)
}

func scalesQ2K(a *asm) {
	a.ldh(14, 7, 80)
	a.halfToFloat(14, 14)
	a.ldh(15, 7, 82)
	a.halfToFloat(15, 15)
	a.ldq(20, 7, 0)
	a.o("and.16b", 16, 20, 29)
	a.s("ushr.16b", 20, 20, 4)
	a.bytesToScales(16, 14)
	a.bytesToScales(20, 15)
}

// scalesQ3K unpacks 16 scales of 6 bits, less 32: the low 4 bits in bytes 0 to 7, the others in 8 to 11.
func scalesQ3K(a *asm) {
	a.g("MOVD 96(R7), R11")
	a.g("MOVWU 104(R7), R13")
	a.g("ORR R13<<30, R13, R14") // bits 0 and 1 of a byte, and behind them 2 and 3
	a.g("AND $0x0303030303030303, R14, R15")
	a.g("LSR $4, R14, R14")
	a.g("AND $0x0303030303030303, R14, R14")
	a.g("AND $0x0f0f0f0f0f0f0f0f, R11, R12")
	a.g("LSR $4, R11, R11")
	a.g("AND $0x0f0f0f0f0f0f0f0f, R11, R11")
	a.g("ORR R15<<4, R12, R12")
	a.g("ORR R14<<4, R11, R11")
	a.lowD(16, 12)
	a.setD(16, 11)
	byteMask(a, 14, 32)
	a.o("sub.16b", 16, 16, 14)
	a.ldh(15, 7, 108)
	a.halfToFloat(15, 15)
	a.bytesToScales(16, 15)
}
