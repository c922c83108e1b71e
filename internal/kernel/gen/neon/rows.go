package main

// format is a block format of 256 weights. Its pieces of code read the group at R7, and use V8 to V15 and,
// for constants, V24 to V29. A group's blocks of 32 are filled in rising order.
type format struct {
	name   string
	bytes  int
	run    int
	offset bool
	signed bool // the bytes are, as fill leaves them
	zero   int  // what is subtracted from every byte: 0 or a power of two
	// zeroAt is the offset of a byte that is subtracted from those of block b; nil if there is none. scales
	// then writes the zeros of the blocks to V22 and V23.
	zeroAt func(b int) int
	setup  func(a *asm)
	// fill writes the bytes of block b to V8 and V9.
	fill func(a *asm, b int)
	// scales writes the scales of the runs to V16 and following, and the minima to V20 and following.
	scales func(a *asm)
}

// split leaves the 8 bytes of even index of src in V10, the others in V11, as words.
func (f *format) split(a *asm, src v) {
	if f.signed {
		a.s("shl.8h", 10, src, 8)
		a.s("sshr.8h", 10, 10, 8)
		a.s("sshr.8h", 11, src, 8)
		return
	}
	a.s("shl.8h", 10, src, 8)
	a.s("ushr.8h", 10, 10, 8)
	a.s("ushr.8h", 11, src, 8)
}

// log2 of a power of two.
func log2(n int) (e int) {
	for ; n > 1; n /= 2 {
		e++
	}
	return e
}

// intRows multiplies rows of weights as they are stored with one row of activations.
func (a *asm) intRows(f *format) {
	const params = "w *byte, rowBytes int, rows int, groups int, words *byte, acts *byte, sums *float32"
	a.fn("intRows"+f.name+"NEON", "continues the running sums of rows of weights over whole groups.", params, 0, func() {
		a.args(params)
		if f.setup != nil {
			f.setup(a)
		}
		a.loop("R2", func() {
			a.g("MOVD R0, R7")
			a.g("MOVD R4, R8")
			a.g("MOVD R5, R9")
			a.g("MOVD R3, R10")
			a.ldp(30, 31, 6, 0)
			a.loop("R10", func() {
				if f.run == 32 {
					f.rows32(a)
				} else {
					f.rows16(a)
				}
				a.g("ADD $%d, R7, R7", f.bytes)
				a.g("ADD $%d, R8, R8", wordsSize)
				a.g("ADD $%d, R9, R9", actSize)
			})
			a.stpNext(30, 31, 6)
			a.g("ADD R1, R0, R0")
		})
	})
}

// products adds the products of the 16 bytes in src, unit 16 of the group, to sum.
func (f *format) products(a *asm, unit int, src, sum v) {
	f.split(a, src)
	for odd := range 2 {
		a.ldq(12+v(odd), 8, wordAt(unit, odd))
		a.o("smlal.4s", sum, 10+v(odd), 12+v(odd))
		a.o("smlal2.4s", sum, 10+v(odd), 12+v(odd))
	}
}

// join8 adds the lanes of V0 to V7 to eight sums in V0 and V1, less zero times the sums of activations.
func (f *format) join8(a *asm, actSums int) {
	for i := range v(4) {
		a.o("addp.4s", i, 2*i, 2*i+1)
	}
	a.o("addp.4s", 0, 0, 1)
	a.o("addp.4s", 1, 2, 3)
	if f.zero > 0 {
		a.ldp(2, 3, 9, actSums)
		for i := range v(2) {
			a.s("shl.4s", 2+i, 2+i, log2(f.zero))
			a.o("sub.4s", i, i, 2+i)
		}
	}
	if f.zeroAt != nil {
		a.ldp(2, 3, 9, actSums)
		a.o("mls.4s", 0, 2, 22)
		a.o("mls.4s", 1, 3, 23)
	}
}

func (f *format) rows32(a *asm) {
	for b := range 8 {
		f.fill(a, b)
		a.zero(v(b))
		for unit := range 2 {
			// The second unit's bytes lie in V9, which split leaves alone.
			f.products(a, 2*b+unit, 8+v(unit), v(b))
		}
	}
	f.scales(a)
	f.join8(a, actSum32)
	a.ldp(12, 13, 9, actScale)
	if f.offset {
		a.ldp(14, 15, 9, actOffset)
	}
	for i := range v(2) {
		a.u("scvtf.4s", i, i)
		a.o("fmul.4s", 12+i, 16+i, 12+i)
		a.o("fmla.4s", 30+i, i, 12+i)
		if f.offset {
			a.o("fmls.4s", 30+i, 20+i, 14+i)
		}
	}
}

func (f *format) rows16(a *asm) {
	f.scales(a)
	for half := range 2 {
		for b := 4 * half; b < 4*half+4; b++ {
			f.fill(a, b)
			for unit := range 2 {
				sum := v(2*b + unit - 8*half)
				a.zero(sum)
				f.products(a, 2*b+unit, 8+v(unit), sum)
			}
		}
		f.join8(a, actSum16+32*half)
		a.ldq(10, 9, actScale+16*half)
		a.o("zip1.4s", 4, 10, 10)
		a.o("zip2.4s", 5, 10, 10)
		if f.offset {
			a.ldp(6, 7, 9, actSum16+32*half)
		}
		for i := range v(2) {
			a.joinRun16(f.offset, 30+i, i, 16+2*v(half)+i, 4+i, 20+2*v(half)+i, 6+i)
		}
	}
}

// unpack writes groups of a panel.
func (a *asm) unpack(f *format) {
	const params = "dst *byte, src *byte, n int"
	a.fn("unpack"+f.name+"NEON", "unpacks n groups.", params, wordsSize, func() {
		a.g("MOVD dst+0(FP), R0")
		a.g("MOVD src+8(FP), R7")
		a.g("MOVD n+16(FP), R2")
		a.g("MOVD $scratch-%d(SP), R8", wordsSize)
		if f.setup != nil {
			f.setup(a)
		}
		a.loop("R2", func() {
			for b := range 8 {
				f.fill(a, b)
				f.unpackBlock(a, b)
			}
			a.toLanes(8, 0)
			f.scales(a)
			for i := range f.run32() {
				a.stp(16+2*v(i), 17+2*v(i), 0, panelScale+32*i)
				if f.offset {
					a.stp(20+2*v(i), 21+2*v(i), 0, panelMin+32*i)
				}
			}
			a.g("ADD $%d, R0, R0", panelSize)
			a.g("ADD $%d, R7, R7", f.bytes)
		})
	})
}

// run32 is how many pairs of registers the scales fill.
func (f *format) run32() int { return 32 / f.run }

func (f *format) unpackBlock(a *asm, b int) {
	subtract := f.zero > 0 || f.zeroAt != nil
	if f.zeroAt != nil {
		a.g("MOVBU %d(R7), R12", f.zeroAt(b))
		a.dupH(14, 12)
	} else if f.zero > 0 {
		a.g("MOVD $%d, R12", f.zero)
		a.dupH(14, 12)
	}
	for unit := range 2 {
		f.split(a, 8+v(unit))
		for odd := range 2 {
			if subtract {
				a.o("sub.8h", 10+v(odd), 10+v(odd), 14)
			}
			a.stq(10+v(odd), 8, wordAt(2*b+unit, odd))
		}
	}
}

// toLanes writes 256 integers in the order of the words at register src to dst in that of the lanes: pairs
// of eight blocks side by side.
func (a *asm) toLanes(src, dst int) {
	for unit := range 2 {
		for odd := range 2 {
			for blocks := range 2 {
				for i := range 4 {
					a.ldq(v(i), src, wordAt(2*(4*blocks+i)+unit, odd))
				}
				a.o("zip1.4s", 4, 0, 1)
				a.o("zip2.4s", 5, 0, 1)
				a.o("zip1.4s", 6, 2, 3)
				a.o("zip2.4s", 7, 2, 3)
				for i := range 2 {
					at := ((unit*2+odd)*4+2*i)*32 + blocks*16
					a.o("zip1.2d", 0, v(4+i), v(6+i))
					a.o("zip2.2d", 1, v(4+i), v(6+i))
					a.stq(0, dst, at)
					a.stq(1, dst, at+32)
				}
			}
		}
	}
}
