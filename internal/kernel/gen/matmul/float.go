package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// loaders read 8 weights as f32. The F32 one only names the operand.
func loadF32(m Mem) Op { return m }

func loadF16(m Mem) Op {
	y := YMM()
	VCVTPH2PS(m, y)
	return y
}

func loadBF16(m Mem) Op {
	y := YMM()
	VPMOVZXWD(m, y)
	VPSLLD(U8(16), y, y)
	return y
}

// rowsAtOnce is how many rows of stored float weights meet one row of activations together.
const rowsAtOnce = 8

// floatRows emits the product of 8 rows of stored weights with one row of activations.
func floatRows(name string, size int, load func(Mem) Op) {
	begin("floatRows"+name+"AVX2", "func(rows **byte, next *byte, x *float32, k8 int, tails *float32, out *float32)",
		"writes 8 outputs: rows of k8×8 stored weights, at 8 pointers, times x.\n"+
			"next is what to fetch meanwhile. tails is nil, or holds 8 more weights of each row as f32.")
	ptr := param("rows")
	x := param("x")
	n := param("k8")
	tails := param("tails")
	var row [rowsAtOnce]GPVirtual
	var acc [rowsAtOnce]VecVirtual
	for i := range row {
		row[i] = GP64()
		MOVQ(mem(ptr, 8*i), row[i])
		acc[i] = YMM()
		VXORPS(acc[i], acc[i], acc[i])
	}
	next := param("next")
	at, stop := GP64(), GP64() // index of the next weight, and of the last that begins a whole 64 bytes
	XORQ(at, at)
	SHLQ(U8(3), n)
	xv := YMM()
	step := func() {
		VMOVUPS(Mem{Base: x, Index: at, Scale: 4}, xv)
		for i := range row {
			VFMADD231PS(load(Mem{Base: row[i], Index: at, Scale: uint8(size)}), xv, acc[i])
		}
		ADDQ(U8(8), at)
	}
	steps := 64 / (8 * size) // a cache line of each row
	LEAQ(mem(n, -8*steps), stop)
	CMPQ(at, stop)
	JG(LabelRef("rest"))
	Label("loop")
	for i := range steps {
		for k := range rowsAtOnce / steps {
			PREFETCHT0(mem(next, 64*(i*rowsAtOnce/steps+k)))
		}
		step()
	}
	ADDQ(U32(64*rowsAtOnce), next)
	CMPQ(at, stop)
	JLE(LabelRef("loop"))
	Label("rest")
	CMPQ(at, n)
	JGE(LabelRef("tail"))
	step()
	JMP(LabelRef("rest"))
	Label("tail")
	TESTQ(tails, tails)
	JZ(LabelRef("totals"))
	VMOVUPS(Mem{Base: x, Index: at, Scale: 4}, xv)
	for i := range acc {
		VFMADD231PS(mem(tails, 32*i), xv, acc[i])
	}
	Label("totals")
	out := param("out")
	VMOVUPS(totals4([4]VecVirtual(acc[:4])), mem(out, 0))
	VMOVUPS(totals4([4]VecVirtual(acc[4:])), mem(out, 16))
	end()
}

// decodeRow emits the conversion of stored weights to f32.
func decodeRow(name string, size int, load func(Mem) Op) {
	begin("decodeRow"+name+"AVX2", "func(dst *float32, src *byte, k8 int)", "decodes k8×8 weights, at least 8.")
	dst := param("dst")
	src := param("src")
	n := param("k8")
	loop("loop", n, func() {
		VMOVUPS(load(mem(src, 0)).(VecVirtual), mem(dst, 0))
		ADDQ(U8(8*size), src)
		ADDQ(U8(32), dst)
	})
	end()
}

// floatTile emits a tile of nx rows of activations and 4 rows of f32 weights.
func floatTile(nx int) {
	begin(fmt.Sprintf("floatTile%dAVX2", nx),
		"func(x *float32, xStride int, w *float32, wStride int, k8 int, next *float32, sums *float32, mode int, out *float32, outStride int)",
		fmt.Sprintf("computes %d × 4 outputs over k8×8 values, at least 8, and fetches as much from next on.\nStrides are in bytes. Mode is as in tile.mode.", nx))
	w := param("w")
	wStride := param("wStride")
	w3 := GP64()
	LEAQ(Mem{Base: wStride, Index: wStride, Scale: 2}, w3)
	ADDQ(w, w3)
	x := param("x")
	xStride := param("xStride")
	n := param("k8")
	rows := []Mem{{Base: w}, {Base: w, Index: wStride, Scale: 1}, {Base: w, Index: wStride, Scale: 2}, {Base: w3}}
	cols := []Mem{{Base: x}, {Base: x, Index: xStride, Scale: 1}, {Base: x, Index: xStride, Scale: 2}}
	sums, mode, next := param("sums"), param("mode"), param("next")
	acc := loadSums(nx, sums, mode)
	loop("loop", n, func() {
		PREFETCHT0(mem(next, 0))
		xs := make([]VecVirtual, nx)
		for r := range xs {
			xs[r] = YMM()
			VMOVUPS(cols[r], xs[r])
		}
		for i, row := range rows {
			wv := YMM()
			VMOVUPS(row, wv)
			for r := range xs {
				VFMADD231PS(wv, xs[r], acc[r][i])
			}
		}
		for _, p := range []Register{w, w3, x, next} {
			ADDQ(U8(32), p)
		}
	})
	storeTile(acc, sums, mode)
}

// loadSums starts the running sums of a tile at 0, or at sums if bit 0 of mode is set. The label "loop"
// follows.
func loadSums(nx int, sums, mode Register) [][4]VecVirtual {
	acc := make([][4]VecVirtual, nx)
	for r := range acc {
		for i := range acc[r] {
			acc[r][i] = YMM()
			VXORPS(acc[r][i], acc[r][i], acc[r][i])
		}
	}
	TESTQ(U32(1), mode)
	JZ(LabelRef("loop"))
	for r := range acc {
		for i := range acc[r] {
			VMOVUPS(mem(sums, 32*(4*r+i)), acc[r][i])
		}
	}
	return acc
}

// storeTile ends a tile: the running sums go to sums if bit 1 of mode is set, else their totals to out.
func storeTile(acc [][4]VecVirtual, sums, mode Register) {
	TESTQ(U32(2), mode)
	JZ(LabelRef("totals"))
	for r := range acc {
		for i := range acc[r] {
			VMOVUPS(acc[r][i], mem(sums, 32*(4*r+i)))
		}
	}
	end()
	Label("totals")
	out := param("out")
	outStride := param("outStride")
	for r := range acc {
		VMOVUPS(totals4(acc[r]), mem(out, 0))
		if r < len(acc)-1 {
			ADDQ(outStride, out)
		}
	}
	end()
}
