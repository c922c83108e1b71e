package main

var formats = []*format{
	{name: "Q4_0", bytes: 8 * 18, run: 32, zero: 8, setup: nibbleMask, fill: nibbles(18, 2), scales: blockScales(18, false)},
	{name: "Q4_1", bytes: 8 * 20, run: 32, offset: true, setup: nibbleMask, fill: nibbles(20, 4), scales: blockScales(20, true)},
	{name: "Q5_0", bytes: 8 * 22, run: 32, zero: 16, setup: fifthBits, fill: fifths(22, 6, 2), scales: blockScales(22, false)},
	{name: "Q5_1", bytes: 8 * 24, run: 32, offset: true, setup: fifthBits, fill: fifths(24, 8, 4), scales: blockScales(24, true)},
	{name: "Q8_0", bytes: 8 * 34, run: 32, signed: true, fill: fillQ8, scales: blockScales(34, false)},
	{name: "IQ4NL", bytes: 8 * 18, run: 32, signed: true, setup: iq4Levels, fill: fillIQ4NL, scales: blockScales(18, false)},
	{name: "Q2K", bytes: 84, run: 16, offset: true, setup: q2Masks, fill: fillQ2K, scales: scalesQ2K},
	{name: "Q3K", bytes: 110, run: 16, zero: 4, setup: q3Masks, fill: fillQ3K, scales: scalesQ3K},
	{name: "Q4K", bytes: 144, run: 32, offset: true, setup: nibbleMask, fill: fillQ4K, scales: scalesK},
	{name: "Q5K", bytes: 176, run: 32, offset: true, setup: q5Masks, fill: fillQ5K, scales: scalesK},
	{name: "Q6K", bytes: 210, run: 16, zero: 32, setup: q6Masks, fill: fillQ6K, scales: scalesQ6K},

	{name: "IQ4XS", bytes: 136, run: 32, signed: true, setup: iq4Levels, fill: fillIQ4XS, scales: scalesIQ4XS},
	{name: "TQ2_0", bytes: 66, run: 32, zero: 1, setup: q2Masks, fill: fillTQ2, scales: scalesTQ2},
	{name: "MXFP4", bytes: 8 * 17, run: 32, signed: true, setup: e2m1Levels, fill: fillMXFP4, scales: scalesMXFP4},
	{name: "NVFP4", bytes: 4 * 36, run: 16, signed: true, setup: e2m1Levels, fill: fillNVFP4, scales: scalesNVFP4},

	ints("Int4x32", 4, 32, false), ints("Int4x64", 4, 64, false), ints("Int4x128", 4, 128, false),
	ints("Int8x32", 8, 32, false), ints("Int8x128", 8, 128, false),
	ints("LLMInt8x32", 8, 32, true), ints("LLMInt8x128", 8, 128, true),
}

// byteMask fills d with a byte.
func byteMask(a *asm, d v, b int) {
	a.g("MOVD $%d, R12", b)
	a.dupB(d, 12)
}

func nibbleMask(a *asm) { byteMask(a, 29, 15) }

// blockAt returns a register and an offset that reach byte off of block b of the given size: offsets that
// are no multiple of 16 reach 255 bytes.
func blockAt(a *asm, size, b, off int) (r, at int) {
	if b < 4 {
		return 7, size*b + off
	}
	a.g("ADD $%d, R7, R11", 4*size)
	return 11, size*(b-4) + off
}

// nibbles fills blocks whose low halves of 16 bytes come before the high ones.
func nibbles(size, off int) func(a *asm, b int) {
	return func(a *asm, b int) {
		r, at := blockAt(a, size, b, off)
		a.ldq(9, r, at)
		a.o("and.16b", 8, 9, 29)
		a.s("ushr.16b", 9, 9, 4)
	}
}

// blockScales loads the f16 numbers that begin blocks of 32, and those behind them: −min.
func blockScales(size int, offset bool) func(a *asm) {
	return func(a *asm) {
		a.g("MOVD $%d, R12", size)
		a.widenHalves(0, 16)
		if offset {
			a.widenHalves(2, 20)
			a.u("fneg.4s", 20, 20)
			a.u("fneg.4s", 21, 21)
		}
	}
}

// widenHalves loads eight f16 numbers, R12 bytes apart from offset off on, to to and to+1.
func (a *asm) widenHalves(off int, to v) {
	a.g("ADD $%d, R7, R11", off)
	for i := range 8 {
		a.ldhLane(to, i, 11, 12)
	}
	a.u("fcvtl2.4s", to+1, to)
	a.u("fcvtl.4s", to, to)
}

// fifthBits sets V24 and V25 to the bytes of 32 bits that hold those of values 0 to 15, and 16 to 31; V26
// to each byte's bit; V28 to 16.
func fifthBits(a *asm) {
	nibbleMask(a)
	byteMask(a, 28, 16)
	a.zero(24)
	a.g("MOVD $0x0101010101010101, R12")
	a.setD(24, 12)
	byteMask(a, 25, 2)
	a.g("MOVD $0x0303030303030303, R12")
	a.setD(25, 12)
	a.g("MOVD $0x8040201008040201, R12")
	a.dupD(26, 12)
}

func fifths(size, off, bits int) func(a *asm, b int) {
	low := nibbles(size, off)
	return func(a *asm, b int) {
		low(a, b)
		r, at := blockAt(a, size, b, bits)
		a.lds(10, r, at)
		for unit := range v(2) {
			a.tbl(11, 10, 24+unit)
			a.o("cmtst.16b", 11, 11, 26)
			a.o("and.16b", 11, 11, 28)
			a.o("orr.16b", 8+unit, 8+unit, 11)
		}
	}
}

func fillQ8(a *asm, b int) {
	r, at := blockAt(a, 34, b, 2)
	a.ldq(8, r, at)
	a.ldq(9, r, at+16)
}

// iq4Levels sets V28 to the 16 levels of IQ4_NL.
func iq4Levels(a *asm) {
	nibbleMask(a)
	a.g("MOVD $0xf6eaddcfbfad9881, R12") // −127 −104 −83 −65 −49 −35 −22 −10
	a.lowD(28, 12)
	a.g("MOVD $0x7159453526190d01, R12") // 1 13 25 38 53 69 89 113
	a.setD(28, 12)
}

func fillIQ4NL(a *asm, b int) {
	nibbles(18, 2)(a, b)
	a.tbl(8, 28, 8)
	a.tbl(9, 28, 9)
}

// nibblesK fills blocks of which two share 32 bytes.
func nibblesK(a *asm, b, off int) {
	for unit := range v(2) {
		a.ldq(8+unit, 7, off+b/2*32+16*int(unit))
		if b%2 == 0 {
			a.o("and.16b", 8+unit, 8+unit, 29)
		} else {
			a.s("ushr.16b", 8+unit, 8+unit, 4)
		}
	}
}

func fillQ4K(a *asm, b int) { nibblesK(a, b, 16) }

func q5Masks(a *asm) {
	nibbleMask(a)
	byteMask(a, 28, 16)
}

func fillQ5K(a *asm, b int) {
	nibblesK(a, b, 48)
	for unit := range v(2) {
		a.ldq(10, 7, 16+16*int(unit))
		a.moveBits(10, b-4)
		a.o("and.16b", 10, 10, 28)
		a.o("orr.16b", 8+unit, 8+unit, 10)
	}
}

// moveBits shifts the bits of bytes to the right, or to the left where by is below 0.
func (a *asm) moveBits(d v, by int) {
	switch {
	case by > 0:
		a.s("ushr.16b", d, d, by)
	case by < 0:
		a.s("shl.16b", d, d, -by)
	}
}

func q6Masks(a *asm) {
	nibbleMask(a)
	byteMask(a, 28, 0x30)
}

func fillQ6K(a *asm, b int) {
	half, part := b/4, b%4
	for unit := range v(2) {
		a.ldq(8+unit, 7, half*64+part%2*32+16*int(unit))
		if part < 2 {
			a.o("and.16b", 8+unit, 8+unit, 29)
		} else {
			a.s("ushr.16b", 8+unit, 8+unit, 4)
		}
		a.ldq(10, 7, 128+half*32+16*int(unit))
		a.moveBits(10, 2*part-4)
		a.o("and.16b", 10, 10, 28)
		a.o("orr.16b", 8+unit, 8+unit, 10)
	}
}

func q2Masks(a *asm) {
	nibbleMask(a)
	byteMask(a, 28, 3)
}

// twoBits fills blocks of 2-bit values: 64 bytes from off on hold 4 of them each.
func twoBits(a *asm, b, off int) {
	for unit := range v(2) {
		a.ldq(8+unit, 7, off+b/4*32+16*int(unit))
		a.moveBits(8+unit, b%4*2)
		a.o("and.16b", 8+unit, 8+unit, 28)
	}
}

func fillQ2K(a *asm, b int) { twoBits(a, b, 16) }

func q3Masks(a *asm) {
	byteMask(a, 28, 3)
	byteMask(a, 27, 4)
}

func fillQ3K(a *asm, b int) {
	twoBits(a, b, 32)
	for unit := range v(2) {
		a.ldq(10, 7, 16*int(unit))
		a.moveBits(10, b-2)
		a.o("and.16b", 10, 10, 27)
		a.o("orr.16b", 8+unit, 8+unit, 10)
	}
}
