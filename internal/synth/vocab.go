package synth

import (
	"iter"
	"unicode/utf8"
)

// The special tokens are the last ids of a vocabulary.
var specials = [...]string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}

const (
	byteTokens = 256
	chatML     = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

	// Letters by frequency in English, so that a small vocabulary has the common pairs.
	letters = "etaoinshrdlucmfwypvbgkjqxz"
)

// A vocab is a byte-level BPE vocabulary of any size: 256 byte tokens, then strings of growing
// length over a small alphabet (a space may lead), then the special tokens. Each string is the
// merge of its head, which is an earlier token, and its last letter. Nothing is stored.
type vocab struct{ size int }

// endOfText and endOfTurn are ids of special tokens.
func (v vocab) endOfText() int { return v.size - len(specials) }
func (v vocab) endOfTurn() int { return v.size - 1 }

// merges is how many tokens are merged from others.
func (v vocab) merges() int { return v.endOfText() - byteTokens }

// A token's text is in the byte-level alphabet and valid until the next one.
type token struct {
	text   []byte
	merged bool // from all but the last byte, and the last byte
}

// tokens yields the tokens in order of their ids.
func (v vocab) tokens() iter.Seq2[int, token] {
	return func(yield func(int, token) bool) {
		var buf [64]byte
		for id, r := range byteRunes() {
			if !yield(id, token{text: utf8.AppendRune(buf[:0], r)}) {
				return
			}
		}
		id := byteTokens
		for digits := []int{0, 0}; id < v.endOfText(); digits = increment(digits) {
			if !yield(id, token{text: spell(buf[:0], digits), merged: true}) {
				return
			}
			id++
		}
		for i, s := range specials {
			if !yield(id+i, token{text: append(buf[:0], s...)}) {
				return
			}
		}
	}
}

// spell appends the string of a number over the alphabet.
func spell(b []byte, digits []int) []byte {
	for i, d := range digits {
		switch {
		case i > 0:
			b = append(b, letters[d])
		case d == 0:
			b = append(b, "Ġ"...) // a space
		default:
			b = append(b, letters[d-1])
		}
	}
	return b
}

// increment counts digits up by one, and after the last number of a length begins the next length.
func increment(digits []int) []int {
	for i := len(digits) - 1; i >= 0; i-- {
		most := len(letters) - 1
		if i == 0 {
			most++ // the space
		}
		if digits[i] < most {
			digits[i]++
			return digits
		}
		digits[i] = 0
	}
	return append(digits, 0)
}

// pairs yields every merge as files write it, "left right", in order of rank.
func (v vocab) pairs() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var buf [64]byte
		for _, t := range v.tokens() {
			if !t.merged {
				continue
			}
			n := len(t.text) - 1
			pair := append(append(buf[:0], t.text[:n]...), ' ', t.text[n])
			if !yield(pair) {
				return
			}
		}
	}
}

// byteRunes is GPT-2's alphabet for bytes: printable ones stand for themselves, the others follow
// from U+0100 on.
func byteRunes() [byteTokens]rune {
	var all [byteTokens]rune
	next := rune(byteTokens)
	for b := range all {
		if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
			all[b] = rune(b)
			continue
		}
		all[b] = next
		next++
	}
	return all
}
