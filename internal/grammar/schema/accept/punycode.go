package accept

import "unicode"

// isEncoded says whether the rest of a label xn--… decodes to letters, marks and digits that RFC 5892 allows
// without a look at their neighbours; labels that need one are refused.
func isEncoded(s string) bool {
	runes, ok := decodePunycode(s)
	if !ok || len(runes) == 0 || unicode.IsMark(runes[0]) {
		return false
	}
	wide := false
	for i, r := range runes {
		wide = wide || r >= 0x80
		switch {
		case r == '-':
			if i == 0 || i == len(runes)-1 || i == 3 && runes[2] == '-' {
				return false
			}
		case r < 0x80:
		case !unicode.In(r, unicode.Ll, unicode.Lo, unicode.Lm, unicode.Mn, unicode.Mc, unicode.Nd) || isException(r):
			return false
		}
	}
	return wide
}

// isException has what RFC 5892 disallows or allows only in some places, though letters, marks or digits.
func isException(r rune) bool {
	switch {
	case r == 0x640, r == 0x7FA, r == 0x302E, r == 0x302F, r >= 0x3031 && r <= 0x3035, r == 0x303B, r == 0x30FB,
		r >= 0x660 && r <= 0x669, r >= 0x6F0 && r <= 0x6F9, r >= 0x1100 && r <= 0x11FF:
		return true
	}
	return false
}

// The parameters of RFC 3492.
const (
	punycodeBase = 36
	punycodeMin  = 1
	punycodeMax  = 26
	punycodeMost = unicode.MaxRune * 64 // of the numbers within a label of 63 characters
)

// decodePunycode is the algorithm of RFC 3492.
func decodePunycode(s string) (out []rune, ok bool) {
	n, i, bias := rune(0x80), 0, 72
	for b := len(s) - 1; b > 0; b-- {
		if s[b] == '-' {
			out, s = []rune(s[:b]), s[b+1:]
			break
		}
	}
	for first := true; s != ""; first = false {
		delta, rest, ok := punycodeNumber(s, bias)
		if !ok || i+delta > punycodeMost {
			return nil, false
		}
		s, i = rest, i+delta
		count := len(out) + 1
		bias = punycodeBias(delta, count, first)
		if n += rune(i / count); n > unicode.MaxRune {
			return nil, false
		}
		i %= count
		out = append(out[:i], append([]rune{n}, out[i:]...)...)
		i++
	}
	return out, true
}

// punycodeNumber reads a number of variable length.
func punycodeNumber(s string, bias int) (n int, rest string, ok bool) {
	weight := 1
	for k := punycodeBase; s != ""; k += punycodeBase {
		digit := punycodeDigit(s[0])
		s = s[1:]
		if digit < 0 || digit > (punycodeMost-n)/weight {
			return 0, "", false
		}
		n += digit * weight
		t := min(max(k-bias, punycodeMin), punycodeMax)
		if digit < t {
			return n, s, true
		}
		if weight *= punycodeBase - t; weight > punycodeMost {
			return 0, "", false
		}
	}
	return 0, "", false
}

func punycodeBias(delta, count int, first bool) int {
	const skew, damp = 38, 700
	if first {
		delta /= damp
	} else {
		delta /= 2
	}
	delta += delta / count
	k := 0
	for ; delta > (punycodeBase-punycodeMin)*punycodeMax/2; k += punycodeBase {
		delta /= punycodeBase - punycodeMin
	}
	return k + (punycodeBase-punycodeMin+1)*delta/(delta+skew)
}

func punycodeDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c-'0') + 26
	case c|0x20 >= 'a' && c|0x20 <= 'z':
		return int(c | 0x20 - 'a')
	}
	return -1
}
