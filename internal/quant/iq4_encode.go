package quant

import "encoding/binary"

// iq4Index maps a value that was scaled to −127…127, plus 127, to the nearest entry of the code
// book.
var iq4Index = func() (t [255]uint8) {
	for i := range t {
		v := float32(i - 127)
		for j, level := range iq4Values {
			if abs(level-v) < abs(iq4Values[t[i]]-v) {
				t[i] = uint8(j)
			}
		}
	}
	return t
}()

func iq4Nearest(x float32) uint8 { return iq4Index[nearest(x, -127, 127)+127] }

// factorsIQ4 place the peak at −127 times the factor; negative ones put it on the other side.
var factorsIQ4 = [...]float32{1, 0.95, 1.05, -0.89, -0.84, -0.95}

// fitIQ4 returns the scale of 32 values.
func fitIQ4(x []float32) float32 {
	inv := -127 * inverse(peak(x))
	var best least
	for _, f := range factorsIQ4 {
		try := inv * f
		var fit least
		for _, v := range x {
			fit.add(v, iq4Values[iq4Nearest(float32(v*try))])
		}
		if fit.gain() > best.gain() {
			best = fit
		}
	}
	return best.scale()
}

// putIQ4 stores 32 values at a scale whose inverse is given.
func putIQ4(b *[16]byte, x *[32]float32, inv float32) {
	for i := range b {
		b[i] = iq4Nearest(float32(x[i]*inv)) | iq4Nearest(float32(x[i+16]*inv))<<4
	}
}

func encodeIQ4NL(dst []byte, src []float32) {
	for ; len(src) >= qk; src, dst = src[qk:], dst[18:] {
		x, b := (*[qk]float32)(src), (*[18]byte)(dst)
		d := fitIQ4(x[:])
		putHalf(b[:], d)
		putIQ4((*[16]byte)(b[2:]), x, inverse(roundHalf(d)))
	}
}

func encodeIQ4XS(dst []byte, src []float32) {
	var s signedBlock
	var want [8]float32
	for ; len(src) >= kk; src, dst = src[kk:], dst[136:] {
		b := (*[136]byte)(dst)
		for i := range want {
			want[i] = fitIQ4(src[32*i : 32*i+32])
		}
		s.set(want[:], -32)
		putHalf(b[:], s.d)
		clear(b[2:8])
		var high uint16
		for i := range want {
			v := s.scale[i] + 32
			high |= uint16(v>>4) << (2 * i)
			b[4+i/2] |= uint8(v&15) << (i % 2 * 4)
			putIQ4((*[16]byte)(b[8+16*i:]), (*[32]float32)(src[32*i:]), s.inverse(i))
		}
		binary.LittleEndian.PutUint16(b[2:], high)
	}
}
