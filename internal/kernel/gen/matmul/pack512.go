package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// pack emits the packing of activations in the order that rows wants: bytes, scales, corrections.
func (f *format512) pack() {
	begin("pack"+f.name+"AVX512", "func(dst *byte, words *byte, acts *byte, n int)", "packs n ≥ 1 groups of activations.")
	dst, words, acts, n := param("dst"), param("words"), param("acts"), param("n")
	shuffle := YMM()
	VMOVDQU(constant("interleave", 0x09010800, 0x0b030a02, 0x0d050c04, 0x0f070e06), shuffle)
	loop("group", n, func() {
		for u := range 8 {
			f.packUnits(dst, words, shuffle, u)
		}
		for h := range f.phases() {
			f.packMeta(dst, acts, h)
		}
		ADDQ(U32(wordsSize), words)
		ADDQ(U32(actSize), acts)
		ADDQ(U32(uint32(f.packSize())), dst)
	})
	end()
}

// packUnits splits the bytes of 16 activations from 16u on, and from 16(u+8) on, which words hold as
// wordPlaces says.
func (f *format512) packUnits(dst, words Register, shuffle VecVirtual, u int) {
	z, high := ZMM(), ZMM()
	VMOVDQU32(mem(words, 64*u), z)
	VPSRLW(U8(8), z, high)
	for k, v := range []VecVirtual{high, z} {
		y, x := YMM(), XMM()
		VPMOVWB(v, y)
		VPERMQ(U8(0xd8), y, y)
		VPSHUFB(shuffle, y, y)
		VMOVDQU32(y.AsX(), mem(dst, f.place(u)+64*k))
		VEXTRACTI32X4(U8(1), y, x)
		VMOVDQU32(x, mem(dst, f.place(u+8)+64*k))
	}
}

// place returns where the high bytes of unit u of 16 values lie; the low ones follow 64 bytes later.
func (f *format512) place(u int) int {
	run, q := u/f.parts(), u%f.parts()
	for k := range 8 {
		if j, i := k/2, k%2; f.run8(j, i) == run%8 {
			return ((run/8*2+i)*f.parts()+q)*128 + 16*j
		}
	}
	panic("no place")
}

// lanes returns an index for each of the 16 sums from its run in phase h.
func (f *format512) lanes(h int, by func(run int) int) []uint32 {
	words := make([]uint32, 16)
	for k := range words {
		words[k] = uint32(by(8*h + f.run8(k/4, k%2)))
	}
	return words
}

func (f *format512) packMeta(dst, acts Register, h int) {
	name := func(s string) string { return s + f.name + string(rune('0'+h)) }
	floats, index, scale := ZMM(), ZMM(), ZMM()
	VMOVUPS(mem(acts, actScale), floats) // 8 scales, 8 offsets
	VMOVDQU32(constant512(name("scale"), f.lanes(h, func(run int) int { return run * f.run / 32 })...), index)
	VPERMPS(floats, index, scale)
	meta := packMeta + h*packPhase
	VMOVUPS(scale, mem(dst, meta))
	runs := ZMM()
	VMOVDQU32(constant512(name("run"), f.lanes(h, func(run int) int { return run })...), runs)
	v := ZMM()
	switch {
	case f.signed: // the sums of hi, shifted
		f.sumHigh(dst, h, v)
	case f.offset == 0 && f.zero == 0:
		return
	default:
		sums := ZMM()
		at := actSum32
		if f.run == 16 {
			at = actSum16
		}
		VMOVDQU32(mem(acts, at), sums)
		VPERMD(sums, runs, v)
		if f.offset != 0 {
			VCVTDQ2PS(v, v)
			VMULPS(scale, v, v)
		} else {
			VPSLLD(U8(log2(int32(f.zero))), v, v)
		}
	}
	VMOVUPS(v, mem(dst, meta+64))
}

// sumHigh sets v to 128·256 times the sums of the high bytes: what the flipped signs of weights add.
func (f *format512) sumHigh(dst Register, h int, v VecVirtual) {
	r := &rows512{f: f}
	ones := ZMM()
	VMOVDQU32(constant512("ones", 0x01010101), ones)
	for k := range r.acc {
		r.acc[k] = ZMM()
		VPXORD(r.acc[k], r.acc[k], r.acc[k])
		for q := range f.parts() {
			hi := ZMM()
			VMOVDQU32(mem(dst, ((h*2+k%2)*f.parts()+q)*128), hi)
			VPDPBUSD(hi, ones, r.acc[k])
		}
	}
	VPSLLD(U8(15), r.reduce(), v)
}
