package tokenizer

import "slices"

// lateRange is a range of characters with their class.
type lateRange struct {
	first, last rune
	class       class
}

// lateClass returns the class of a character that has come to Unicode since the version that Go's tables have
// (15; the libraries' patterns have 16).
func lateClass(r rune) class {
	if r < lateRanges[0].first {
		return 0
	}
	at, found := slices.BinarySearchFunc(lateRanges[:], r, func(a lateRange, r rune) int {
		switch {
		case a.last < r:
			return -1
		case a.first > r:
			return 1
		}
		return 0
	})
	if !found {
		return 0
	}
	return lateRanges[at].class
}

// lateRanges are in order.
var lateRanges = [...]lateRange{
	{0x897, 0x897, mark | upper | lower}, {0x1b4e, 0x1b4f, punct}, {0x1b7f, 0x1b7f, punct}, {0x1c89, 0x1c89, letter | upper},
	{0x1c8a, 0x1c8a, letter | lower}, {0x2427, 0x2429, punct}, {0x2ffc, 0x2fff, punct}, {0x31e4, 0x31e5, punct},
	{0x31ef, 0x31ef, punct}, {0xa7cb, 0xa7cc, letter | upper}, {0xa7cd, 0xa7cd, letter | lower}, {0xa7da, 0xa7da, letter | upper},
	{0xa7db, 0xa7db, letter | lower}, {0xa7dc, 0xa7dc, letter | upper}, {0x105c0, 0x105f3, letter | upper | lower},
	{0x10d40, 0x10d49, number}, {0x10d4a, 0x10d4f, letter | upper | lower}, {0x10d50, 0x10d65, letter | upper},
	{0x10d69, 0x10d6d, mark | upper | lower}, {0x10d6e, 0x10d6e, punct}, {0x10d6f, 0x10d6f, letter | upper | lower},
	{0x10d70, 0x10d85, letter | lower}, {0x10d8e, 0x10d8f, punct}, {0x10ec2, 0x10ec4, letter | upper | lower},
	{0x10efc, 0x10efc, mark | upper | lower}, {0x11380, 0x11389, letter | upper | lower}, {0x1138b, 0x1138b, letter | upper | lower},
	{0x1138e, 0x1138e, letter | upper | lower}, {0x11390, 0x113b5, letter | upper | lower}, {0x113b7, 0x113b7, letter | upper | lower},
	{0x113b8, 0x113c0, mark | upper | lower}, {0x113c2, 0x113c2, mark | upper | lower}, {0x113c5, 0x113c5, mark | upper | lower},
	{0x113c7, 0x113ca, mark | upper | lower}, {0x113cc, 0x113d0, mark | upper | lower}, {0x113d1, 0x113d1, letter | upper | lower},
	{0x113d2, 0x113d2, mark | upper | lower}, {0x113d3, 0x113d3, letter | upper | lower}, {0x113d4, 0x113d5, punct},
	{0x113d7, 0x113d8, punct}, {0x113e1, 0x113e2, mark | upper | lower}, {0x116d0, 0x116e3, number},
	{0x11bc0, 0x11be0, letter | upper | lower}, {0x11be1, 0x11be1, punct}, {0x11bf0, 0x11bf9, number},
	{0x11f5a, 0x11f5a, mark | upper | lower}, {0x13460, 0x143fa, letter | upper | lower}, {0x16100, 0x1611d, letter | upper | lower},
	{0x1611e, 0x1612f, mark | upper | lower}, {0x16130, 0x16139, number}, {0x16d40, 0x16d6c, letter | upper | lower},
	{0x16d6d, 0x16d6f, punct}, {0x16d70, 0x16d79, number}, {0x18cff, 0x18cff, letter | upper | lower}, {0x1cc00, 0x1ccef, punct},
	{0x1ccf0, 0x1ccf9, number}, {0x1cd00, 0x1ceb3, punct}, {0x1e5d0, 0x1e5ed, letter | upper | lower},
	{0x1e5ee, 0x1e5ef, mark | upper | lower}, {0x1e5f0, 0x1e5f0, letter | upper | lower}, {0x1e5f1, 0x1e5fa, number},
	{0x1e5ff, 0x1e5ff, punct}, {0x1f8b2, 0x1f8bb, punct}, {0x1f8c0, 0x1f8c1, punct}, {0x1fa89, 0x1fa89, punct},
	{0x1fa8f, 0x1fa8f, punct}, {0x1fabe, 0x1fabe, punct}, {0x1fac6, 0x1fac6, punct}, {0x1fadc, 0x1fadc, punct},
	{0x1fadf, 0x1fadf, punct}, {0x1fae9, 0x1fae9, punct}, {0x1fbcb, 0x1fbef, punct}, {0x2ebf0, 0x2ee5d, letter | upper | lower},
}
