package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Direct products with AVX-512 take two rows of weights at a time, and weights stay bytes. The 16-bit
// activations are split into their high and low bytes, a = 256·hi + lo: VPDPBUSD sums the products with
// hi, the sums are shifted, and a second VPDPBUSD adds those with lo.
//
// A vector of 64 weights holds 16 bytes of each of four runs, or half runs of 32, in lanes j of 128 bits.
// A row has two accumulators i for the 8 runs of a phase; three hadds leave the sums of two rows in dword
// 4j + 2·row + i. The order of activations follows, see format512.run8.

// Offsets in a group of packed activations: 8 times 32 bytes hi and 32 bytes lo, then for each phase the
// scales and the corrections (int32) or offsets (f32) of 16 sums.
const (
	packPhase = 128
	packMeta  = 512
)

// prefetchAhead512 is how many bytes ahead pairs of rows are fetched. The processor drops some requests, so
// each line is asked for again on its way. Measured on one core of Zen 5, in GB/s for Q4_0, Q4_1, Q8_0, Q4_K:
// 16 KiB alone 23, 28, 37, 40; with 4 KiB 28, 36, 42, 42; these three 36, 40, 42, 41, the speed of memory.
const prefetchAhead512 = 16384

var prefetchAgain512 = []int{8192, 3072}

// packSize returns the bytes of a group.
func (f *format512) packSize() int { return packMeta + f.phases()*packPhase }

// phases: runs of 16 make 8 sums twice, those of 32 once.
func (f *format512) phases() int { return 32 / f.run }

// parts returns how many vectors of weights an accumulator takes.
func (f *format512) parts() int { return f.run / 16 }

type format512 struct {
	name  string
	group int // bytes of a group of 256
	run   int
	tails bool

	offset int  // sign with which min joins the products: −1 subtracts, +1 adds, 0 has none
	zero   int  // what is subtracted from every stored integer; below 128
	signed bool // weights are signed bytes

	// run8 returns which run of the phase, 0 to 7, accumulator i has in lane j.
	run8 func(j, i int) int
	// consts loads what sums and scales keep in registers.
	consts func(r *rows512)
	// weights yields those of a row's accumulators in phase h: one vector for runs of 16, two for 32.
	weights func(r *rows512, row, h int, yield func(i int, w ...VecVirtual))
	// scales returns the scales and minima of phase h, in the order of the sums.
	scales func(r *rows512, h int) (scale, minimum VecVirtual)
}

func straight(j, i int) int { return 4*i + j }

// rows512 is where a pair of rows stands.
type rows512 struct {
	f      *format512
	w      [2]GPVirtual // the groups' first bytes
	pack   GPVirtual
	acc    [4]VecVirtual // 2·row + i
	sums   VecVirtual
	mask   Register // of the sums that count; nil if all do
	k      map[string]VecVirtual
	end    Register     // mask of the dwords that end a group of blocks
	second Register     // mask of the sums of the second row, for words or dwords
	bytes  VecVirtual   // what scales keep from phase to phase
	d      []VecVirtual // factors of scales and minima
}

func (r *rows512) at(row, disp int) Mem { return mem(r.w[row], disp) }

// rows emits the product of rows of stored weights with one row of packed activations.
func (f *format512) rows() {
	begin("intRows"+f.name+"AVX512",
		"func(w *byte, rowBytes int, rows int, groups int, mask int, tail *byte, pack *byte, out *float32)",
		"writes an output for each of rows ≥ 1 rows of groups whole groups.\n"+
			"If mask is not 0 each row ends with a part of a group: mask has ones for the sums that it has. What follows\n"+
			"the row in memory is read too, unless tail points to copies of the part for two rows. Only formats of blocks of 32\n"+
			"look at mask.")
	w, rows, out, step := param("w"), param("rows"), param("out"), param("rowBytes")
	r := &rows512{f: f, w: [2]GPVirtual{GP64(), GP64()}, pack: GP64(), sums: ZMM(), k: map[string]VecVirtual{}}
	ones, m := GP32(), K()
	MOVL(U32(0xcccccccc), ones)
	KMOVD(ones, m)
	r.second = m
	f.consts(r)
	n, fetch := GP64(), GP64()
	Label("row")
	VPXORD(r.sums, r.sums, r.sums)
	MOVQ(w, r.w[0])
	LEAQ(Mem{Base: w, Index: step, Scale: 1}, r.w[1])
	CMPQ(rows, U8(1))
	CMOVQEQ(w, r.w[1])
	LEAQ(mem(w, prefetchAhead512), fetch)
	Load(Param("pack"), r.pack)
	Load(Param("groups"), n)
	if f.tails {
		TESTQ(n, n)
		JZ(LabelRef("tail"))
	}
	Label("group")
	for i := 0; i < 2*f.group; i += 64 {
		PREFETCHT0(mem(fetch, i))
		for _, ahead := range prefetchAgain512 {
			PREFETCHT0(mem(fetch, i+ahead-prefetchAhead512))
		}
	}
	ADDQ(U32(uint32(2*f.group)), fetch)
	r.addGroup()
	ADDQ(U32(uint32(f.group)), r.w[0])
	ADDQ(U32(uint32(f.group)), r.w[1])
	ADDQ(U32(uint32(f.packSize())), r.pack)
	DECQ(n)
	JNZ(LabelRef("group"))
	if f.tails {
		Label("tail")
		r.addTail()
		Label("end")
	}
	r.storeTotals(rows, out)
	LEAQ(Mem{Base: w, Index: step, Scale: 2}, w)
	ADDQ(U8(8), out)
	SUBQ(U8(2), rows)
	JG(LabelRef("row"))
	end()
}

// addTail adds the part of a group that ends a row.
func (r *rows512) addTail() {
	bits, tail := GP32(), GP64()
	Load(Param("mask"), bits.As64())
	TESTL(bits, bits)
	JZ(LabelRef("end"))
	m := K()
	KMOVW(bits, m)
	r.mask = m
	Load(Param("tail"), tail)
	TESTQ(tail, tail)
	JZ(LabelRef("between"))
	MOVQ(tail, r.w[0])
	LEAQ(mem(tail, r.f.group), r.w[1])
	Label("between")
	r.addGroup()
	r.mask = nil
}

func (r *rows512) addGroup() {
	f := r.f
	for h := range f.phases() {
		r.multiply(h)
		scale, minimum := f.scales(r, h)
		v := r.reduce()
		meta := packMeta + h*packPhase
		if f.zero != 0 || f.signed {
			VPSUBD(mem(r.pack, meta+64), v, v)
		}
		VCVTDQ2PS(v, v)
		if r.mask != nil {
			VMOVAPS_Z(scale, r.mask, scale)
		}
		VMULPS(mem(r.pack, meta), scale, scale)
		VFMADD231PS(scale, v, r.sums)
		if f.offset == 0 {
			continue
		}
		if r.mask != nil {
			VMOVAPS_Z(minimum, r.mask, minimum)
		}
		if f.offset < 0 {
			VFNMADD231PS(mem(r.pack, meta+64), minimum, r.sums)
		} else {
			VFMADD231PS(mem(r.pack, meta+64), minimum, r.sums)
		}
	}
}

// multiply sums the products of both rows in phase h. The chains of the four accumulators are interleaved:
// their latency, not the number of operations, would set the pace.
func (r *rows512) multiply(h int) {
	var w [4][]VecVirtual
	for row := range 2 {
		r.f.weights(r, row, h, func(i int, ws ...VecVirtual) { w[2*row+i] = ws })
	}
	act := func(i, q, low int) VecVirtual {
		z := ZMM()
		VMOVDQU32(mem(r.pack, ((h*2+i)*r.f.parts()+q)*128+64*low), z)
		return z
	}
	for k := range r.acc {
		r.acc[k] = ZMM()
		VPXORD(r.acc[k], r.acc[k], r.acc[k])
	}
	for q := range r.f.parts() {
		x := [2]VecVirtual{act(0, q, 0), act(1, q, 0)}
		for k, ws := range w {
			u := ws[q]
			if r.f.signed {
				u = ZMM()
				VPXORD(r.k["flip"], ws[q], u)
			}
			VPDPBUSD(x[k%2], u, r.acc[k])
		}
	}
	for _, acc := range r.acc {
		VPSLLD(U8(8), acc, acc)
	}
	for q := range r.f.parts() {
		x := [2]VecVirtual{act(0, q, 1), act(1, q, 1)}
		for k, ws := range w {
			VPDPBUSD(ws[q], x[k%2], r.acc[k])
		}
	}
}

// hadd512 adds neighbours.
func hadd512(a, b VecVirtual) VecVirtual {
	y, z := ZMM(), ZMM()
	VSHUFPS(U8(0x88), b, a, y)
	VSHUFPS(U8(0xdd), b, a, z)
	VPADDD(z, y, y)
	return y
}

func (r *rows512) reduce() VecVirtual {
	return hadd512(hadd512(r.acc[0], r.acc[1]), hadd512(r.acc[2], r.acc[3]))
}

// storeTotals writes the totals of both rows, or of the first if it is the last.
func (r *rows512) storeTotals(rows, out Register) {
	order := make([]uint32, 16) // where sum i%8 of row i/8 lies
	for k := range order {
		j, row, i := k/4, k/2%2, k%2
		order[row*8+r.f.run8(j, i)] = uint32(k)
	}
	s, t := ZMM(), ZMM()
	VMOVDQU32(constant512("order"+r.f.name, order...), t)
	VPERMPS(r.sums, t, s)
	VSHUFF32X4(U8(0xb1), s, s, t)
	VADDPS(t, s, s)
	VSHUFPS(U8(0x4e), s, s, t)
	VADDPS(t, s, s)
	VSHUFPS(U8(0xb1), s, s, t)
	VADDPS(t, s, s)
	VMOVSS(s.AsX(), mem(out, 0))
	CMPQ(rows, U8(1))
	JEQ(LabelRef("odd"))
	x := XMM()
	VEXTRACTF32X4(U8(2), s, x)
	VMOVSS(x, mem(out, 4))
	Label("odd")
}

// constants of 16 words of 32 bits.
func constant512(name string, words ...uint32) Mem {
	if m, ok := constants[name]; ok {
		return m
	}
	m := GLOBL("matmul512_"+name, RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(words[i%len(words)]))
	}
	constants[name] = m
	return m
}

// keep loads a constant into a register for the whole loop.
func (r *rows512) keep(key string, m Mem) {
	z := ZMM()
	VMOVDQU32(m, z)
	r.k[key] = z
}

func and512(a, b VecVirtual) VecVirtual {
	z := ZMM()
	VPANDD(a, b, z)
	return z
}

func shifted512(y VecVirtual, n int) VecVirtual {
	if n == 0 {
		return y
	}
	z := ZMM()
	VPSRLW(U8(uint8(n)), y, z)
	return z
}

// bytes512 makes 16 dwords of 64 bytes.
func bytes512(at func(i int) byte) []uint32 {
	words := make([]uint32, 16)
	for i := range 64 {
		words[i/4] |= uint32(at(i)) << (8 * (i % 4))
	}
	return words
}

// words512 makes 16 dwords of 32 words.
func words512(at func(i int) int) []uint32 {
	words := make([]uint32, 16)
	for i := range 32 {
		words[i/2] |= uint32(at(i)) << (16 * (i % 2))
	}
	return words
}
