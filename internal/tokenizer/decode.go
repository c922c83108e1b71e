package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// A decoder turns ids into bytes. Most tokenizers give the same bytes for an id wherever it stands;
// some look at what was before, which state remembers.
type decoder interface {
	// append appends the bytes of a token to dst.
	append(dst []byte, v *vocab, id uint32, state *decodeState) []byte
}

// decodeState is where a decoder is in a sequence of ids.
type decodeState struct {
	started bool // a token was decoded
}

// byteLevel is the decoder of byte-level BPE: the vocabulary already holds bytes.
type byteLevel struct{}

func (byteLevel) append(dst []byte, v *vocab, id uint32, state *decodeState) []byte {
	state.started = true
	return append(dst, v.bytes(id)...)
}

// Decoder turns a stream of ids into text, whole characters only. It is not safe for concurrent use.
type Decoder struct {
	t           *Tokenizer
	skipSpecial bool
	state       decodeState
	held        []byte
}

// NewDecoder returns a decoder for one sequence. With skipSpecial control tokens give no text.
func (t *Tokenizer) NewDecoder(skipSpecial bool) *Decoder {
	return &Decoder{t: t, skipSpecial: skipSpecial}
}

// Push returns the text that id completes. Bytes of a character that is not complete are held back; a
// sequence that cannot become a character is U+FFFD, one for each maximal invalid part (Unicode 15,
// section 3.9, "U+FFFD Substitution of Maximal Subparts").
func (d *Decoder) Push(id int32) (string, error) {
	if err := d.t.vocab.check(id); err != nil {
		return "", err
	}
	if d.skipSpecial && d.t.vocab.flags[id]&flagSpecial != 0 {
		return "", nil
	}
	d.held = d.t.decoder.append(d.held, d.t.vocab, uint32(id), &d.state)
	done := completeUTF8(d.held)
	if done == 0 {
		return "", nil
	}
	text := validUTF8(d.held[:done])
	d.held = append(d.held[:0], d.held[done:]...)
	return text, nil
}

// Flush returns what is held back, as U+FFFD, and makes the decoder ready for another sequence.
func (d *Decoder) Flush() string {
	text := validUTF8(d.held)
	d.held, d.state = d.held[:0], decodeState{}
	return text
}

// Decode returns the exact bytes of ids, which need not be UTF-8.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) ([]byte, error) {
	var out []byte
	var state decodeState
	for _, id := range ids {
		if err := t.vocab.check(id); err != nil {
			return nil, err
		}
		if skipSpecial && t.vocab.flags[id]&flagSpecial != 0 {
			continue
		}
		out = t.decoder.append(out, t.vocab, uint32(id), &state)
	}
	return out, nil
}

// DecodeText returns the text of ids; what is not UTF-8 is U+FFFD, as Push says.
func (t *Tokenizer) DecodeText(ids []int32, skipSpecial bool) (string, error) {
	b, err := t.Decode(ids, skipSpecial)
	return validUTF8(b), err
}

// completeUTF8 returns the length of b without the beginning of a character at its end.
func completeUTF8(b []byte) int {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax+1; i-- {
		if utf8.RuneStart(b[i]) {
			if b[i] >= utf8.RuneSelf && !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}

// validUTF8 replaces each maximal invalid part of b by U+FFFD.
func validUTF8(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var out strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r != utf8.RuneError || n > 1 {
			out.Write(b[:n])
			b = b[n:]
			continue
		}
		out.WriteRune(utf8.RuneError)
		b = b[invalidLen(b):]
	}
	return out.String()
}

// invalidLen returns the length of the maximal invalid part that b begins with: the longest beginning
// of a character, or one byte. FullRune is false exactly for such beginnings.
func invalidLen(b []byte) int {
	n := 1
	for n < len(b) && n < utf8.UTFMax-1 && !utf8.FullRune(b[:n+1]) {
		n++
	}
	return n
}
