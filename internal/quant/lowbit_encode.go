package quant

import "math"

// encodeQ1_0 keeps signs; the best scale for them is the mean magnitude.
func encodeQ1_0(dst []byte, src []float32) {
	for ; len(src) >= 128; src, dst = src[128:], dst[18:] {
		x, b := (*[128]float32)(src), (*[18]byte)(dst)
		clear(b[:])
		var sum float32
		for i, v := range x {
			sum += abs(v)
			if !math.Signbit(float64(v)) {
				b[2+i/8] |= 1 << (i % 8)
			}
		}
		putHalf(b[:], sum/128)
	}
}

// factorsTwoBit cut the peaks more and more: with three or four levels that lowers the error.
var factorsTwoBit = []float32{-2, -1.4, 1, 1.4, 2, 2.6}

func encodeQ2_0(dst []byte, src []float32) {
	for ; len(src) >= 64; src, dst = src[64:], dst[18:] {
		x, b := (*[64]float32)(src), (*[18]byte)(dst)
		d := fitLevels(x[:], -1, 2, factorsTwoBit)
		inv := inverse(roundHalf(d))
		clear(b[2:])
		putHalf(b[:], d)
		for i, v := range x {
			b[2+i/4] |= uint8(nearest(float32(v*inv), -1, 2)+1) << (i % 4 * 2)
		}
	}
}

// ternary rounds 256 values to −1, 0, 1 times the largest magnitude, as the reference does for
// models that are ternary already, and returns the levels 0, 1, 2 and the scale.
func ternary(x *[kk]float32) (q [kk]uint8, d float32) {
	d = abs(peak(x[:]))
	inv := inverse(d)
	for i, v := range x {
		q[i] = uint8(round(float32(v*inv)) + 1)
	}
	return q, d
}

func encodeTQ1_0(dst []byte, src []float32) {
	// digits packs n trits, the first the most significant of five, scaled to 256/243.
	digits := func(q []uint8, n, step int) byte {
		v := 0
		for i := range 5 {
			v *= 3
			if i < n {
				v += int(q[i*step])
			}
		}
		return byte((v*256 + 242) / 243)
	}
	for ; len(src) >= kk; src, dst = src[kk:], dst[54:] {
		b := (*[54]byte)(dst)
		q, d := ternary((*[kk]float32)(src))
		for i := range 32 {
			b[i] = digits(q[i:], 5, 32)
		}
		for i := range 16 {
			b[32+i] = digits(q[160+i:], 5, 16)
		}
		for i := range 4 {
			b[48+i] = digits(q[240+i:], 4, 4)
		}
		putHalf(b[52:], d)
	}
}

func encodeTQ2_0(dst []byte, src []float32) {
	for ; len(src) >= kk; src, dst = src[kk:], dst[66:] {
		b := (*[66]byte)(dst)
		q, d := ternary((*[kk]float32)(src))
		for i := range 64 {
			v := q[i/32*128+i%32:]
			b[i] = v[0] | v[32]<<2 | v[64]<<4 | v[96]<<6
		}
		putHalf(b[64:], d)
	}
}

// nearestE2M1 returns the four bits for x in units of half the scale; ties go to the smaller
// magnitude, and what rounds to 0 has no sign.
func nearestE2M1(x float32) uint8 {
	var q uint8
	a := abs(x)
	for _, border := range [7]float32{0.5, 1.5, 2.5, 3.5, 5, 7, 10} {
		if a > border {
			q++
		}
	}
	if x < 0 && q > 0 {
		q |= 8
	}
	return q
}

func encodeMXFP4(dst []byte, src []float32) {
	for ; len(src) >= qk; src, dst = src[qk:], dst[17:] {
		x, b := (*[qk]float32)(src), (*[17]byte)(dst)
		// The exponent of the peak, less 2: the largest value, 6, has exponent 2.
		exp := int(math.Float32bits(peak(x[:])) >> 23 & 255)
		b[0] = uint8(max(exp-2, 0))
		inv := 1 / HalfE8M0(b[0])
		for i := range b[1:] {
			b[1+i] = nearestE2M1(x[i]*inv) | nearestE2M1(x[i+16]*inv)<<4
		}
	}
}

// codeUE4M3 returns the scale code whose half value is nearest to x from below, at most 0x7e.
func codeUE4M3(x float32) uint8 {
	low, high := 0, 0x7e
	for low < high {
		mid := (low + high + 1) / 2
		if HalfUE4M3(uint8(mid)) <= x {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return uint8(low)
}

// encodeNVFP4 tries the codes around the one that puts the peak at the largest value.
func encodeNVFP4(dst []byte, src []float32) {
	for ; len(src) >= 64; src, dst = src[64:], dst[36:] {
		b := (*[36]byte)(dst)
		for run := range 4 {
			x := (*[16]float32)(src[16*run:])
			code := codeUE4M3(abs(peak(x[:])) / 12)
			best, bestLoss := code, float32(math.Inf(1))
			for c := max(int(code)-2, 0); c <= min(int(code)+1, 0x7e); c++ {
				if l := lossE2M1(x, HalfUE4M3(uint8(c))); l < bestLoss {
					best, bestLoss = uint8(c), l
				}
			}
			b[run] = best
			inv := inverse(HalfUE4M3(best))
			for i := range 8 {
				b[4+8*run+i] = nearestE2M1(x[i]*inv) | nearestE2M1(x[i+8]*inv)<<4
			}
		}
	}
}

// lossE2M1 is the squared error of 16 values at a scale.
func lossE2M1(x *[16]float32, d float32) (loss float32) {
	inv := inverse(d)
	for _, v := range x {
		e := v - float32(d*e2m1[nearestE2M1(v*inv)])
		loss += float32(e * e)
	}
	return loss
}
