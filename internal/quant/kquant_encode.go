package quant

// affineBlock is a super-block of Q2_K, Q4_K or Q5_K: x ≈ d·scale·q − dmin·min.
type affineBlock struct {
	d, dmin     float32 // as halves hold them
	scale, mins [16]uint8
	q           [kk]uint8
}

// fit chooses scales for sub-blocks of n values with levels 0…top and scales 0…most.
func (a *affineBlock) fit(x *[kk]float32, n, top, mostScale int) {
	var s, m [16]float32
	subs := kk / n
	for i := range subs {
		s[i], m[i] = fitAffine(x[i*n:(i+1)*n], top)
	}
	d, dmin := most(s[:])/float32(mostScale), most(m[:])/float32(mostScale)
	invD, invMin := inverse(d), inverse(dmin)
	a.d, a.dmin = roundHalf(d), roundHalf(dmin)
	for i := range subs {
		a.scale[i] = uint8(nearest(float32(s[i]*invD), 0, mostScale))
		a.mins[i] = uint8(nearest(float32(m[i]*invMin), 0, mostScale))
		inv := inverse(a.d * float32(a.scale[i]))
		offset := float32(a.dmin * float32(a.mins[i]))
		for j, v := range x[i*n : (i+1)*n] {
			a.q[i*n+j] = uint8(nearest(float32((v+offset)*inv), 0, top))
		}
	}
}

func encodeQ2_K(dst []byte, src []float32) {
	var a affineBlock
	for ; len(src) >= kk; src, dst = src[kk:], dst[84:] {
		b := (*[84]byte)(dst)
		a.fit((*[kk]float32)(src), 16, 3, 15)
		for i := range 16 {
			b[i] = a.scale[i] | a.mins[i]<<4
		}
		for i := range 64 {
			q := a.q[i/32*128+i%32:]
			b[16+i] = q[0] | q[32]<<2 | q[64]<<4 | q[96]<<6
		}
		putHalf(b[80:], a.d)
		putHalf(b[82:], a.dmin)
	}
}

// putScalesK packs 8 scales and 8 minima of 6 bits; scaleMinK reads them.
func (a *affineBlock) putScalesK(p *[12]byte) {
	for i := range 4 {
		s, m := a.scale[i+4], a.mins[i+4]
		p[i] = a.scale[i] | s>>4<<6
		p[i+4] = a.mins[i] | m>>4<<6
		p[i+8] = s&15 | m&15<<4
	}
}

func encodeQ4_K(dst []byte, src []float32) {
	var a affineBlock
	for ; len(src) >= kk; src, dst = src[kk:], dst[144:] {
		b := (*[144]byte)(dst)
		a.fit((*[kk]float32)(src), 32, 15, 63)
		putHalf(b[:], a.d)
		putHalf(b[2:], a.dmin)
		a.putScalesK((*[12]byte)(b[4:]))
		for i := range 128 {
			q := a.q[i/32*64+i%32:]
			b[16+i] = q[0] | q[32]<<4
		}
	}
}

func encodeQ5_K(dst []byte, src []float32) {
	var a affineBlock
	for ; len(src) >= kk; src, dst = src[kk:], dst[176:] {
		b := (*[176]byte)(dst)
		a.fit((*[kk]float32)(src), 32, 31, 63)
		putHalf(b[:], a.d)
		putHalf(b[2:], a.dmin)
		a.putScalesK((*[12]byte)(b[4:]))
		for i := range 32 {
			var high uint8
			for sub := range 8 {
				high |= a.q[32*sub+i] >> 4 << sub
			}
			b[16+i] = high
		}
		for i := range 128 {
			q := a.q[i/32*64+i%32:]
			b[48+i] = q[0]&15 | q[32]&15<<4
		}
	}
}

// signedBlock is a super-block of Q3_K, Q6_K or IQ4_XS: x ≈ d·scale·q.
type signedBlock struct {
	d     float32 // as a half holds it
	scale [16]int
}

// set chooses d and the integer scales low…−low−1 for the wanted scales.
func (s *signedBlock) set(want []float32, low int) {
	p := peak(want)
	d := p / float32(low)
	inv := inverse(d)
	s.d = roundHalf(d)
	for i, w := range want {
		s.scale[i] = nearest(float32(w*inv), low, -low-1)
	}
}

// inverse returns 1 over the scale of sub-block i.
func (s *signedBlock) inverse(i int) float32 { return inverse(s.d * float32(s.scale[i])) }

var (
	factorsQ3 = []float32{1, 0.9, 1.1, 1.25, 1.4}
	factorsQ6 = []float32{1, 0.98, 1.02}
)

func encodeQ3_K(dst []byte, src []float32) {
	var s signedBlock
	var want [16]float32
	var q [kk]uint8
	for ; len(src) >= kk; src, dst = src[kk:], dst[110:] {
		x, b := (*[kk]float32)(src), (*[110]byte)(dst)
		for i := range want {
			want[i] = fitLevels(x[16*i:16*i+16], -4, 3, factorsQ3)
		}
		s.set(want[:], -32)
		for i, v := range x {
			q[i] = uint8(nearest(float32(v*s.inverse(i/16)), -4, 3) + 4)
		}
		clear(b[:])
		for i, v := range q {
			b[i%32] |= v >> 2 << (i / 32)
			b[32+i/128*32+i%32] |= v & 3 << (i % 128 / 32 * 2)
		}
		for i := range 16 {
			v := uint8(s.scale[i] + 32)
			b[96+i%8] |= v & 15 << (i / 8 * 4)
			b[104+i%4] |= v >> 4 << (i / 4 * 2)
		}
		putHalf(b[108:], s.d)
	}
}

func encodeQ6_K(dst []byte, src []float32) {
	var s signedBlock
	var want [16]float32
	for ; len(src) >= kk; src, dst = src[kk:], dst[210:] {
		x, b := (*[kk]float32)(src), (*[210]byte)(dst)
		for i := range want {
			want[i] = fitLevels(x[16*i:16*i+16], -32, 31, factorsQ6)
		}
		s.set(want[:], -128)
		clear(b[:])
		for sub := range 16 {
			inv := s.inverse(sub)
			b[192+sub] = uint8(int8(s.scale[sub]))
			for i := 16 * sub; i < 16*sub+16; i++ {
				v := uint8(nearest(float32(x[i]*inv), -32, 31) + 32)
				quarter := i % 128 / 32
				b[i/128*64+quarter%2*32+i%32] |= v & 15 << (quarter / 2 * 4)
				b[128+i/128*32+i%32] |= v >> 4 << (quarter * 2)
			}
		}
		putHalf(b[208:], s.d)
	}
}
