package tokenizer

import (
	"bytes"
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
	started bool // a token gave bytes
}

// byteLevel is the decoder of byte-level BPE: the vocabulary already holds bytes.
type byteLevel struct{}

func (byteLevel) append(dst []byte, v *vocab, id uint32, _ *decodeState) []byte {
	return append(dst, v.bytes(id)...)
}

// spaced is the decoder of SentencePiece's kin: a mark stands for a space, and the first space, which
// encoding put there, is dropped.
type spaced struct {
	mark       []byte
	dropPrefix bool
}

func (d spaced) append(dst []byte, v *vocab, id uint32, state *decodeState) []byte {
	start := len(dst)
	token := v.bytes(id)
	for {
		at := bytes.Index(token, d.mark)
		if at < 0 || len(d.mark) == 0 {
			break
		}
		dst = append(append(dst, token[:at]...), ' ')
		token = token[at+len(d.mark):]
	}
	dst = append(dst, token...)
	if len(dst) == start || state.started {
		return dst
	}
	state.started = true
	if d.dropPrefix && dst[start] == ' ' {
		dst = append(dst[:start], dst[start+1:]...)
	}
	return dst
}

// Decoder turns a stream of ids into text, whole characters only. It is not safe for concurrent use.
type Decoder struct {
	t           *Tokenizer
	skipSpecial bool
	state       decodeState
	held        []byte
	run         bool // held are bytes of byte-fallback tokens
}

// NewDecoder returns a decoder for one sequence. With skipSpecial control tokens give no text.
func (t *Tokenizer) NewDecoder(skipSpecial bool) *Decoder {
	return &Decoder{t: t, skipSpecial: skipSpecial}
}

// Push returns the text that id completes. Bytes of a character that is not complete are held back; a
// sequence that cannot become a character is U+FFFD, one for each maximal invalid part (Unicode 15,
// section 3.9, "U+FFFD Substitution of Maximal Subparts"). Of byte-fallback tokens it is one for each
// byte, once a token of another kind follows, as Hugging Face has it.
func (d *Decoder) Push(id int32) (string, error) {
	if err := d.t.vocab.check(id); err != nil {
		return "", err
	}
	flags := d.t.vocab.flags[id]
	if d.skipSpecial && flags&flagSpecial != 0 {
		return "", nil
	}
	before := ""
	if isByte := flags&flagByte != 0; isByte != d.run {
		before = d.end()
		d.run = isByte
	}
	d.held = d.t.decoder.append(d.held, d.t.vocab, uint32(id), &d.state)
	done := completeUTF8(d.held)
	if d.run {
		done = validLen(d.held)
	}
	if done == 0 {
		return before, nil
	}
	text := validUTF8(d.held[:done])
	d.held = append(d.held[:0], d.held[done:]...)
	return before + text, nil
}

// end returns what is held, as U+FFFD.
func (d *Decoder) end() string {
	text := ""
	if d.run {
		text = strings.Repeat("\ufffd", len(d.held))
	} else {
		text = validUTF8(d.held)
	}
	d.held = d.held[:0]
	return text
}

// Flush returns what is held back, as U+FFFD, and makes the decoder ready for another sequence.
func (d *Decoder) Flush() string {
	text := d.end()
	d.state, d.run = decodeState{}, false
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

// DecodeText returns the text of ids; what is not UTF-8 is U+FFFD, as Push says. It differs from the
// texts of Push in one case, where it is what Hugging Face gives: if a run of byte-fallback tokens is
// invalid anywhere, all its bytes are U+FFFD, those that Push has shown as characters too.
func (t *Tokenizer) DecodeText(ids []int32, skipSpecial bool) (string, error) {
	var out strings.Builder
	var part []byte
	var state decodeState
	run := false
	end := func() {
		if run && !utf8.Valid(part) {
			out.WriteString(strings.Repeat("\ufffd", len(part)))
		} else {
			out.WriteString(validUTF8(part))
		}
		part = part[:0]
	}
	for _, id := range ids {
		if err := t.vocab.check(id); err != nil {
			return "", err
		}
		flags := t.vocab.flags[id]
		if skipSpecial && flags&flagSpecial != 0 {
			continue
		}
		if isByte := flags&flagByte != 0; isByte != run {
			end()
			run = isByte
		}
		part = t.decoder.append(part, t.vocab, uint32(id), &state)
	}
	end()
	return out.String(), nil
}

// validLen returns the length of the whole characters that b begins with.
func validLen(b []byte) int {
	n := 0
	for n < len(b) {
		r, size := utf8.DecodeRune(b[n:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		n += size
	}
	return n
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
