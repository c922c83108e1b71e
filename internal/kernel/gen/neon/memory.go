package main

import "fmt"

// address is the text of a base register and an offset.
func address(r, off int) string {
	if off == 0 {
		return fmt.Sprintf("[x%d]", r)
	}
	return fmt.Sprintf("[x%d,#%d]", r, off)
}

// scaled writes a load or store whose offset is a multiple of size, or, if it is not, the form for small
// offsets at any place.
func (a *asm) scaled(code, small uint32, name, smallName, reg string, d v, r, off, size int) {
	switch {
	case off >= 0 && off%size == 0 && off/size < 4096:
		a.w(code|uint32(off/size)<<10|uint32(r)<<5|uint32(d), "%s %s%d, %s", name, reg, d, address(r, off))
	case small != 0 && -256 <= off && off < 256:
		a.w(small|uint32(off&0x1ff)<<12|uint32(r)<<5|uint32(d), "%s %s%d, %s", smallName, reg, d, address(r, off))
	default:
		panic(fmt.Sprintf("%s with offset %d", name, off))
	}
}

func (a *asm) ldq(d v, r, off int) {
	a.scaled(0x3dc00000, 0x3cc00000, "ldr", "ldur", "q", d, r, off, 16)
}
func (a *asm) stq(d v, r, off int) {
	a.scaled(0x3d800000, 0x3c800000, "str", "stur", "q", d, r, off, 16)
}
func (a *asm) lds(d v, r, off int) {
	a.scaled(0xbd400000, 0xbc400000, "ldr", "ldur", "s", d, r, off, 4)
}
func (a *asm) sts(d v, r, off int) {
	a.scaled(0xbd000000, 0xbc000000, "str", "stur", "s", d, r, off, 4)
}
func (a *asm) std(d v, r, off int) {
	a.scaled(0xfd000000, 0xfc000000, "str", "stur", "d", d, r, off, 8)
}
func (a *asm) ldd(d v, r, off int) {
	a.scaled(0xfd400000, 0xfc400000, "ldr", "ldur", "d", d, r, off, 8)
}
func (a *asm) ldh(d v, r, off int) {
	a.scaled(0x7d400000, 0x7c400000, "ldr", "ldur", "h", d, r, off, 2)
}

// pair writes a load or store of two registers of 16 bytes; off is a multiple of 16 from −1024 to 1008.
func (a *asm) pair(code uint32, name string, d, e v, r, off int) {
	if off%16 != 0 || off < -1024 || off > 1008 {
		panic(fmt.Sprintf("%s with offset %d", name, off))
	}
	a.w(code|uint32(off/16&0x7f)<<15|uint32(e)<<10|uint32(r)<<5|uint32(d), "%s q%d, q%d, %s", name, d, e, address(r, off))
}

func (a *asm) ldp(d, e v, r, off int) { a.pair(0xad400000, "ldp", d, e, r, off) }
func (a *asm) stp(d, e v, r, off int) { a.pair(0xad000000, "stp", d, e, r, off) }

// ldpNext and stpNext move r on by 32 afterwards, ldqNext and stqNext by 16.
func (a *asm) ldpNext(d, e v, r int) {
	a.w(0xacc00000|2<<15|uint32(e)<<10|uint32(r)<<5|uint32(d), "ldp q%d, q%d, [x%d],#32", d, e, r)
}

func (a *asm) stpNext(d, e v, r int) {
	a.w(0xac800000|2<<15|uint32(e)<<10|uint32(r)<<5|uint32(d), "stp q%d, q%d, [x%d],#32", d, e, r)
}

func (a *asm) ldqNext(d v, r int) {
	a.w(0x3cc00400|16<<12|uint32(r)<<5|uint32(d), "ldr q%d, [x%d],#16", d, r)
}

func (a *asm) stqNext(d v, r int) {
	a.w(0x3c800400|16<<12|uint32(r)<<5|uint32(d), "str q%d, [x%d],#16", d, r)
}

// ldhLane loads a word to lane i of d and moves r on by the register step.
func (a *asm) ldhLane(d v, i, r, step int) {
	code := uint32(0x0dc04000) | uint32(i>>2)<<30 | uint32(i>>1&1)<<12 | uint32(i&1)<<11
	a.w(code|uint32(step)<<16|uint32(r)<<5|uint32(d), "ld1 {v%d.h}[%d], [x%d], x%d", d, i, r, step)
}

// ldsLane does so with 4 bytes, ldbLane with one to a lane below 8.
func (a *asm) ldsLane(d v, i, r, step int) {
	code := uint32(0x0dc08000) | uint32(i>>1)<<30 | uint32(i&1)<<12
	a.w(code|uint32(step)<<16|uint32(r)<<5|uint32(d), "ld1 {v%d.s}[%d], [x%d], x%d", d, i, r, step)
}

func (a *asm) ldbLane(d v, i, r, step int) {
	code := uint32(0x0dc00000) | uint32(i>>2)<<12 | uint32(i&3)<<10
	a.w(code|uint32(step)<<16|uint32(r)<<5|uint32(d), "ld1 {v%d.b}[%d], [x%d], x%d", d, i, r, step)
}

// stdHigh stores the upper half of d.
func (a *asm) stdHigh(d v, r int) {
	a.w(0x4d008400|uint32(r)<<5|uint32(d), "st1 {v%d.d}[1], [x%d]", d, r)
}

// ld2 loads 8 floats from r and puts those of even index in d, the others in d+1; st2 is the reverse. Both
// move r on by 32.
func (a *asm) ld2(d v, r int) {
	a.w(0x4cdf8800|uint32(r)<<5|uint32(d), "ld2 {v%d.4s, v%d.4s}, [x%d],#32", d, d+1, r)
}

func (a *asm) st2(d v, r int) {
	a.w(0x4c9f8800|uint32(r)<<5|uint32(d), "st2 {v%d.4s, v%d.4s}, [x%d],#32", d, d+1, r)
}

// constant fills d with a 32-bit number, by way of R12.
func (a *asm) constant(d v, bits uint32) {
	a.g("MOVD $0x%x, R12", bits)
	a.dupW(d, 12)
}
