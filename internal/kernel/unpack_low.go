package kernel

import "github.com/spillway/spillway/internal/quant"

// The ternary and binary formats and those of micro-scaling. Layouts are those of internal/quant.

// sameScale gives every run of 32 from lo to hi one scale.
func (g *rawGroup) sameScale(lo, hi int, d float32) {
	for r := lo; r < hi; r++ {
		g.scale[r] = d
	}
}

// trit returns digit n, from the most significant, of a byte of TQ1_0.
func trit(b uint8, n int) int16 {
	power := [5]uint8{1, 3, 9, 27, 81}[n]
	return int16(uint16(b*power)*3>>8) - 1
}

func unpackTQ1_0(g *rawGroup, b []byte) {
	g.sameScale(0, 8, f16At(b[52:]))
	for n := range 5 {
		for i := range 32 {
			g.q[32*n+i] = trit(b[i], n)
		}
		for i := range 16 {
			g.q[160+16*n+i] = trit(b[32+i], n)
		}
	}
	for n := range 4 {
		for i := range 4 {
			g.q[240+4*n+i] = trit(b[48+i], n)
		}
	}
}

func unpackTQ2_0(g *rawGroup, b []byte) {
	g.sameScale(0, 8, f16At(b[64:]))
	twoBits(&g.q, b[:64])
	for k := range g.q {
		g.q[k]--
	}
}

// unpackQ1_0 takes up to two blocks of 128 values.
func unpackQ1_0(g *rawGroup, src []byte) {
	for n := range len(src) / 18 {
		b, q := src[18*n:18*n+18], g.q[128*n:128*n+128]
		g.sameScale(4*n, 4*n+4, f16At(b))
		for k := range q {
			q[k] = int16(b[2+k/8]>>(k%8)&1)*2 - 1
		}
	}
}

// unpackQ2_0 takes up to four blocks of 64 values.
func unpackQ2_0(g *rawGroup, src []byte) {
	for n := range len(src) / 18 {
		b, q := src[18*n:18*n+18], g.q[64*n:64*n+64]
		g.sameScale(2*n, 2*n+2, f16At(b))
		for k := range q {
			q[k] = int16(b[2+k/4]>>(k%4*2)&3) - 1
		}
	}
}

// e2m1 are the doubled values of four bits in the formats of micro-scaling.
var e2m1 = [16]int16{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

func unpackMXFP4(q []int16, b []byte) (scale, minimum float32) {
	nibbles(q, b[1:], 0)
	for i, v := range q {
		q[i] = e2m1[v]
	}
	return quant.HalfE8M0(b[0]), 0
}

// unpackNVFP4 takes up to four blocks of 64 values.
func unpackNVFP4(g *rawGroup, src []byte) {
	for r := range len(src) / 36 * 4 {
		b := src[r/4*36:]
		g.scale[r] = quant.HalfUE4M3(b[r%4])
		for i, v := range b[4+8*(r%4):][:8] {
			g.q[16*r+i] = e2m1[v&15]
			g.q[16*r+i+8] = e2m1[v>>4]
		}
	}
}
