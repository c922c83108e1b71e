package quant

import "encoding/binary"

func encodeQ4_0(dst []byte, src []float32) {
	for ; len(src) >= qk; src, dst = src[qk:], dst[18:] {
		x, b := (*[qk]float32)(src), (*[18]byte)(dst)
		d := peak(x[:]) / -8
		inv := inverse(d)
		putHalf(b[:], d)
		for i := range b[2:] {
			low := level(float32(x[i]*inv)+8.5, 15)
			high := level(float32(x[i+16]*inv)+8.5, 15)
			b[2+i] = byte(low | high<<4)
		}
	}
}

func encodeQ4_1(dst []byte, src []float32) {
	for ; len(src) >= qk; src, dst = src[qk:], dst[20:] {
		x, b := (*[qk]float32)(src), (*[20]byte)(dst)
		least, most := extremes(x[:])
		d := (most - least) / 15
		inv := inverse(d)
		putHalf(b[:], d)
		putHalf(b[2:], least)
		for i := range b[4:] {
			low := level(float32((x[i]-least)*inv)+0.5, 15)
			high := level(float32((x[i+16]-least)*inv)+0.5, 15)
			b[4+i] = byte(low | high<<4)
		}
	}
}

// putFive stores 32 levels of five bits: their high bits in four bytes, then nibbles.
func putFive(b *[20]byte, q *[qk]int) {
	var high uint32
	for i, v := range q {
		high |= uint32(v>>4) << i
	}
	binary.LittleEndian.PutUint32(b[:], high)
	for i := range b[4:] {
		b[4+i] = byte(q[i]&15 | q[i+16]&15<<4)
	}
}

func encodeQ5_0(dst []byte, src []float32) {
	var q [qk]int
	for ; len(src) >= qk; src, dst = src[qk:], dst[22:] {
		x, b := (*[qk]float32)(src), (*[22]byte)(dst)
		d := peak(x[:]) / -16
		inv := inverse(d)
		putHalf(b[:], d)
		for i, v := range x {
			q[i] = level(float32(v*inv)+16.5, 31)
		}
		putFive((*[20]byte)(b[2:]), &q)
	}
}

func encodeQ5_1(dst []byte, src []float32) {
	var q [qk]int
	for ; len(src) >= qk; src, dst = src[qk:], dst[24:] {
		x, b := (*[qk]float32)(src), (*[24]byte)(dst)
		least, most := extremes(x[:])
		d := (most - least) / 31
		inv := inverse(d)
		putHalf(b[:], d)
		putHalf(b[2:], least)
		for i, v := range x {
			q[i] = level(float32((v-least)*inv)+0.5, 31)
		}
		putFive((*[20]byte)(b[4:]), &q)
	}
}

func encodeQ8_0(dst []byte, src []float32) {
	for ; len(src) >= qk; src, dst = src[qk:], dst[34:] {
		x, b := (*[qk]float32)(src), (*[34]byte)(dst)
		d := abs(peak(x[:])) / 127
		inv := inverse(d)
		putHalf(b[:], d)
		for i, v := range x {
			b[2+i] = byte(int8(round(float32(v * inv))))
		}
	}
}
