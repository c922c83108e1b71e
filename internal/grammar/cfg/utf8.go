package cfg

import "unicode/utf8"

// byteRange is the bytes lo..hi.
type byteRange struct{ lo, hi byte }

// utf8Sequences writes sorted, disjoint ranges of characters as sequences of ranges of bytes, in
// order. Two sequences begin with the same range or with disjoint ones, and so on after equal ones.
func utf8Sequences(ranges [][2]rune) [][]byteRange {
	var out [][]byteRange
	for _, r := range ranges {
		out = appendUTF8(out, r[0], r[1])
	}
	return out
}

func appendUTF8(out [][]byteRange, lo, hi rune) [][]byteRange {
	for _, last := range []rune{0x7f, 0x7ff, 0xffff} { // one length at a time
		if lo <= last && last < hi {
			out = appendUTF8(out, lo, last)
			return appendUTF8(out, last+1, hi)
		}
	}
	for shift := 6; shift <= 18; shift += 6 { // whole blocks of continuation bytes
		block := rune(1)<<shift - 1
		if lo&^block == hi&^block || hi < 0x80 {
			break
		}
		if lo&block != 0 {
			out = appendUTF8(out, lo, lo|block)
			return appendUTF8(out, (lo|block)+1, hi)
		}
		if hi&block != block {
			out = appendUTF8(out, lo, hi&^block-1)
			return appendUTF8(out, hi&^block, hi)
		}
	}
	var a, z [utf8.UTFMax]byte
	n := utf8.EncodeRune(a[:], lo)
	utf8.EncodeRune(z[:], hi)
	seq := make([]byteRange, n)
	for i := range seq {
		seq[i] = byteRange{a[i], z[i]}
	}
	return append(out, seq)
}
