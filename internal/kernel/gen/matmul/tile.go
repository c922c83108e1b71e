package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// tileKind is what a tile of integer products has to know of a format.
type tileKind struct {
	run    int
	offset bool
}

func (k tileKind) name(nx int) string {
	s := fmt.Sprintf("intTile%dx%d", k.run, nx)
	if k.offset {
		s += "Offset"
	}
	return s + "AVX2"
}

// tile emits nx rows of activations times 4 panel rows. Running sums, 32 bytes an output, lie in
// memory, because the sums of a group fill the registers.
type tile struct {
	tileKind
	nx         int
	x, w       [4]Mem // the group's first bytes, by row
	sums, even Mem
}

func intTile(kind tileKind, nx int) {
	begin(kind.name(nx), "func(x *byte, xStride int, w *byte, wStride int, n int, next *byte, sums *float32, mode int, out *float32, outStride int)",
		fmt.Sprintf("computes %d × 4 outputs over n ≥ 1 groups, and fetches as much from next on.\nStrides are in bytes. Mode is as in tile.mode.", nx))
	t := tile{tileKind: kind, nx: nx}
	x, w, w3 := param("x"), param("w"), GP64()
	xStride, wStride := param("xStride"), param("wStride")
	n := param("n")
	LEAQ(Mem{Base: wStride, Index: wStride, Scale: 2}, w3)
	ADDQ(w, w3)
	t.w = [4]Mem{{Base: w}, {Base: w, Index: wStride, Scale: 1}, {Base: w, Index: wStride, Scale: 2}, {Base: w3}}
	t.x = [4]Mem{{Base: x}, {Base: x, Index: xStride, Scale: 1}}
	sums, mode := param("sums"), param("mode")
	t.sums = mem(sums, 0)
	if kind.run == 16 {
		t.even = AllocLocal(32 * 4 * nx)
	}
	TESTQ(U32(1), mode)
	JNZ(LabelRef("group"))
	zero := YMM()
	VXORPS(zero, zero, zero)
	for i := range 4 * nx {
		VMOVUPS(zero, t.sums.Offset(32*i))
	}
	next := param("next")
	loop("group", n, func() {
		for at := 0; at < actSize; at += 64 {
			PREFETCHT0(mem(next, at))
		}
		ADDQ(U32(actSize), next)
		t.group()
		ADDQ(U32(actSize), x)
		ADDQ(U32(panelSize), w)
		ADDQ(U32(panelSize), w3)
	})
	TESTQ(U32(2), mode)
	JZ(LabelRef("totals"))
	end()
	Label("totals")
	t.finish()
	end()
}

func (t *tile) group() {
	if t.run == 32 {
		t.fold32(t.multiply(0, 16))
		return
	}
	for i, y := range t.flat(t.multiply(0, 8)) {
		VMOVDQU(y, t.even.Offset(32*i))
	}
	t.fold16(t.multiply(8, 16))
}

// multiply returns the products of vectors from to to of the group, summed by output.
func (t *tile) multiply(from, to int) (sums [2][4]sum) {
	for v := from; v < to; v++ {
		var xs [2]VecVirtual
		for r := range t.nx {
			xs[r] = YMM()
			VMOVDQU(t.x[r].Offset(32*v), xs[r])
		}
		for i := range 4 {
			var p VecVirtual
			if t.nx == 1 {
				p = YMM()
				VPMADDWD(t.w[i].Offset(32*v), xs[0], p)
				sums[0][i].add(p)
				continue
			}
			wv := YMM()
			VMOVDQU(t.w[i].Offset(32*v), wv)
			for r := range t.nx {
				p := YMM()
				VPMADDWD(xs[r], wv, p)
				sums[r][i].add(p)
			}
		}
	}
	return sums
}

func (t *tile) flat(sums [2][4]sum) (ys []VecVirtual) {
	for r := range t.nx {
		for i := range 4 {
			ys = append(ys, sums[r][i].y)
		}
	}
	return ys
}

// fold32 adds a group's 8 runs of 32 to the running sums of each output.
func (t *tile) fold32(sums [2][4]sum) {
	for r := range t.nx {
		scale := YMM()
		VMOVUPS(t.x[r].Offset(actScale), scale)
		var offset VecVirtual
		if t.offset {
			offset = YMM()
			VMOVUPS(t.x[r].Offset(actOffset), offset)
		}
		for i := range 4 {
			at := t.sums.Offset(32 * (r*4 + i))
			s := YMM()
			VMOVUPS(at, s)
			t.addRuns(s, sums[r][i].y, t.w[i], 0, scale, offset)
			VMOVUPS(s, at)
		}
	}
}

// addRuns adds 8 runs with the integer sums v to s; half selects the panel's scales.
func (t *tile) addRuns(s, v VecVirtual, w Mem, half int, scale, offset VecVirtual) {
	p := YMM()
	VCVTDQ2PS(v, v)
	VMULPS(w.Offset(panelScale+32*half), scale, p)
	VFMADD231PS(p, v, s)
	if t.offset {
		VFNMADD231PS(w.Offset(panelMin+32*half), offset, s)
	}
}

// fold16 adds a group's 16 runs: even ones lie on the stack, odd ones in sums.
func (t *tile) fold16(sums [2][4]sum) {
	odd := t.flat(sums)
	for i, o := range odd { // even sums make room for runs 0–7, odd ones for runs 8–15
		e, lo := YMM(), YMM()
		VMOVDQU(t.even.Offset(32*i), e)
		VPUNPCKLDQ(o, e, lo) // runs 0–3, 8–11
		VPUNPCKHDQ(o, e, e)  // runs 4–7, 12–15
		VPERM2I128(U8(0x20), e, lo, o)
		VPERM2I128(U8(0x31), e, lo, lo)
		VMOVDQU(lo, t.even.Offset(32*i))
	}
	for half := range 2 {
		for r := range t.nx {
			scale := spread(half, t.x[r].Offset(actScale))
			var offset VecVirtual
			if t.offset {
				offset = YMM()
				VCVTDQ2PS(t.x[r].Offset(actSum16+32*half), offset)
				VMULPS(scale, offset, offset)
			}
			for i := range 4 {
				s, v := YMM(), odd[r*4+i]
				if half == 1 {
					v = YMM()
					VMOVDQU(t.even.Offset(32*(r*4+i)), v)
				}
				at := t.sums.Offset(32 * (r*4 + i))
				VMOVUPS(at, s)
				t.addRuns(s, v, t.w[i], half, scale, offset)
				VMOVUPS(s, at)
			}
		}
	}
}

func (t *tile) finish() {
	out, outStride := param("out"), param("outStride")
	for r := range t.nx {
		var s [4]VecVirtual
		for i := range s {
			s[i] = YMM()
			VMOVUPS(t.sums.Offset(32*(r*4+i)), s[i])
		}
		VMOVUPS(totals4(s), mem(out, 0))
		if r < t.nx-1 {
			ADDQ(outStride, out)
		}
	}
}
