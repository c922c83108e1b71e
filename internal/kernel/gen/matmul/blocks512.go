package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Formats of blocks of 32: accumulator i has blocks 4i to 4i+3 in its lanes.
//
// A group is loaded once, 64 bytes at a time, and everything is picked from registers: loads that touch a
// line again while it is on its way from memory halve the speed.

// constsGroup makes the mask of the dwords that end a group.
func (r *rows512) constsGroup() {
	if rest := r.f.group % 64; rest != 0 {
		bits, m := GP32(), K()
		MOVL(U32(1<<(rest/4)-1), bits)
		KMOVW(bits, m)
		r.end = m
	}
}

// loadGroup returns a row's group in vectors of 64 bytes.
func (r *rows512) loadGroup(row int) (z []VecVirtual) {
	for at := 0; at < r.f.group; at += 64 {
		if at+64 <= r.f.group {
			z = append(z, load512(r.at(row, at)))
			continue
		}
		last := ZMM()
		VMOVDQU32_Z(r.at(row, at), r.end, last)
		z = append(z, last)
	}
	return z
}

// gather returns 32 words, the k-th from byte at(k) of the group. Two or three of the vectors may be needed.
func (r *rows512) gather(name string, z []VecVirtual, at func(k int) int) VecVirtual {
	first, steps := 0, len(z)
	inside := func(k, n int) bool { return at(k)/64 == n }
	for n := range len(z) - 1 {
		all := true
		for k := range 32 {
			all = all && (inside(k, n) || inside(k, n+1))
		}
		if all {
			first, steps = n, 2
			break
		}
	}
	var out VecVirtual
	for step := 1; step < steps; step++ {
		n := first + step
		index := load512(constant512(fmt.Sprintf("%s%s%d", name, r.f.name, step), words512(func(k int) int {
			switch {
			case step == 1 && inside(k, n-1):
				return at(k) % 64 / 2
			case step > 1 && (inside(k, n-1) || inside(k, n-2)):
				return k
			case inside(k, n):
				return 32 + at(k)%64/2
			}
			return 0 // a later step's
		})...))
		if step == 1 {
			VPERMI2W(z[n], z[n-1], index)
			out = index
		} else {
			VPERMT2W(z[n], index, out)
		}
	}
	return out
}

// blockWeights yields 16 bytes of every block at at; the scales at their beginning are kept in r.d, those
// of row 0 first.
func (r *rows512) blockWeights(row, size, at int, yield func(i int, z VecVirtual, group []VecVirtual)) {
	z := r.loadGroup(row)
	for i := range 2 {
		yield(i, r.gather(fmt.Sprint("quads", i), z, func(k int) int { return (4*i+k/8)*size + at + k%8*2 }), z)
	}
	if row == 0 {
		r.d = nil
	}
	r.d = append(r.d, r.gather("heads", z, func(k int) int { // 16 scales, then the 16 words behind them
		return r.f.run8(k%16/4, k%2)*size + k/16*2
	}))
}

func constsBlocks(r *rows512) {
	r.constsGroup()
	r.keep("nibble", constant512("nibble", 0x0f0f0f0f))
}

// weightsNibbles are for blocks of size bytes with 16 bytes of nibbles at at.
func weightsNibbles(size, at int) func(r *rows512, row, _ int, yield yield512) {
	return func(r *rows512, row, _ int, yield yield512) {
		r.blockWeights(row, size, at, func(i int, z VecVirtual, _ []VecVirtual) {
			yield(i, and512(r.k["nibble"], z), and512(r.k["nibble"], shifted512(z, 4)))
		})
	}
}

func constsQ5(r *rows512) {
	r.constsGroup()
	r.keep("nibble", constant512("nibble", 0x0f0f0f0f))
	r.keep("sixteen", constant512("sixteen", 0x10101010))
	r.keep("bit", constant512("bit", 0x08040201, 0x80402010))
	r.keep("spread0", constant512("spread0", 0, 0, 0x01010101, 0x01010101))
	r.keep("spread1", constant512("spread1", 0x02020202, 0x02020202, 0x03030303, 0x03030303))
}

// weightsQ5 are for blocks of size bytes that have 32 fifth bits at at, and nibbles behind them.
func weightsQ5(size, at int) func(r *rows512, row, _ int, yield yield512) {
	return func(r *rows512, row, _ int, yield yield512) {
		r.blockWeights(row, size, at+4, func(i int, z VecVirtual, group []VecVirtual) {
			bits := r.gather(fmt.Sprint("fifths", i), group, func(k int) int { return (4*i+k/8)*size + at + k%2*2 })
			var w [2]VecVirtual
			for q := range w {
				w[q] = and512(r.k["nibble"], shifted512(z, 4*q))
				b, k := ZMM(), K()
				VPSHUFB(r.k[fmt.Sprint("spread", q)], bits, b)
				VPTESTMB(r.k["bit"], b, k)
				VPADDB(r.k["sixteen"], w[q], k, w[q])
			}
			yield(i, w[0], w[1])
		})
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
	constsBlocks(r)
	r.keep("levels", constant512("levels", 0xbfad9881, 0xf6eaddcf, 0x26190d01, 0x71594535))
}

func weightsIQ4NL(r *rows512, row, _ int, yield yield512) {
	weightsNibbles(18, 2)(r, row, 0, func(i int, w ...VecVirtual) {
		for _, z := range w {
			VPSHUFB(z, r.k["levels"], z)
		}
		yield(i, w...)
	})
}

// headsD widens the f16 scales that blockWeights kept.
func headsD(r *rows512, _ int) (scale, minimum VecVirtual) {
	a := r.joined()
	VCVTPH2PS(a.AsY(), a)
	return a, nil
}

// headsDM widens scales and minima.
func headsDM(r *rows512, _ int) (scale, minimum VecVirtual) {
	a, m := r.joined(), ZMM()
	VEXTRACTI64X4(U8(1), a, m.AsY())
	VCVTPH2PS(a.AsY(), a)
	VCVTPH2PS(m.AsY(), m)
	return a, m
}

// joined takes what each row has for its sums.
func (r *rows512) joined() VecVirtual {
	z := ZMM()
	VPBLENDMW(r.d[1], r.d[0], r.second, z)
	return z
}

// loads returns where vectors of 64 bytes begin that cover the first words of 8 blocks, and which vector has
// each.
func loads(size, group int) (starts []int, of [8]int) {
	for b := range 8 {
		if n := len(starts); n > 0 && b*size+2 <= starts[n-1]+64 {
			of[b] = n - 1
			continue
		}
		of[b] = len(starts)
		starts = append(starts, min(b*size, group-64))
	}
	return starts, of
}

// collect brings the f16 number that begins each of the 8 blocks of a row to the places of its sums, in
// both rows' places.
func (r *rows512) collect(row, size int) VecVirtual {
	starts, of := loads(size, r.f.group)
	z := load512(r.at(row, starts[0]))
	for n := 1; n < len(starts); n++ {
		index := load512(constant512(fmt.Sprintf("collect%d_%d", size, n), words512(func(k int) int { // in z if it is there already
			b := r.f.run8(k%16/4, k%2)
			switch {
			case of[b] == n:
				return 32 + (b*size-starts[n])/2
			case of[b] == 0 && n == 1:
				return b * size / 2
			}
			return k
		})...))
		VPERMT2W(r.at(row, starts[n]), index, z)
	}
	return z
}

// scalesQ8_0 reads the scales anew: here the lines have come before.
func scalesQ8_0(r *rows512, _ int) (scale, minimum VecVirtual) {
	r.d = []VecVirtual{r.collect(0, 34), r.collect(1, 34)}
	return headsD(r, 0)
}

var _ Register
