package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// index says where the index of a point lies: a byte or a word.
type index struct {
	at   Mem
	wide bool
	mask uint32 // of the bits that count; 0 if all do
}

func (x index) load() GPVirtual {
	r := GP32()
	if x.wide {
		MOVWLZX(x.at, r)
	} else {
		MOVBLZX(x.at, r)
	}
	if x.mask != 0 {
		ANDL(U32(x.mask), r)
	}
	return r.As64().(GPVirtual)
}

// indices returns functions that load the n indices of the points of half i of block b, to be called in
// order.
type indices func(w Register, b, i, n int) []func() GPVirtual

// storedAt is for indices that lie in memory as they are.
func storedAt(at func(w Register, k int) index) indices {
	return func(w Register, b, i, n int) (list []func() GPVirtual) {
		for k := range n {
			list = append(list, at(w, (2*b+i)*n+k).load)
		}
		return list
	}
}

// wordsIn takes n words out of q, from the lowest on.
func wordsIn(q GPVirtual, n int) (list []func() GPVirtual) {
	for k := range n {
		list = append(list, func() GPVirtual {
			i := GP32()
			MOVWLZX(q.As16(), i)
			if k < n-1 {
				SHRQ(U8(16), q)
			}
			return i.As64().(GPVirtual)
		})
	}
	return list
}

// quarter returns qword k of y. To store y and to load its parts would take longer.
func quarter(y VecVirtual, k int) GPVirtual {
	q, x := GP64(), y.AsX().(VecVirtual)
	if k >= 2 {
		x = XMM()
		VEXTRACTI128(U8(1), y, x)
	}
	if k%2 == 0 {
		VMOVQ(x, q)
	} else {
		VPEXTRQ(U8(1), x, q)
	}
	return q
}

// madeBy is for indices that make puts together: 16 words, those of vector v.
func madeBy(make func(w Register, v int) VecVirtual) indices {
	made := [4]VecVirtual{}
	return func(w Register, b, i, n int) []func() GPVirtual {
		first := (2*b + i) * n // of all indices; a vector holds 16
		v := first / 16
		if n == 2 && b%4 == 0 && i == 0 || n == 4 && b%2 == 0 && i == 0 || n == 4 && made[v] == nil {
			made[v] = make(w, v)
		}
		q := quarter(made[v], first%16/4)
		if first%4 == 2 {
			SHRQ(U8(32), q)
		}
		return wordsIn(q, n)
	}
}

// gather returns 32 bytes of points of the given size. Each blend of 16 bytes reads so far before its
// point that it falls into its place; tables are padded for that. Blends of 32 bytes would be fewer, but
// too many of them would lie across two lines of the cache.
func gather(points Register, size int, indices []func() GPVirtual) VecVirtual {
	var halves [2]VecVirtual
	per := 16 / size
	for h := range halves {
		halves[h] = YMM()
		x := halves[h].AsX()
		for k := range per {
			at := Mem{Base: points, Index: indices[h*per+k](), Scale: uint8(size), Disp: -k * size}
			switch {
			case k == 0 && size == 8:
				VPBROADCASTQ(at, halves[h])
			case k == 0:
				VPBROADCASTD(at, halves[h])
			case size == 8:
				VPBLENDD(U8(12), at, x, x)
			default:
				VPBLENDD(U8(1<<k), at, x, x)
			}
		}
	}
	y := YMM()
	VINSERTI128(U8(1), halves[1].AsX(), halves[0], y)
	return y
}

// grid yields the words of points, and with signs: bit i of byte g of 16 in the low half, or of g+16 in
// the high half, negates value i of the eight with number g.
func grid(w, points Register, size int, next indices, signs VecVirtual, k *signMasks, direct bool, yield yield) {
	splitSigned(direct, yield, func(b, i int) VecVirtual {
		n := 16 / size
		y := gather(points, size, append(next(w, b, i, n), next(w, b+4, i, n)...))
		if signs != nil {
			negate(y, signs, k.bits, b*4+2*i)
		}
		return y
	})
}

// negate changes the signs of y by bytes g and g+1 of both halves of signs.
func negate(y, signs, bits VecVirtual, g int) {
	name := "signBytes" + string(rune('a'+g/2))
	first, second := uint32(g)*0x01010101, uint32(g+1)*0x01010101
	m := YMM()
	VPSHUFB(constant(name, first, first, second, second), signs, m)
	VPAND(bits, m, m)
	VPCMPEQB(bits, m, m)
	VPXOR(m, y, y)
	VPSUBB(m, y, y)
}

// signMasks are what signs need in registers.
type signMasks struct{ bits, parity, nibble VecVirtual }

// newSignMasks loads them; only signs that lack the eighth of each byte need parity.
func newSignMasks(even bool) *signMasks {
	k := &signMasks{bits: loadConstant("signBits", 0x08040201, 0x80402010)}
	if even {
		k.parity = loadConstant("parity", 0x00808000, 0x80000080, 0x80000080, 0x00808000)
		k.nibble = loadConstant("bytes0f", 0x0f0f0f0f)
	}
	return k
}

// addEighth adds the eighth sign to bytes of seven: the number of minus signs is even.
func (k *signMasks) addEighth(s VecVirtual) {
	low, high := masked(s, k.nibble), masked(shifted(s, 4), k.nibble)
	VPSHUFB(low, k.parity, low)
	VPSHUFB(high, k.parity, high)
	VPXOR(high, low, low)
	VPOR(low, s, s)
}

// four spreads the low 28 bits of each dword to 4 bytes of 7, and adds the eighth signs.
func (k *signMasks) four(words VecVirtual) VecVirtual {
	s := YMM()
	VPAND(constant("seven0", 0x7f), words, s)
	for n := range 3 {
		t := YMM()
		VPSLLD(U8(n+1), words, t)
		VPAND(constant([]string{"seven1", "seven2", "seven3"}[n], 0x7f00<<(8*n)), t, t)
		VPOR(t, s, s)
	}
	k.addEighth(s)
	return s
}

// topScales returns d·(½ + s)·by, s in the top four bits of each dword.
func topScales(words, d VecVirtual, by Mem) []VecVirtual {
	y := YMM()
	VPSRLD(U8(28), words, y)
	times(y, d, half32(), by)
	return []VecVirtual{y}
}

type (
	wordsFunc  = func(w Register, direct bool, yield yield)
	scalesFunc = func(w Register) []VecVirtual
)

func bindIQ2XXS(points Register, _ Mem) (wordsFunc, scalesFunc) {
	k := newSignMasks(true)
	var signWords VecVirtual
	words := func(w Register, direct bool, yield yield) {
		signWords = YMM() // of every block: the second half of its 8 bytes
		VSHUFPS(U8(0xdd), pair(w, 18, 50), pair(w, 2, 34), signWords)
		at := storedAt(func(w Register, k int) index { return index{at: mem(w, 2+k/4*8+k%4)} })
		grid(w, points, 8, at, k.four(signWords), k, direct, yield)
	}
	return words, func(w Register) []VecVirtual { return topScales(signWords, halfAt(mem(w, 0)), quarter32()) }
}

func bindIQ3XXS(points Register, _ Mem) (wordsFunc, scalesFunc) {
	k := newSignMasks(true)
	load := func(w Register) VecVirtual {
		y := YMM()
		VMOVDQU(mem(w, 66), y)
		return y
	}
	words := func(w Register, direct bool, yield yield) {
		at := storedAt(func(w Register, k int) index { return index{at: mem(w, 2+k)} })
		grid(w, points, 4, at, k.four(load(w)), k, direct, yield)
	}
	return words, func(w Register) []VecVirtual { return topScales(load(w), halfAt(mem(w, 0)), half32()) }
}

// nibblesOf16 returns d·(½ + s)/4 for 16 nibbles s at at.
func nibblesOf16(w Register, at int) []VecVirtual {
	d := halfAt(mem(w, 0))
	var scale []VecVirtual
	for half := range 2 {
		y := nibbleScales(mem(w, at+4*half))
		times(y, d, half32(), quarter32())
		scale = append(scale, y)
	}
	return scale
}

func bindIQ2XS(points Register, _ Mem) (wordsFunc, scalesFunc) {
	k := newSignMasks(true)
	words := func(w Register, direct bool, yield yield) {
		x, y := pair(w, 2, 34), pair(w, 18, 50) // words 0–7 and 16–23, 8–15 and 24–31
		VPSRLW(U8(9), x, x)
		VPSRLW(U8(9), y, y)
		VPACKUSWB(y, x, x)
		k.addEighth(x)
		at := storedAt(func(w Register, k int) index { return index{at: mem(w, 2+2*k), wide: true, mask: 0x1ff} })
		grid(w, points, 8, at, x, k, direct, yield)
	}
	return words, func(w Register) []VecVirtual { return nibblesOf16(w, 66) }
}

// joined returns 16 indices: bytes from m on, with high, in words, above them.
func joined(m Mem, high VecVirtual) VecVirtual {
	y := YMM()
	VPMOVZXBW(m, y)
	VPOR(high, y, y)
	return y
}

func indicesIQ2S(w Register, v int) VecVirtual {
	high := YMM() // two bits of a byte for each of four words, as bits 8 and 9
	VPBROADCASTD(mem(w, 66+4*v), high)
	VPSHUFB(constant("bytesOf4", 0x80008000, 0x80008000, 0x80018001, 0x80018001, 0x80028002, 0x80028002, 0x80038003, 0x80038003), high, high)
	VPMULLW(constant("raise2", 0x00400100, 0x00040010), high, high)
	VPAND(constant("words300", 0x03000300), high, high)
	return joined(mem(w, 2+16*v), high)
}

func bindIQ2S(points Register, _ Mem) (wordsFunc, scalesFunc) {
	k := newSignMasks(false)
	words := func(w Register, direct bool, yield yield) {
		signs := YMM()
		VMOVDQU(mem(w, 34), signs)
		grid(w, points, 8, madeBy(indicesIQ2S), signs, k, direct, yield)
	}
	return words, func(w Register) []VecVirtual { return nibblesOf16(w, 74) }
}

func indicesIQ3S(w Register, v int) VecVirtual {
	bits := constant("wordBits", 0x00020001, 0x00080004, 0x00200010, 0x00800040, 0x02000100, 0x08000400, 0x20001000, 0x80004000)
	high := YMM()
	VPBROADCASTW(mem(w, 66+2*v), high)
	VPAND(bits, high, high)
	VPCMPEQW(bits, high, high)
	VPAND(constant("words100", 0x01000100), high, high)
	return joined(mem(w, 2+16*v), high)
}

// scalesIQ3S returns d·(1 + 2s).
func scalesIQ3S(w Register) []VecVirtual {
	y := nibbleScales(mem(w, 106))
	times(y, halfAt(mem(w, 0)), half32(), constant("two32", 0x40000000))
	return []VecVirtual{y}
}

func bindIQ3S(points Register, _ Mem) (wordsFunc, scalesFunc) {
	k := newSignMasks(false)
	words := func(w Register, direct bool, yield yield) {
		signs := YMM()
		VMOVDQU(mem(w, 74), signs)
		grid(w, points, 4, madeBy(indicesIQ3S), signs, k, direct, yield)
	}
	return words, scalesIQ3S
}

// The tables of the formats of one bit hold points less an eighth behind those plus an eighth, all
// times 8, so that bit 11 of an index tells the sign of the eighth.

// eighths returns d·(2s + 1)/8 for integers s in the low three bits.
func eighths(s, d VecVirtual) VecVirtual {
	VPAND(constant("dwords07", 0x07), s, s)
	times(s, d, half32(), quarter32())
	return s
}

func indicesIQ1S(w Register, v int) VecVirtual {
	x, high, last := YMM(), YMM(), YMM() // one word for each of four: 3 bits each, and the sign on top
	VPBROADCASTQ(mem(w, 34+8*v), x)
	VPSHUFB(constant("wordsOf4", 0x01000100, 0x01000100, 0x03020302, 0x03020302, 0x05040504, 0x05040504, 0x07060706, 0x07060706), x, x)
	VPMULLW(constant("raise3", 0x00200100, 0x00000004), x, high)
	VPSRLW(U8(1), x, last)
	VPBLENDW(U8(0x88), last, high, high)
	VPAND(constant("words700", 0x07000700), high, high)
	VPSRLW(U8(4), x, x)
	VPAND(constant("words800", 0x08000800), x, x)
	VPOR(x, high, high)
	return joined(mem(w, 2+16*v), high)
}

func scalesIQ1S(w Register) []VecVirtual {
	y := YMM()
	VPMOVZXWD(mem(w, 34), y)
	VPSRLD(U8(12), y, y)
	return []VecVirtual{eighths(y, halfAt(mem(w, 0)))}
}

// plainGrid is for formats without signs.
func plainGrid(points Register, make func(w Register, v int) VecVirtual) wordsFunc {
	return func(w Register, direct bool, yield yield) { grid(w, points, 8, madeBy(make), nil, nil, direct, yield) }
}

func bindIQ1S(points Register, _ Mem) (wordsFunc, scalesFunc) {
	return plainGrid(points, indicesIQ1S), scalesIQ1S
}

func indicesIQ1M(w Register, v int) VecVirtual {
	x, high := YMM(), YMM() // two nibbles a byte
	VPMOVZXBD(mem(w, 32+8*v), x)
	VPSLLD(U8(8), x, high)
	VPAND(constant("low0f00", 0x00000f00), high, high)
	VPSLLD(U8(20), x, x)
	VPAND(constant("high0f00", 0x0f000000), x, x)
	VPOR(x, high, high)
	return joined(mem(w, 16*v), high)
}

func scalesIQ1M(w Register) (scale []VecVirtual) {
	d := spreadHalf(w)
	for half := range 2 {
		y := YMM()
		VPBROADCASTD(mem(w, 48+4*half), y)
		VPSHUFB(constant("wordsOf2", 0x80800100, 0x80800100, 0x80800100, 0x80800100, 0x80800302, 0x80800302, 0x80800302, 0x80800302), y, y)
		VPSRLVD(constant("threes", 0, 3, 6, 9), y, y)
		scale = append(scale, eighths(y, d))
	}
	return scale
}

func bindIQ1M(points Register, _ Mem) (wordsFunc, scalesFunc) {
	return plainGrid(points, indicesIQ1M), scalesIQ1M
}

// spreadHalf returns the f16 number that lies in the top nibbles of the four words of IQ1_M's scales.
func spreadHalf(w Register) VecVirtual {
	h := GP64()
	for i := range 4 {
		t := GP64()
		MOVWQZX(mem(w, 48+2*i), t)
		SHRQ(U8(12), t)
		if i == 0 {
			MOVQ(t, h)
			continue
		}
		SHLQ(U8(4*i), t)
		ORQ(t, h)
	}
	x, y := XMM(), YMM()
	VMOVQ(h, x)
	VCVTPH2PS(x, x)
	VBROADCASTSS(x, y)
	return y
}
