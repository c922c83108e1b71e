package sample

import "math/bits"

// philox is the counter-based generator Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random
// numbers: as easy as 1, 2, 3", 2011): a value depends on key and counter alone.
func philox(key [2]uint32, counter [4]uint32) [4]uint32 {
	const (
		m0, m1 = 0xD2511F53, 0xCD9E8D57
		w0, w1 = 0x9E3779B9, 0xBB67AE85
	)
	c := counter
	for range 10 {
		h0, l0 := bits.Mul32(m0, c[0])
		h1, l1 := bits.Mul32(m1, c[2])
		c = [4]uint32{h1 ^ c[1] ^ key[0], l1, h0 ^ c[3] ^ key[1], l0}
		key[0] += w0
		key[1] += w1
	}
	return c
}

// What numbers are drawn for at one position.
const (
	drawToken = iota
	drawXTC
)

// draw returns 64 random bits that depend on seed, position and purpose alone.
func draw(seed uint64, position int, purpose uint32) uint64 {
	p := uint64(position)
	r := philox([2]uint32{uint32(seed), uint32(seed >> 32)}, [4]uint32{uint32(p), uint32(p >> 32), purpose, 0})
	return uint64(r[1])<<32 | uint64(r[0])
}
