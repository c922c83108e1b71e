// Command matmul generates the loops of matrix products. From internal/kernel/gen:
//
//	go run ./matmul -out ../matmul_amd64.s -stubs ../matmul_stub_amd64.go -pkg kernel
//	go run ./matmul -set avx512 -out ../matmul_avx512_amd64.s -stubs ../matmul_stub512_amd64.go -pkg kernel
//	go run ./matmul -set wide -out ../matmul_wide_amd64.s -stubs ../matmul_wide_stub_amd64.go -pkg kernel
//	go run ./matmul -set group -out ../matmul_group_amd64.s -stubs ../matmul_group_stub_amd64.go -pkg kernel
//	go run ./matmul -set iq -out ../matmul_iq_amd64.s -stubs ../matmul_iq_stub_amd64.go -pkg kernel
//	go run ./matmul -set iq512 -out ../matmul_iq512_amd64.s -stubs ../matmul_iq512_stub_amd64.go -pkg kernel
package main

import (
	"flag"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Sizes and offsets in bytes of the Go types actGroup and panelGroup, and of 256 int16 words.
const (
	wordsSize = 512

	actScale  = 512
	actOffset = 544
	actSum32  = 576
	actSum16  = 608
	actSize   = 672

	panelScale = 512
	panelMin   = 576
	panelSize  = 640
)

var set = flag.String("set", "matmul", "which loops to write: matmul; avx512 for the same ones; wide for tiles of many rows; group for row formats; iq or iq512 for the formats of tables, ternary and binary ones")

func main() {
	flag.Parse()
	ConstraintExpr("amd64")
	switch *set {
	case "group":
		generateGroup()
		Generate()
		return
	case "iq":
		for _, f := range lookups {
			f.rows()
			f.unpackPieces()
		}
		Generate()
		return
	case "avx512":
		generate512()
		Generate()
		return
	case "wide":
		generateWide()
		Generate()
		return
	case "iq512":
		pointWords()
		for _, f := range lookups512 {
			f.rows()
		}
		Generate()
		return
	}
	pause()
	quantize()
	floatRows("F32", 4, loadF32)
	floatRows("F16", 2, loadF16)
	floatRows("BF16", 2, loadBF16)
	decodeRow("F16", 2, loadF16)
	decodeRow("BF16", 2, loadBF16)
	for n := 1; n <= 3; n++ {
		floatTile(n)
	}
	for _, f := range formats {
		f.rows()
		f.unpack()
	}
	for _, n := range []int{1, 2} {
		intTile(tileKind{run: 32}, n)
		intTile(tileKind{run: 32, offset: true}, n)
		intTile(tileKind{run: 16}, n)
		intTile(tileKind{run: 16, offset: true}, n)
	}
	Generate()
}

func pause() {
	TEXT("pause", NOSPLIT, "func()")
	Doc("pause tells the processor that a loop spins.")
	PAUSE()
	RET()
}

// begin starts a function; end finishes it.
func begin(name, signature, doc string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(strings.Split(name+" "+doc, "\n")...)
}

func end() {
	VZEROUPPER()
	RET()
}

// constants are read-only 256-bit vectors of eight 32-bit words, by name.
var constants = map[string]Mem{}

func constant(name string, words ...uint32) Mem {
	if m, ok := constants[name]; ok {
		return m
	}
	m := GLOBL("matmul_"+name, RODATA|NOPTR)
	for i := range 8 {
		DATA(4*i, U32(words[i%len(words)]))
	}
	constants[name] = m
	return m
}

func loadConstant(name string, words ...uint32) VecVirtual {
	m := constant(name, words...)
	y := YMM()
	VMOVDQU(m, y)
	return y
}

// param loads a parameter into a new register.
func param(name string) GPVirtual {
	r := GP64()
	Load(Param(name), r)
	return r
}

func mem(base Register, disp int) Mem { return Mem{Base: base, Disp: disp} }

// loop emits body under a counter that is known to be at least 1, counting down.
func loop(label string, counter Register, body func()) {
	Label(label)
	body()
	DECQ(counter)
	JNZ(LabelRef(label))
}

// sum is a vector of 32-bit sums; the first addend becomes the sum.
type sum struct{ y VecVirtual }

func (s *sum) add(y VecVirtual) {
	if s.y == nil {
		s.y = y
		return
	}
	VPADDD(y, s.y, s.y)
}

// total leaves the total of the 8 running sums in s in the low lane of the result:
// ((s0+s4)+(s2+s6)) + ((s1+s5)+(s3+s7)).
func total(s VecVirtual) VecVirtual {
	h, t := XMM(), XMM()
	VEXTRACTF128(U8(1), s, h)
	VADDPS(h, s.AsX(), t) // p0 p1 p2 p3
	VMOVHLPS(t, t, h)
	VADDPS(h, t, t) // p0+p2, p1+p3
	VMOVSHDUP(t, h)
	VADDSS(h, t, t)
	return t
}

// totals4 returns the totals of four vectors of running sums, in that order.
func totals4(s [4]VecVirtual) VecVirtual {
	var p [4]VecVirtual
	for i := range p {
		h := XMM()
		p[i] = XMM()
		VEXTRACTF128(U8(1), s[i], h)
		VADDPS(h, s[i].AsX(), p[i])
	}
	pair := func(a, b VecVirtual) VecVirtual { // a0+a2 b0+b2 a1+a3 b1+b3
		lo, hi := XMM(), XMM()
		VUNPCKLPS(b, a, lo)
		VUNPCKHPS(b, a, hi)
		VADDPS(hi, lo, lo)
		return lo
	}
	ab, cd := pair(p[0], p[1]), pair(p[2], p[3])
	even, odd := XMM(), XMM()
	VMOVLHPS(cd, ab, even)
	VMOVHLPS(ab, cd, odd) // high of ab, high of cd
	VADDPS(odd, even, even)
	return even
}
