package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Wide tiles take up to 12 rows of activations and 32 rows of weights, two vectors of a row a lane: pairs of
// activations are broadcast. A run's sums need no reduction then, so that runs of 16 cost little more than
// those of 32, and a vector of weights is loaded for 24 products instead of 4.
//
// Panels are records of a run each: its pairs of values in the order of a group, then scales, then minima; 128
// bytes of each. Runs of 16 come in the order of the units of all blocks of 32: 0, 2, 4 … 14, 1, 3 … 15.
// Running sums take 1024 bytes a row of activations, those of the first 16 rows of weights before the others:
// 64 bytes of each run that has a sum of its own, in the order of records.
const (
	wideVector = 64
	wideStep   = 2 * wideVector
	wideSums   = 2 * 8 * wideVector
	wideAhead  = 18 * wideStep // how far ahead weights are fetched from the second-level cache: a run of 32
	wideAtOnce = 4             // pairs that a round of the loop multiplies
	wideFetch  = 384           // bytes of stored weights that are fetched in a run
)

func (k tileKind) pairs() int { return k.run / 2 }

func (k tileKind) record() int { return (k.pairs() + 2) * wideStep }

// place returns where a transposed vector of lane i of a piece lies, and false if it is of no use.
func (k tileKind) place(piece, i int) (at int, ok bool) {
	phase, block := 0, i
	value := piece % k.pairs()
	switch {
	case piece < pieceScale:
		phase = piece / k.pairs()
	default:
		half := (piece - pieceScale) % 2
		value = k.pairs() + (piece-pieceScale)/2
		if k.run == 16 {
			phase, block = i%2, 4*half+i/2
		} else if half == 1 {
			return 0, false
		}
	}
	return (8*phase+block)*k.record() + value*wideStep, true
}

// widen emits the transposition of panels of 8 rows to half of one of wide tiles.
func widen(k tileKind) {
	begin(fmt.Sprintf("widen%dAVX512", k.run), "func(dst *byte, src *byte, octet int, n int)",
		fmt.Sprintf("brings n ≥ 1 groups of 16 rows into the order of wide tiles, for runs of %d. The second\n"+
			"8 rows lie octet bytes behind the first.", k.run))
	dst, src, octet, n := param("dst"), param("src"), param("octet"), param("n")
	var index [2]VecVirtual
	for h := range index {
		words := make([]uint32, 16)
		for r := range words {
			words[r] = uint32(r/8*16 + r%2*8 + 4*h + r%8/2)
		}
		index[h] = load512(constant512(fmt.Sprintf("rowsOf%d", h), words...))
	}
	loop("group", n, func() {
		for piece := range panelSize / 32 {
			if _, ok := k.place(piece, 0); !ok {
				continue
			}
			var rows [8]VecVirtual // rows 2p and 2p+1, lanes of blocks
			for p := range rows {
				m := Mem{Base: src, Disp: pieceStride*piece + 64*(p%4)}
				if p >= 4 {
					m.Index, m.Scale = octet, 1
				}
				rows[p] = load512(m)
			}
			for i, z := range byBlock(rows, index) {
				at, _ := k.place(piece, i)
				VMOVUPS(z, mem(dst, at))
			}
		}
		ADDQ(U32(octetSize), src)
		ADDQ(U32(uint32(k.record()*256/k.run)), dst)
	})
	end()
}

// byBlock transposes 16 rows of 8 dwords, two a vector.
func byBlock(rows [8]VecVirtual, index [2]VecVirtual) (blocks [8]VecVirtual) {
	low, high := transpose([4]VecVirtual(rows[:4])), transpose([4]VecVirtual(rows[4:]))
	for i := range blocks {
		z := ZMM()
		VMOVDQU32(low[i%4], z)
		VPERMT2D(high[i%4], index[i/4], z)
		blocks[i] = z
	}
	return blocks
}

// wideTile512 is a tile of nx rows of activations and 32 rows of weights.
type wideTile512 struct {
	tileKind
	nx    int
	x     []Mem
	bases []Register // of the rows of activations, at a pair
	w     Register   // the record
	sums  Mem        // running sums of the run
	acc   [][2]VecVirtual
}

func (k tileKind) wideName(nx int) string {
	s := fmt.Sprintf("wideTile%dx%d", k.run, nx)
	if k.offset {
		s += "Offset"
	}
	return s + "AVX512"
}

func emitWideTile(kind tileKind, nx int) {
	TEXT(kind.wideName(nx), 0, "func(x *byte, xStride int, w *byte, n int, sums *float32, mode int, out *float32, outStride int, ahead *byte, step int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s computes %d × 32 outputs over n ≥ 1 groups. Strides are in bytes. Mode is as in tile.mode.", kind.wideName(nx), nx),
		fmt.Sprintf("Meanwhile it fetches %d bytes from ahead on for each run, and moves ahead by step.", wideFetch))
	t := &wideTile512{tileKind: kind, nx: nx}
	t.x, t.bases = rowPointers(param("x"), param("xStride"), nx)
	t.w = param("w")
	sums := param("sums")
	TESTQ(U32(1), param("mode"))
	JNZ(LabelRef("start"))
	t.clear(sums)
	Label("start")
	n, at, sum := param("n"), GP64(), GP64()
	t.sums = Mem{Base: sum}
	loop("group", n, func() {
		for phase := range 32 / kind.run {
			t.phase(phase, sums, at, sum)
		}
		t.move(actSize - actScale)
	})
	TESTQ(U32(2), param("mode"))
	JZ(LabelRef("totals"))
	end()
	Label("totals")
	t.totals(sums)
	end()
}

// fresh512 returns 0; the register is free before.
func fresh512() VecVirtual {
	z := ZMM()
	VXORPS(z, z, z)
	return z
}

// move moves the pointers to activations.
func (t *wideTile512) move(n int) {
	for _, p := range t.bases {
		ADDQ(I32(int32(n)), p)
	}
}

// clear sets the running sums to 0.
func (t *wideTile512) clear(sums Register) {
	zero, p, left := fresh512(), GP64(), GP64()
	MOVQ(sums, p)
	MOVQ(U32(uint32(2*t.nx)), left)
	loop("clear", left, func() {
		for i := range 8 {
			VMOVUPS(zero, mem(p, 64*i))
		}
		ADDQ(U32(8*wideVector), p)
	})
}

// phase multiplies and adds the runs of a group that have the same unit of their blocks. at counts bytes
// of running sums, which are in the order of runs.
func (t *wideTile512) phase(phase int, sums, at, sum Register) {
	name := func(s string) string { return fmt.Sprint(s, phase) }
	XORQ(at, at)
	Label(name("run"))
	t.acc = nil
	for range t.nx {
		t.acc = append(t.acc, [2]VecVirtual{fresh512(), fresh512()})
	}
	t.fetch(at)
	left := GP64()
	MOVQ(U32(uint32(t.pairs()/wideAtOnce)), left)
	loop(name("pairs"), left, func() {
		t.multiply()
		t.move(32 * wideAtOnce)
		ADDQ(I32(wideAtOnce*wideStep), t.w)
	})
	scale := actScale - 32*t.pairs()*(phase+1) // from the end of the run's pairs
	if t.run == 16 {
		MOVQ(at, sum)
		ANDQ(U32(4*wideVector-1), sum)
		LEAQ(Mem{Base: sums, Index: sum, Scale: 1, Disp: 4 * wideVector * phase}, sum)
	} else {
		LEAQ(Mem{Base: sums, Index: at, Scale: 1}, sum)
	}
	t.fold(scale, phase, at)
	ADDQ(I32(2*wideStep), t.w)
	t.move(4 - 32*t.pairs())
	ADDQ(I8(wideVector), at)
	CMPQ(at, U32(8*wideVector))
	JNE(LabelRef(name("run")))
	t.move(32*t.pairs() - 32)
}

// fetch asks for a cache line of each row's next group, at being 64 times the run, and for stored weights.
func (t *wideTile512) fetch(at Register) {
	for _, p := range t.bases {
		ADDQ(at, p)
	}
	for r := range t.x {
		PREFETCHT0(t.x[r].Offset(actSize))
	}
	for _, p := range t.bases {
		SUBQ(at, p)
	}
	ahead, step := GP64(), GP64()
	Load(Param("ahead"), ahead)
	Load(Param("step"), step)
	for i := 0; i < wideFetch; i += 64 {
		PREFETCHT1(mem(ahead, i))
	}
	ADDQ(step, ahead)
	MOVQ(ahead, NewParamAddr("ahead", 64))
}

func (t *wideTile512) multiply() {
	for v := range wideAtOnce {
		w := [2]VecVirtual{load512(mem(t.w, wideStep*v)), load512(mem(t.w, wideStep*v+wideVector))}
		PREFETCHT0(mem(t.w, wideStep*v+wideAhead))
		PREFETCHT0(mem(t.w, wideStep*v+wideAhead+64))
		for r, acc := range t.acc {
			x := ZMM()
			VPBROADCASTD(t.x[r].Offset(32*v), x)
			VPDPWSSD(w[0], x, acc[0])
			VPDPWSSD(w[1], x, acc[1])
		}
	}
}

// fold adds a run to the running sums. Its activations' scales lie at scale.
func (t *wideTile512) fold(scale, phase int, at Register) {
	var ws, minima [2]VecVirtual
	for c := range ws {
		ws[c] = load512(mem(t.w, wideVector*c))
		if t.offset {
			minima[c] = load512(mem(t.w, wideStep+wideVector*c))
		}
	}
	for r, acc := range t.acc {
		as, offset := ZMM(), VecVirtual(nil)
		VPBROADCASTD(t.x[r].Offset(scale), as)
		if t.offset {
			offset = t.runOffset(r, scale, phase, as, at)
		}
		for c, v := range acc {
			f, s := ZMM(), ZMM()
			m := t.sums.Offset(wideSums*r + 8*wideVector*c)
			VCVTDQ2PS(v, v)
			VMULPS(ws[c], as, f)
			VMOVUPS(m, s)
			VFMADD231PS(f, v, s)
			if t.offset {
				VFNMADD231PS(minima[c], offset, s)
			}
			VMOVUPS(s, m)
		}
	}
}

// runOffset returns the scaled sum of the run's activations of row r.
func (t *wideTile512) runOffset(r, scale, phase int, as VecVirtual, at Register) VecVirtual {
	z := ZMM()
	if t.run == 32 {
		VPBROADCASTD(t.x[r].Offset(scale+actOffset-actScale), z)
		return z
	}
	if r == 0 {
		SHRQ(U8(4), at) // two sums a block are 4 bytes more than one
	}
	ADDQ(at, t.bases[r/3])
	VPBROADCASTD(t.x[r].Offset(scale+actSum16-actScale+4*phase), z)
	SUBQ(at, t.bases[r/3])
	VCVTDQ2PS(z, z)
	VMULPS(as, z, z)
	if r == t.nx-1 {
		SHLQ(U8(4), at)
	}
	return z
}

// totals writes the totals of the running sums, row by row.
func (t *wideTile512) totals(sums Register) {
	out, outStride, left := param("out"), param("outStride"), GP64()
	MOVQ(U32(uint32(t.nx)), left)
	slot := func(j, c int) Mem { // of running sum j
		if t.run == 16 {
			j = j%2*4 + j/2
		}
		return mem(sums, 8*wideVector*c+wideVector*j)
	}
	loop("total", left, func() {
		for c := range 2 {
			pair := func(i, j int) VecVirtual {
				z := load512(slot(i, c))
				VADDPS(slot(j, c), z, z)
				return z
			}
			a, b, d, e := pair(0, 4), pair(2, 6), pair(1, 5), pair(3, 7)
			VADDPS(b, a, a)
			VADDPS(e, d, d)
			VADDPS(d, a, a)
			VMOVUPS(a, mem(out, wideVector*c))
		}
		ADDQ(U32(wideSums), sums)
		ADDQ(outStride, out)
	})
}
