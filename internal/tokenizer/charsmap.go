package tokenizer

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// charsmap is the character map that SentencePiece compiles into a model: a double array (darts-clone)
// that maps strings to places in a blob of strings which end with a zero byte. Every step is checked, so
// that a damaged map gives wrong text at worst.
type charsmap struct {
	units u32s
	blob  []byte
}

// newCharsmap reads a precompiled_charsmap: the size of the array in bytes (32 bits), the array, the blob.
func newCharsmap(b []byte) (*charsmap, error) {
	if len(b) < 4 {
		return nil, formatError("the character map has %d bytes; at least 4 are needed", len(b))
	}
	size := binary.LittleEndian.Uint32(b)
	b = b[4:]
	if int64(size) > int64(len(b)) || size%4 != 0 || size == 0 {
		return nil, formatError("the character map has an array of %d bytes in %d", size, len(b))
	}
	return &charsmap{units: u32s(b[:size]), blob: b[size:]}, nil
}

// unit of the double array, by darts-clone's layout: bits 0–7 and 31 label, bit 8 "a value follows", bits
// 9–30 offset.
type dartsUnit uint32

func (u dartsUnit) hasValue() bool { return u>>8&1 == 1 }
func (u dartsUnit) label() uint32  { return uint32(u) & (1<<31 | 0xff) }
func (u dartsUnit) offset() uint32 { return uint32(u) >> 10 << (uint32(u) & (1 << 9) >> 6) }

func (m *charsmap) unit(at uint32) (dartsUnit, bool) {
	if int64(at) >= int64(m.units.len()) {
		return 0, false
	}
	return dartsUnit(m.units.at(at)), true
}

// prefixes calls found for each key that s begins with, the shortest first, until it returns false.
func (m *charsmap) prefixes(s string, found func(length int, value uint32) bool) {
	root, ok := m.unit(0)
	at := root.offset()
	for i := 0; i < len(s) && ok; i++ {
		at ^= uint32(s[i])
		var u dartsUnit
		if u, ok = m.unit(at); !ok || s[i] == 0 || u.label() != uint32(s[i]) {
			return
		}
		at ^= u.offset()
		if !u.hasValue() {
			continue
		}
		value, there := m.unit(at)
		if !there || !found(i+1, uint32(value)&^(1<<31)) {
			return
		}
	}
}

// text returns the string at a place of the blob.
func (m *charsmap) text(at uint32) string {
	if int64(at) >= int64(len(m.blob)) {
		return ""
	}
	rest := m.blob[at:]
	for i, c := range rest {
		if c == 0 {
			return string(rest[:i])
		}
	}
	return string(rest)
}

// longest returns what the longest key that s begins with becomes, and the key's length; 0 if there is none.
func (m *charsmap) longest(s string) (string, int) {
	length, place := 0, uint32(0)
	m.prefixes(s, func(n int, value uint32) bool {
		length, place = n, value
		return true
	})
	if length == 0 {
		return "", 0
	}
	return m.text(place), length
}

// shortest returns what the shortest key that s begins with becomes.
func (m *charsmap) shortest(s string) (text string, ok bool) {
	m.prefixes(s, func(_ int, value uint32) bool {
		text, ok = m.text(value), true
		return false
	})
	return text, ok
}

// precompiled is Hugging Face's Precompiled normalizer. It is not quite SentencePiece: a grapheme cluster
// of less than 6 bytes becomes, as a whole, what the shortest key that it begins with stands for; other
// clusters go character by character.
type precompiled struct{ *charsmap }

func (p precompiled) normalize(text string) string { return orSame(p, text) }

func (p precompiled) try(text string, most int) (string, error) {
	var b strings.Builder
	done := 0 // text that is written
	put := func(start, end int, with string) {
		b.WriteString(text[done:start])
		b.WriteString(with)
		done = end
	}
	for i := 0; i < len(text); {
		if b.Len() > most {
			return "", tooMuch(most)
		}
		end := i + clusterLen(text[i:])
		if end-i < 6 {
			if with, ok := p.shortest(text[i:end]); ok {
				put(i, end, with)
				i = end
				continue
			}
		}
		for i < end {
			_, n := utf8.DecodeRuneInString(text[i:])
			if with, ok := p.shortest(text[i : i+n]); ok {
				put(i, i+n, with)
			}
			i += n
		}
	}
	if done == 0 {
		return text, nil
	}
	b.WriteString(text[done:])
	return b.String(), nil
}
