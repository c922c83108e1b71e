package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	tileBytes  = 64 * 4 // one line's scores of a tile
	groupKeys  = 16     // keys that lie in one piece
	sliceBytes = 24     // a slice's header
	nextSlice  = 4 * 24 // to the header of what is read next
	queryBytes = 4 * 32 // eight values of four lines
)

// scores writes the dot products of a block of lines with groups of 16 keys. A vector holds the eight
// running sums of one line and one key, or with AVX-512 of two keys. Lines lie in blocks of four, eight
// values of each in turn.
func scores(s source, lines int) {
	function(named(fmt.Sprintf("attnScores%d%s", lines, s.name)),
		"(dst, q *float32, rows *[]byte, groups, blocks, dim, stride int)",
		fmt.Sprintf("writes the dot products of blocks of lines (%d of 4 used) with groups of 16 keys of dim values.", lines))
	keys := map[bool]map[int]int{false: {4: 2, 1: 8}, true: {4: 8, 1: 16}}[*wide][lines]
	k := &scoreLoop{source: s, lines: lines, keys: keys}
	dst, rows, stride := pointer("dst"), pointer("rows"), pointer("stride")
	k.stride = stride
	if keys > 2 {
		k.stride3 = GP64()
		LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, k.stride3)
	}
	base, passes, blocks, out := GP64(), GP64(), GP64(), GP64()
	k.next = GP64()
	Label("group")
	MOVQ(at(rows, 0), base)
	MOVQ(at(rows, nextSlice), k.next)
	if keys < groupKeys {
		MOVQ(U32(uint32(groupKeys/keys)), passes)
	}
	Label("pass")
	k.q = GP64()
	MOVQ(argument("q"), k.q)
	MOVQ(argument("blocks"), blocks)
	MOVQ(dst, out)
	Label("block")
	k.block(base, out)
	ADDQ(U32(4*tileBytes), out)
	DECQ(blocks)
	JNE(LabelRef("block"))
	for range max(1, keys/8) {
		LEAQ(Mem{Base: base, Index: stride, Scale: uint8(min(keys, 8))}, base)
	}
	ADDQ(Imm(uint64(4*keys)), dst)
	if keys < groupKeys {
		DECQ(passes)
		JNE(LabelRef("pass"))
	}
	ADDQ(Imm(sliceBytes), rows)
	DECQ(argument("groups"))
	JNE(LabelRef("group"))
	done()
}

// scoreLoop is the loop over the dimension for some lines and keys.
type scoreLoop struct {
	source
	lines, keys        int
	stride, stride3, q reg.GPVirtual
	next               reg.GPVirtual   // walks through the rows that are read next
	pointers           []reg.GPVirtual // to every fourth key
}

// key is the address of a key's value.
func (k *scoreLoop) key(i, disp int) Mem {
	m := Mem{Base: k.pointers[i/4], Disp: disp}
	switch i % 4 {
	case 1:
		m.Index, m.Scale = k.stride, 1
	case 2:
		m.Index, m.Scale = k.stride, 2
	case 3:
		m.Index, m.Scale = k.stride3, 1
	}
	return m
}

// vectors is the number of registers of keys: one each, or one for two.
func (k *scoreLoop) vectors() int {
	if *wide {
		return k.keys / 2
	}
	return k.keys
}

func (k *scoreLoop) scale(i int) reg.VecVirtual {
	if *wide {
		return scalePair(k.key(2*i, 0), k.key(2*i+1, 0))
	}
	return scale(k.key(i, 0))
}

func (k *scoreLoop) loadKey(i, at int, scale reg.VecVirtual) reg.VecVirtual {
	if *wide {
		return k.loadPair(k.key(2*i, k.offset(at)), k.key(2*i+1, k.offset(at)), scale)
	}
	return k.load(k.key(i, k.offset(at)), scale)
}

func (k *scoreLoop) block(base, out reg.GPVirtual) {
	k.pointers = nil
	for i := 0; i < k.keys; i += 4 {
		p := GP64()
		if i == 0 {
			MOVQ(base, p)
		} else {
			LEAQ(Mem{Base: k.pointers[i/4-1], Index: k.stride, Scale: 4}, p)
		}
		k.pointers = append(k.pointers, p)
	}
	left := GP64()
	MOVQ(argument("dim"), left)
	acc := make([][]reg.VecVirtual, k.lines)
	for l := range acc {
		for range k.vectors() {
			v := vec()
			zero(v)
			acc[l] = append(acc[l], v)
		}
	}
	Label("dim")
	k.step(acc)
	k.prefetch()
	advance(uint64(k.stepBytes()), k.pointers...)
	ADDQ(U32(uint32(queryBytes*k.source.step/8)), k.q)
	SUBQ(Imm(uint64(k.source.step)), left)
	JG(LabelRef("dim"))
	k.store(acc, out)
}

// prefetch asks for as many bytes as a step over all keys reads, rounded up to lines: a group has the
// same number of steps.
func (k *scoreLoop) prefetch() {
	if k.source == tile {
		return
	}
	lines := (k.keys*k.stepBytes() + 63) / 64
	for i := range lines {
		PREFETCHT0(at(k.next, 64*i))
	}
	ADDQ(U32(uint32(64*lines)), k.next)
}

// step multiplies the next values of all lines and keys.
func (k *scoreLoop) step(acc [][]reg.VecVirtual) {
	scales := make([]reg.VecVirtual, k.vectors())
	hoist := k.q8() && (*wide || k.lines > 1) // else there are too few registers
	for i := range scales {
		if hoist {
			scales[i] = k.scale(i)
		}
	}
	for at8 := 0; at8 < k.source.step; at8 += 8 {
		var q []reg.VecVirtual
		for l := range acc {
			v := vec()
			m := at(k.q, queryBytes*at8/8+32*l)
			if *wide {
				VBROADCASTF32X8(m, v)
			} else {
				VMOVUPS(m, v)
			}
			q = append(q, v)
		}
		for i := range scales {
			if k.q8() && !hoist {
				scales[i] = k.scale(i)
			}
			v := k.loadKey(i, at8, scales[i])
			for l := range acc {
				VFMADD231PS(v, q[l], acc[l][i])
			}
		}
	}
}

// store writes the totals.
func (k *scoreLoop) store(acc [][]reg.VecVirtual, out reg.GPVirtual) {
	switch {
	case !*wide && k.lines == 1:
		VMOVUPS(totals([8]reg.VecVirtual(acc[0])), at(out, 0))
	case !*wide:
		var all [8]reg.VecVirtual
		for i := range all {
			all[i] = acc[i/2][i%2]
		}
		y, hi := totals(all), XMM()
		VEXTRACTF128(Imm(1), y, hi)
		VMOVLPS(y.AsX(), at(out, 0))
		VMOVHPS(y.AsX(), at(out, tileBytes))
		VMOVLPS(hi, at(out, 2*tileBytes))
		VMOVHPS(hi, at(out, 3*tileBytes))
	case k.lines == 1:
		VMOVUPS(wideTotals(acc[0][:4], acc[0][4:]), at(out, 0))
	default:
		for l := 0; l < 4; l += 2 {
			z, hi := wideTotals(acc[l], acc[l+1]), YMM()
			VEXTRACTF32X8(Imm(1), z, hi)
			VMOVUPS(z.AsY(), at(out, l*tileBytes))
			VMOVUPS(hi, at(out, (l+1)*tileBytes))
		}
	}
}

// wideTotals adds the running sums of eight registers of two keys each: lanes 0 to 7 are the totals of
// a's keys, the others of b's.
func wideTotals(a, b []reg.VecVirtual) reg.VecVirtual {
	var pairs []reg.VecVirtual // lane i: (s0+s4)+(s2+s6), (s1+s5)+(s3+s7) of key i, then of key 4+i
	for _, x := range [][]reg.VecVirtual{a, b} {
		var fours []reg.VecVirtual // lane i: s0+s4, s1+s5, s2+s6, s3+s7 of key i
		for i := 0; i < 4; i += 2 {
			t, u := ZMM(), ZMM()
			VSHUFF32X4(Imm(0x88), x[i+1], x[i], t)
			VSHUFF32X4(Imm(0xdd), x[i+1], x[i], u)
			VADDPS(u, t, t)
			fours = append(fours, t)
		}
		t, u := ZMM(), ZMM()
		VUNPCKLPD(fours[1], fours[0], t)
		VUNPCKHPD(fours[1], fours[0], u)
		VADDPS(u, t, t)
		pairs = append(pairs, t)
	}
	t, u, order := ZMM(), ZMM(), ZMM()
	VSHUFPS(Imm(0x88), pairs[1], pairs[0], t)
	VSHUFPS(Imm(0xdd), pairs[1], pairs[0], u)
	VADDPS(u, t, t)
	VMOVUPS(words["order"], order)
	VPERMPS(t, order, t)
	return t
}

func plain(n int) string { return fmt.Sprint(n) }
