package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// values writes the functions that sum probabilities times values: over a narrow chunk of 16 columns,
// and where there are registers over one of 64.
func values(s source, lines int) {
	valueChunk(s, lines, 16)
	if *wide || lines == 1 {
		valueChunk(s, lines, 64)
	}
}

// valueLoop sums probabilities times values for some lines with one range of positions.
type valueLoop struct {
	source
	lines, columns int

	o, p, line, x, y, stride reg.GPVirtual
	next                     reg.GPVirtual // walks through the rows that are read next
	scales                   reg.GPVirtual // Q8: what leads from the values to their scale
}

func valueChunk(s source, lines, columns int) {
	function(named(fmt.Sprintf("attnValues%dx%d%s", lines, columns, s.name)),
		"(o, p *float32, rows *[]byte, lo, hi *int32, alpha, beta *float32, lines, ostride, stride, voff, soff int)",
		fmt.Sprintf("sums probabilities times %d columns of values over the ranges of lines, %d of which share one, and joins the sums to o.", columns, lines))
	v := &valueLoop{source: s, lines: lines, columns: columns}
	v.o, v.p, v.stride = pointer("o"), pointer("p"), pointer("stride")
	v.line, v.x, v.y, v.next = GP64(), GP64(), GP64(), GP64()
	XORQ(v.line, v.line)
	if s.q8() {
		v.scales = pointer("soff")
		SUBQ(argument("voff"), v.scales)
	}
	Label("block")
	v.block()
	Label("next")
	ADDQ(U32(uint32(lines*tileBytes)), v.p)
	ADDQ(Imm(uint64(lines)), v.line)
	CMPQ(v.line, argument("lines"))
	JLT(LabelRef("block"))
	done()
}

// word is the element of an argument's array for the current line.
func (v *valueLoop) word(name string, i int) Mem {
	base := GP64()
	MOVQ(argument(name), base)
	return Mem{Base: base, Index: v.line, Scale: 4, Disp: 4 * i}
}

func (v *valueLoop) block() {
	from, left, group, count := GP64(), GP64(), GP64(), GP64()
	MOVLQSX(v.word("lo", 0), from)
	MOVLQSX(v.word("hi", 0), left)
	SUBQ(from, left)
	JG(LabelRef("some"))
	for range v.lines {
		ADDQ(argument("ostride"), v.o)
	}
	JMP(LabelRef("next"))
	Label("some")
	LEAQ(Mem{Base: v.p, Index: from, Scale: 4}, v.x)
	MOVQ(from, group)
	SHRQ(Imm(4), group)
	IMUL3Q(Imm(sliceBytes), group, group)
	ADDQ(argument("rows"), group)
	ANDQ(Imm(15), from)
	MOVQ(v.stride, v.y)
	IMULQ(from, v.y)
	MOVQ(U32(16), count)
	SUBQ(from, count)
	acc := make([][]reg.VecVirtual, v.lines)
	for l := range acc {
		for range v.columns / lanes() {
			r := vec()
			zero(r)
			acc[l] = append(acc[l], r)
		}
	}
	Label("group")
	ADDQ(argument("voff"), v.y)
	MOVQ(at(group, nextSlice), v.next)
	ADDQ(v.y, v.next)
	ADDQ(at(group, 0), v.y)
	CMPQ(left, count)
	CMOVQLT(left, count)
	SUBQ(count, left)
	Label("position")
	v.position(acc)
	ADDQ(Imm(4), v.x)
	ADDQ(v.stride, v.y)
	if v.source != tile {
		for i := 0; i < max(v.columns*v.size, 64); i += 64 {
			PREFETCHT0(at(v.next, i))
		}
		ADDQ(v.stride, v.next)
	}
	DECQ(count)
	JNE(LabelRef("position"))
	ADDQ(Imm(sliceBytes), group)
	XORQ(v.y, v.y)
	MOVQ(U32(16), count)
	TESTQ(left, left)
	JG(LabelRef("group"))
	for l := range acc {
		v.store(l, acc[l])
	}
}

// position adds one position's values.
func (v *valueLoop) position(acc [][]reg.VecVirtual) {
	var w []reg.VecVirtual
	for l := range acc {
		x := vec()
		VBROADCASTSS(at(v.x, l*tileBytes), x)
		w = append(w, x)
	}
	var d reg.VecVirtual
	for i := range acc[0] {
		column := i * lanes()
		disp := column * v.size
		if v.q8() {
			disp = column/q8Values*q8Bytes + column%q8Values
			if column%q8Values == 0 {
				d = scale(Mem{Base: v.y, Index: v.scales, Scale: 1, Disp: column / q8Values * q8Bytes})
			}
		}
		y := v.load(at(v.y, disp), d)
		for l := range acc {
			VFMADD231PS(y, w[l], acc[l][i])
		}
	}
}

// store is o = acc if alpha is −1, else o·α + acc·β, for one line, and moves o to the next.
func (v *valueLoop) store(line int, acc []reg.VecVirtual) {
	join, end := fmt.Sprintf("join%d", line), fmt.Sprintf("joined%d", line)
	alpha := v.word("alpha", line)
	CMPL(alpha, U32(0xbf800000))
	JNE(LabelRef(join))
	for i := range acc {
		VMOVUPS(acc[i], at(v.o, 4*lanes()*i))
	}
	JMP(LabelRef(end))
	Label(join)
	a, b := vec(), vec()
	VBROADCASTSS(alpha, a)
	VBROADCASTSS(v.word("beta", line), b)
	for i := range acc {
		VMULPS(acc[i], b, acc[i])
		VFMADD231PS(at(v.o, 4*lanes()*i), a, acc[i])
		VMOVUPS(acc[i], at(v.o, 4*lanes()*i))
	}
	Label(end)
	ADDQ(argument("ostride"), v.o)
}
