// Command vector writes the AVX2 loops of package kernel outside the matrix products: norm, SiLU,
// rope, conversions, softmax and attention. docs/numerics.md defines what they compute.
//
//	go run ./vector -out ../vector_amd64.s -stubs ../vector_amd64.go -pkg kernel
package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64")
	constants()
	elementwise()
	rope()
	conversions()
	attention()
	Generate()
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

// broadcastParam fills a vector with a float32 argument, without the legacy MOVSS of Load.
func broadcastParam(name string) reg.VecVirtual {
	b, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	y := YMM()
	VBROADCASTSS(b.Addr, y)
	return y
}

// table is a read-only vector of eight equal or given 32-bit words.
type table map[string]Mem

var words = table{}

func (t table) add(name string, values ...uint32) {
	g := GLOBL("vec_"+name, attr.RODATA|attr.NOPTR)
	for i := range 8 {
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
