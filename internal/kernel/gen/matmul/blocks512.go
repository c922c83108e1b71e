package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Formats of blocks of 32: accumulator i has blocks 4i to 4i+3 in its lanes.

// constsBlocks are for blocks of size bytes with 16 bytes of nibbles at at.
func constsBlocks(size, at int) func(*rows512) {
	return func(r *rows512) {
		r.window = window{size: size, at: at, end: at + 16}
		r.keep("nibble", constant512("nibble", 0x0f0f0f0f))
		r.keep("quads", r.window.index("quads", func(lane, word int) int { return lane*size + at + 2*word }))
	}
}

// window is the part of 4 blocks that two vectors cover: from at in the first to end in the last.
type window struct{ size, at, end int }

// first and second are where the vectors begin in a group, for accumulator i.
func (w window) first(i int) int  { return 4*i*w.size + w.at }
func (w window) second(i int) int { return 4*i*w.size + 3*w.size + w.end - 64 }

// index makes the words of VPERMT2W that bring the word at byte from(lane, word) of 4 blocks to word
// (0 to 7) of a lane.
func (w window) index(name string, from func(lane, word int) int) Mem {
	return constant512(fmt.Sprintf("%s%d_%d", name, w.size, w.at), words512(func(i int) int {
		b := from(i/8, i%8)
		if b-w.first(0) < 64 {
			return (b - w.first(0)) / 2
		}
		return 32 + (b-w.second(0))/2
	})...)
}

// gather returns the words of accumulator i that the index kept as key names.
func (r *rows512) gather(row, i int, key string) VecVirtual {
	z := ZMM()
	VMOVDQU32(r.at(row, r.window.first(i)), z)
	VPERMT2W(r.at(row, r.window.second(i)), r.k[key], z)
	return z
}

func weightsNibbles(r *rows512, row, _ int, yield yield512) {
	for i := range 2 {
		z := r.gather(row, i, "quads")
		yield(i, and512(r.k["nibble"], z), and512(r.k["nibble"], shifted512(z, 4)))
	}
}

// constsQ5 are for blocks that have 32 fifth bits at at, and nibbles behind them.
func constsQ5(size, at int) func(*rows512) {
	return func(r *rows512) {
		r.window = window{size: size, at: at, end: at + 20}
		r.keep("nibble", constant512("nibble", 0x0f0f0f0f))
		r.keep("sixteen", constant512("sixteen", 0x10101010))
		r.keep("quads", r.window.index("quads", func(lane, word int) int { return lane*size + at + 4 + 2*word }))
		r.keep("bits", r.window.index("bits", func(lane, word int) int { return lane*size + at + 2*(word%2) }))
		r.keep("bit", constant512("bit", 0x08040201, 0x80402010))
		r.keep("spread0", constant512("spread0", 0, 0, 0x01010101, 0x01010101))
		r.keep("spread1", constant512("spread1", 0x02020202, 0x02020202, 0x03030303, 0x03030303))
	}
}

func weightsQ5(r *rows512, row, _ int, yield yield512) {
	for i := range 2 {
		z, bits := r.gather(row, i, "quads"), r.gather(row, i, "bits")
		var w [2]VecVirtual
		for q := range w {
			w[q] = and512(r.k["nibble"], shifted512(z, 4*q))
			b, k := ZMM(), K()
			VPSHUFB(r.k[fmt.Sprint("spread", q)], bits, b)
			VPTESTMB(r.k["bit"], b, k)
			VPADDB(r.k["sixteen"], w[q], k, w[q])
		}
		yield(i, w[0], w[1])
	}
}

func constsFlip(r *rows512) { r.keep("flip", constant512("flip", 0x80808080)) }

func weightsQ8_0(r *rows512, row, _ int, yield yield512) {
	for i := range 2 {
		var pairs [2]VecVirtual
		for k := range pairs {
			at := (4*i + 2*k) * 34
			pairs[k] = ZMM()
			VMOVDQU32(r.at(row, at+2), pairs[k])
			VINSERTI64X4(U8(1), r.at(row, at+36), pairs[k], pairs[k])
		}
		z := halves512(pairs[0], pairs[1])
		yield(i, z[0], z[1])
	}
}

func constsIQ4NL(r *rows512) {
	constsFlip(r)
	constsBlocks(18, 2)(r)
	r.keep("levels", constant512("levels", 0xbfad9881, 0xf6eaddcf, 0x26190d01, 0x71594535))
}

func weightsIQ4NL(r *rows512, row, _ int, yield yield512) {
	weightsNibbles(r, row, 0, func(i int, w ...VecVirtual) {
		for _, z := range w {
			VPSHUFB(z, r.k["levels"], z)
		}
		yield(i, w...)
	})
}

// loads returns where vectors of 64 bytes begin that cover n items of unit bytes, one every size bytes,
// and which vector has each item.
func loads(size, unit, group int) (starts []int, of [8]int) {
	for b := range 8 {
		if n := len(starts); n > 0 && b*size+unit <= starts[n-1]+64 {
			of[b] = n - 1
			continue
		}
		of[b] = len(starts)
		starts = append(starts, min(b*size, group-64))
	}
	return starts, of
}

// collect brings the unit (2 or 4 bytes) that begins each of the 8 blocks of a row to the places of its
// sums, in both rows' places.
func (r *rows512) collect(row, size, unit int) VecVirtual {
	starts, of := loads(size, unit, r.f.group)
	z := ZMM()
	VMOVDQU32(r.at(row, starts[0]), z)
	per := 64 / unit // units in a vector
	for n := 1; n < len(starts); n++ {
		at := func(k int) int { // index of sum k's unit: in z if it is there already
			b := r.f.run8(k/4, k%2)
			switch {
			case of[b] == n:
				return per + (b*size-starts[n])/unit
			case of[b] == 0 && n == 1:
				return b * size / unit
			}
			return k
		}
		index := ZMM()
		name := fmt.Sprintf("collect%d_%d_%d", size, unit, n)
		if unit == 2 {
			VMOVDQU32(constant512(name, words512(func(k int) int { return at(k % 16) })...), index)
			VPERMT2W(r.at(row, starts[n]), index, z)
			continue
		}
		words := make([]uint32, 16)
		for k := range words {
			words[k] = uint32(at(k))
		}
		VMOVDQU32(constant512(name, words...), index)
		VPERMT2D(r.at(row, starts[n]), index, z)
	}
	return z
}

// scalesD reads the f16 scale at the start of each of 8 blocks.
func scalesD(size int) func(*rows512, int) (scale, minimum VecVirtual) {
	return func(r *rows512, _ int) (scale, minimum VecVirtual) {
		a, b := r.collect(0, size, 2), r.collect(1, size, 2)
		VPBLENDMW(b.AsY(), a.AsY(), r.second, a.AsY())
		VCVTPH2PS(a.AsY(), a)
		return a, nil
	}
}

// scalesDM reads the f16 scale and minimum at the start of each of 8 blocks.
func scalesDM(size int) func(*rows512, int) (scale, minimum VecVirtual) {
	return func(r *rows512, _ int) (scale, minimum VecVirtual) {
		a, b := r.collect(0, size, 4), r.collect(1, size, 4)
		VPBLENDMD(b, a, r.second, a)
		index, m := ZMM(), ZMM()
		VMOVDQU32(constant512("splitDM", words512(func(i int) int { return i%16*2 + i/16 })...), index)
		VPERMW(a, index, a) // 16 scales, 16 minima
		VEXTRACTI64X4(U8(1), a, m.AsY())
		VCVTPH2PS(a.AsY(), a)
		VCVTPH2PS(m.AsY(), m)
		return a, m
	}
}

var _ Register
