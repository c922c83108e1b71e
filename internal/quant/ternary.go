package quant

// The ternary formats of BitNet models: −1, 0, 1 times one scale for 256 values (ggml-quants.h).

var powersOf3 = [5]uint8{1, 3, 9, 27, 81}

// trit returns digit n, from the most significant, of five base-3 digits that were scaled to
// 256/243.
func trit(b uint8, n int) float32 { return float32(int(uint16(b*powersOf3[n])*3>>8) - 1) }

// decodeTQ1_0: 48 bytes of five digits each, 4 bytes of four, d. Digit n of bytes 0…31 makes values
// 32n…, of bytes 32…47 values 160 + 16n…, of the last four 240 + 4n….
func decodeTQ1_0(dst []float32, src []byte) {
	for ; len(dst) >= kk; dst, src = dst[kk:], src[54:] {
		b, y := (*[54]byte)(src), (*[kk]float32)(dst)
		d := half(b[52:])
		for n := range 5 {
			for i := range 32 {
				y[32*n+i] = d * trit(b[i], n)
			}
			for i := range 16 {
				y[160+16*n+i] = d * trit(b[32+i], n)
			}
		}
		for n := range 4 {
			for i := range 4 {
				y[240+4*n+i] = d * trit(b[48+i], n)
			}
		}
	}
}

// decodeTQ2_0: 64 bytes of four bit pairs, d. Pair n of the 32 bytes of a half makes its values 32n….
func decodeTQ2_0(dst []float32, src []byte) {
	for ; len(dst) >= kk; dst, src = dst[kk:], src[66:] {
		b, y := (*[66]byte)(src), (*[kk]float32)(dst)
		d := half(b[64:])
		for i := range y {
			y[i] = d * float32(int(b[i/128*32+i%32]>>(i%128/32*2)&3)-1)
		}
	}
}
