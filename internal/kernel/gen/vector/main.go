// Command vector writes the loops of package kernel outside the matrix products: norm, SiLU, rope,
// conversions, softmax and attention, for AVX2, or with -wide what AVX-512 adds. docs/numerics.md
// defines what they compute.
//
//	go run ./vector -out ../vector_amd64.s -stubs ../vector_amd64.go -pkg kernel
//	go run ./vector -wide -out ../vector_avx512_amd64.s -stubs ../vector_avx512_amd64.go -pkg kernel
package main

import (
	"flag"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// wide chooses AVX-512 (F, BW, DQ, VL).
var wide = flag.Bool("wide", false, "write the loops for AVX-512")

func main() {
	flag.Parse()
	ConstraintExpr("amd64")
	constants()
	if *wide {
		wideConstants()
		wideSoftmax()
		wideSiLUMul()
	} else {
		elementwise()
		rope()
		conversions()
		stores()
		attention()
	}
	for _, s := range sources {
		widen(s)
		for _, lines := range []int{4, 1} {
			scores(s, lines)
			values(s, lines)
		}
	}
	for _, lines := range []int{4, 1} {
		scores(tile, lines)
		values(tile, lines)
	}
	Generate()
}

// lanes is the number of float32 values of a vector.
func lanes() int {
	if *wide {
		return 16
	}
	return 8
}

// vec returns a new vector register.
func vec() reg.VecVirtual {
	if *wide {
		return ZMM()
	}
	return YMM()
}

// half returns a new register of half a vector.
func half() reg.VecVirtual {
	if *wide {
		return YMM()
	}
	return XMM()
}

// named appends the instruction set to a function's name.
func named(name string) string {
	if *wide {
		return name + "AVX512"
	}
	return name + "AVX2"
}

func zero(v reg.VecVirtual) {
	if *wide {
		VPXORD(v, v, v)
	} else {
		VXORPS(v, v, v)
	}
}

// function starts a function without a frame.
func function(name, signature, doc string) {
	TEXT(name, attr.NOSPLIT, "func"+signature)
	Pragma("noescape")
	Doc(name + " " + doc)
}

// done ends a function that used Y registers.
func done() {
	VZEROUPPER()
	RET()
}

func pointer(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// argument is where a parameter lies.
func argument(name string) Mem {
	b, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

// broadcastParam fills a vector with a float32 argument, without the legacy MOVSS of Load.
func broadcastParam(name string) reg.VecVirtual {
	y := vec()
	VBROADCASTSS(argument(name), y)
	return y
}

// table is a read-only vector of equal or given 32-bit words.
type table map[string]Mem

var words = table{}

func (t table) add(name string, values ...uint32) {
	g := GLOBL("vec_"+name, attr.RODATA|attr.NOPTR)
	for i := range lanes() {
		DATA(4*i, U32(values[i%len(values)]))
	}
	t[name] = g
}

// loop counts n down by step and runs body while n ≥ step.
func loop(label string, n reg.GPVirtual, step uint64, body func()) {
	SUBQ(Imm(step), n)
	JL(LabelRef(label + "_end"))
	Label(label)
	body()
	SUBQ(Imm(step), n)
	JGE(LabelRef(label))
	Label(label + "_end")
}

// at is the address of base plus disp bytes.
func at(base reg.Register, disp int) Mem { return Mem{Base: base, Disp: disp} }
