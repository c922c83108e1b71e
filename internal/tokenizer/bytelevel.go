package tokenizer

import "unicode/utf8"

// Byte-level tokenizers write each byte as a printable character (GPT-2's table): printable Latin-1
// stands for itself, and the other 68 bytes, in order, are U+0100…U+0143.

// isPlain reports whether a byte stands for itself.
func isPlain(b int) bool {
	return b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae && b <= 0xff
}

var charToByte = func() (table [0x144]int16) {
	for i := range table {
		table[i] = -1
	}
	next := 0x100
	for b := range 256 {
		if isPlain(b) {
			table[b] = int16(b)
		} else {
			table[next] = int16(b)
			next++
		}
	}
	return table
}()

// unmapBytes appends the bytes that a byte-level token stands for. It is false, and appends nothing,
// if a character stands for no byte; such a token means its own text.
func unmapBytes(dst, token []byte) ([]byte, bool) {
	start := len(dst)
	for i := 0; i < len(token); {
		r, n := utf8.DecodeRune(token[i:])
		if r >= rune(len(charToByte)) || charToByte[r] < 0 {
			return dst[:start], false
		}
		dst = append(dst, byte(charToByte[r]))
		i += n
	}
	return dst, true
}

// unmapped appends what a byte-level token stands for: bytes, or its own text.
func unmapped(dst, token []byte) []byte {
	out, ok := unmapBytes(dst, token)
	if !ok {
		return append(dst, token...)
	}
	return out
}
