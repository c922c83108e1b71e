package quant

import (
	"encoding/binary"
	"math"
)

// delta1 is by how much IQ1 shifts the points of a group.
var delta1 = [2]float32{0.125, -0.125}

// factorsIQ1 are trial scales in units of the values' root mean square.
var factorsIQ1 = [...]float32{0.9, 1.1, 1.3, 1.6}

// group1 is eight values or more that share delta and scale.
type group1 struct {
	x     []float32
	sums  least
	minus uint8 // 1: delta is negative
}

// try fits the group at an inverse scale, with the delta that suits it better.
func (g *group1) try(book *codebook, inv float32) {
	for minus, delta := range delta1 {
		var sums least
		for at := 0; at < len(g.x); at += 8 {
			v := g.x[at : at+8]
			for i, q := range book.point(book.find(v, inv, -delta)) {
				sums.add(v[i], q+delta)
			}
		}
		if minus == 0 || g.better(sums, inv) {
			g.sums, g.minus = sums, uint8(minus)
		}
	}
}

// better reports whether other sums have the smaller error at an inverse scale.
func (g *group1) better(other least, inv float32) bool {
	loss := func(l least) float32 { return float32(l.qq/inv) - float32(2*l.xq) }
	return loss(other) < loss(g.sums)
}

// fit1 returns the scale for a run whose groups choose their delta apart.
func fit1(book *codebook, x []float32, group int) float32 {
	var square float32
	for _, v := range x {
		square += float32(v * v)
	}
	rms := float32(math.Sqrt(float64(square / float32(len(x)))))
	var best least
	for _, f := range factorsIQ1 {
		inv := inverse(rms * f)
		if inv == 0 {
			return 0
		}
		var all least
		for at := 0; at < len(x); at += group {
			g := group1{x: x[at : at+group]}
			g.try(book, inv)
			all.xq, all.qq = all.xq+g.sums.xq, all.qq+g.sums.qq
		}
		if all.xq > 0 && all.gain() > best.gain() {
			best = all
		}
	}
	return best.scale()
}

// scales1 chooses d and odd multiples 2s + 1 of it, s in 0…7, for the wanted scales.
func scales1(want []float32, s []uint8) (d float32) {
	d = roundHalf(most(want) / 15)
	inv := inverse(d)
	for i, w := range want {
		s[i] = uint8(nearest(float32((float32(w*inv)-1)/2), 0, 7))
	}
	return d
}

func encodeIQ1S(dst []byte, src []float32) {
	book := bookIQ1()
	var want [8]float32
	var s [8]uint8
	for ; len(src) >= kk; src, dst = src[kk:], dst[50:] {
		b := (*[50]byte)(dst)
		for run := range want {
			want[run] = fit1(book, src[32*run:32*run+32], 32)
		}
		d := scales1(want[:], s[:])
		putHalf(b[:], d)
		for run := range want {
			x := src[32*run : 32*run+32]
			g := group1{x: x}
			inv := inverse(d * float32(2*s[run]+1))
			g.try(book, inv)
			word := uint16(s[run])<<12 | uint16(g.minus)<<15
			for i := range 4 {
				p := book.find(x[8*i:], inv, -delta1[g.minus])
				b[2+4*run+i] = uint8(p)
				word |= p >> 8 << (3 * i)
			}
			binary.LittleEndian.PutUint16(b[34+2*run:], word)
		}
	}
}

func encodeIQ1M(dst []byte, src []float32) {
	book := bookIQ1()
	var want [16]float32
	var s [16]uint8
	for ; len(src) >= kk; src, dst = src[kk:], dst[56:] {
		b := (*[56]byte)(dst)
		for run := range want {
			want[run] = fit1(book, src[16*run:16*run+16], 8)
		}
		d := scales1(want[:], s[:])
		clear(b[32:])
		for i := range 32 {
			g := group1{x: src[8*i : 8*i+8]}
			inv := inverse(d * float32(2*s[i/2]+1))
			g.try(book, inv)
			p := book.find(g.x, inv, -delta1[g.minus])
			b[i] = uint8(p)
			b[32+i/2] |= uint8(p>>8|uint16(g.minus)<<3) << (i % 2 * 4)
		}
		h := F32ToF16(d)
		for i := range 4 {
			word := h >> (4 * i) & 15 << 12
			for j := range 4 {
				word |= uint16(s[4*i+j]) << (3 * j)
			}
			binary.LittleEndian.PutUint16(b[48+2*i:], word)
		}
	}
}
