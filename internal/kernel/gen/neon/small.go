package main

// The formats of micro-scaling, IQ4_XS, TQ2_0, and integers with a zero point.

func fillIQ4XS(a *asm, b int) {
	a.ldq(9, 7, 8+16*b)
	a.o("and.16b", 8, 9, 29)
	a.s("ushr.16b", 9, 9, 4)
	a.tbl(8, 28, 8)
	a.tbl(9, 28, 9)
}

// scalesIQ4XS spreads the low 4 bits of eight scales, in bytes 4 to 7, and the high 2 bits, in 2 and 3, to
// bytes.
func scalesIQ4XS(a *asm) {
	a.g("MOVWU 4(R7), R11")
	a.g("MOVHU 2(R7), R13")
	a.spread("R11", 16, 0x0000ffff0000ffff)
	a.spread("R11", 8, 0x00ff00ff00ff00ff)
	a.spread("R11", 4, 0x0f0f0f0f0f0f0f0f)
	a.spread("R13", 24, 0x000000ff000000ff)
	a.spread("R13", 12, 0x000f000f000f000f)
	a.spread("R13", 6, 0x0303030303030303)
	a.g("ORR R13<<4, R11, R11")
	a.lowD(16, 11)
	byteMask(a, 14, 32)
	a.o("sub.16b", 16, 16, 14)
	a.ldh(15, 7, 0)
	a.halfToFloat(15, 15)
	a.u("sxtl.8h", 16, 16)
	a.u("sxtl2.4s", 17, 16)
	a.u("sxtl.4s", 16, 16)
	for i := range v(2) {
		a.u("scvtf.4s", 16+i, 16+i)
		a.fmulBy(16+i, 16+i, 15)
	}
}

// spread moves a copy of r up and keeps the bits of mask.
func (a *asm) spread(r string, by int, mask uint64) {
	a.g("ORR %s<<%d, %s, %s", r, by, r, r)
	a.g("AND $0x%016x, %s, %s", mask, r, r)
}

func fillTQ2(a *asm, b int) { twoBits(a, b, 0) }

func scalesTQ2(a *asm) {
	a.ldh(15, 7, 64)
	a.halfToFloat(15, 15)
	a.dupS(16, 15, 0)
	a.dupS(17, 15, 0)
}

// e2m1Levels sets V28 to the doubled values of four bits.
func e2m1Levels(a *asm) {
	nibbleMask(a)
	a.g("MOVD $0x0c08060403020100, R12")
	a.lowD(28, 12)
	a.g("MOVD $0xf4f8fafcfdfeff00, R12")
	a.setD(28, 12)
}

func fillMXFP4(a *asm, b int) {
	nibbles(17, 1)(a, b)
	a.tbl(8, 28, 8)
	a.tbl(9, 28, 9)
}

// scalesMXFP4 makes 2^(e−128) of the byte that begins each block: bits (e−1)·2^23, but those of subnormal
// numbers for 0 and 1.
func scalesMXFP4(a *asm) {
	a.g("MOVD R7, R11")
	a.g("MOVD $17, R12")
	a.zero(16)
	for i := range 8 {
		a.ldbLane(16, i, 11, 12)
	}
	a.u("uxtl.8h", 16, 16)
	a.u("uxtl2.4s", 17, 16)
	a.u("uxtl.4s", 16, 16)
	a.constant(14, 1)
	a.constant(15, 0x00400000)
	a.constant(19, 0x00200000)
	a.zero(18)
	for i := v(16); i < 18; i++ {
		a.o("cmeq.4s", 20, i, 14)
		a.o("cmeq.4s", 21, i, 18)
		a.o("sub.4s", i, i, 14)
		a.s("shl.4s", i, i, 23)
		a.o("bit.16b", i, 15, 20)
		a.o("bit.16b", i, 19, 21)
	}
}

// fillNVFP4 takes two runs of 16: 8 bytes each, the low halves before the high ones.
func fillNVFP4(a *asm, b int) {
	a.ldq(9, 7, b/2*36+4+16*(b%2))
	a.o("and.16b", 8, 9, 29)
	a.s("ushr.16b", 9, 9, 4)
	a.o("zip1.2d", 10, 8, 9)
	a.o("zip2.2d", 11, 8, 9)
	a.tbl(8, 28, 10)
	a.tbl(9, 28, 11)
}

// scalesNVFP4 halves the unsigned E4M3 numbers of 16 runs: their bits are those of a f16 number 256 times
// smaller. 0x7f counts as 0.
func scalesNVFP4(a *asm) {
	a.g("MOVD R7, R11")
	a.g("MOVD $36, R12")
	for i := range 4 {
		a.ldsLane(20, i, 11, 12)
	}
	byteMask(a, 14, 0x7f)
	a.o("cmeq.16b", 15, 20, 14)
	a.o("and.16b", 20, 20, 14)
	a.o("bic.16b", 20, 20, 15)
	a.u("uxtl2.8h", 22, 20)
	a.u("uxtl.8h", 20, 20)
	a.constant(15, 0x43000000) // 128
	for i := range v(2) {
		a.s("shl.8h", 20+2*i, 20+2*i, 7)
		a.u("fcvtl.4s", 16+2*i, 20+2*i)
		a.u("fcvtl2.4s", 17+2*i, 20+2*i)
	}
	for i := range v(4) {
		a.fmulBy(16+i, 16+i, 15)
	}
}

// ints is the format of unsigned integers in blocks of some values behind a scale and a zero point.
func ints(name string, bits, values int, scaled bool) *format {
	size := 5 + values*bits/8
	f := &format{name: name, bytes: 256 / values * size, run: 32, setup: nibbleMask}
	f.zeroAt = func(b int) int { return b*32/values*size + 4 }
	f.fill = func(a *asm, b int) {
		at := b*32/values*size + 5 + b*32%values*bits/8
		a.g("ADD $%d, R7, R11", at)
		a.ldq(9, 11, 0)
		if bits == 8 {
			a.mov(8, 9)
			a.ldq(9, 11, 16)
			return
		}
		a.o("and.16b", 8, 9, 29)
		a.s("ushr.16b", 9, 9, 4)
	}
	f.scales = func(a *asm) {
		a.intScales(f, size, values)
		if scaled {
			a.constant(15, 0x3c010204) // 1/127, as bitsandbytes rounds it
			a.fmulBy(16, 16, 15)
			a.fmulBy(17, 17, 15)
		}
	}
	return f
}

// intScales loads the scales of blocks of some values to V16 and V17, one for each run of 32, and the zero
// points to V22 and V23.
func (a *asm) intScales(f *format, size, values int) {
	for b := range 8 {
		a.g("MOVBU %d(R7), R12", f.zeroAt(b))
		a.setS(22+v(b/4), b%4, 12)
	}
	a.g("MOVD R7, R11")
	a.g("MOVD $%d, R12", size)
	for i := range 256 / values {
		a.ldsLane(16+v(i/4), i%4, 11, 12)
	}
	switch values {
	case 64:
		a.o("zip2.4s", 17, 16, 16)
		a.o("zip1.4s", 16, 16, 16)
	case 128:
		a.dupS(17, 16, 1)
		a.dupS(16, 16, 0)
	}
}
