package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Decoder turns a stream of ids into text, whole characters only. It is not safe for concurrent use.
type Decoder struct {
	t           *Tokenizer
	skipSpecial bool
	flow        flow
	held        []byte
	run         bool // held are bytes of byte-fallback tokens
}

// NewDecoder returns a decoder for one sequence. With skipSpecial control tokens give no text.
func (t *Tokenizer) NewDecoder(skipSpecial bool) *Decoder {
	return &Decoder{t: t, skipSpecial: skipSpecial, flow: t.decoder.begin(false)}
}

// token returns what the stages of a decoder begin with; nothing if the token is to be skipped.
func (t *Tokenizer) token(id int32, skipSpecial bool) (c chunk, ok bool, err error) {
	if err := t.vocab.check(id); err != nil {
		return c, false, err
	}
	flags := t.vocab.flags[id]
	if flags&flagHidden != 0 || skipSpecial && flags&flagSpecial != 0 {
		return c, false, nil
	}
	if text, ok := t.shown[id]; ok {
		return chunk{b: []byte(text)}, true, nil
	}
	return chunk{t.vocab.bytes(uint32(id)), flags&flagByte != 0}, true, nil
}

// Push returns the text that id completes. Bytes of a character that is not complete are held back; a
// sequence that cannot become a character is U+FFFD, one for each maximal invalid part (Unicode 15,
// section 3.9, "U+FFFD Substitution of Maximal Subparts"). Of byte-fallback tokens it is one for each
// byte: once a token of another kind follows, as Hugging Face has it, or at once, as SentencePiece does.
func (d *Decoder) Push(id int32) (string, error) {
	c, ok, err := d.t.token(id, d.skipSpecial)
	if !ok {
		return "", err
	}
	if len(d.flow) == 0 {
		return d.take(c), nil
	}
	text := ""
	d.flow.push(c, func(c chunk) { text += d.take(c) })
	return text, nil
}

// take returns the text that a chunk completes.
func (d *Decoder) take(c chunk) string {
	before := ""
	if c.isByte != d.run {
		before = d.rest()
		d.run = c.isByte
	}
	d.held = append(d.held, c.b...)
	text, done := "", 0
	switch {
	case !d.run:
		done = completeUTF8(d.held)
		text = validUTF8(d.held[:done])
	case d.t.lenientRuns:
		text, done = eachByte(d.held)
	default:
		done = validLen(d.held)
		text = string(d.held[:done])
	}
	d.held = append(d.held[:0], d.held[done:]...)
	return before + text
}

// rest returns what is held, as U+FFFD.
func (d *Decoder) rest() string {
	text := ""
	if d.run {
		text = strings.Repeat("\ufffd", len(d.held))
	} else {
		text = validUTF8(d.held)
	}
	d.held = d.held[:0]
	return text
}

// Flush returns what is held back, as U+FFFD where it is no text, and makes the decoder ready for another
// sequence.
func (d *Decoder) Flush() string {
	text := ""
	d.flow.end(func(c chunk) { text += d.take(c) })
	text += d.rest()
	d.flow, d.run = d.t.decoder.begin(false), false
	return text
}

// Decode returns the exact bytes of ids, which need not be UTF-8.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) ([]byte, error) {
	var out []byte
	err := t.decode(ids, skipSpecial, func(c chunk) { out = append(out, c.b...) })
	return out, err
}

// decode gives the chunks that ids become.
func (t *Tokenizer) decode(ids []int32, skipSpecial bool, emit func(chunk)) error {
	flow := t.decoder.begin(false)
	push := flow.bind(emit)
	for _, id := range ids {
		c, ok, err := t.token(id, skipSpecial)
		if err != nil {
			return err
		}
		if ok {
			push(c)
		}
	}
	flow.end(emit)
	return nil
}

// DecodeText returns the text of ids; what is not UTF-8 is U+FFFD, as Push says. It differs from the
// texts of Push in one case, where it is what Hugging Face gives: if a run of byte-fallback tokens is
// invalid anywhere, all its bytes are U+FFFD, those that Push has shown as characters too.
func (t *Tokenizer) DecodeText(ids []int32, skipSpecial bool) (string, error) {
	var out strings.Builder
	var part []byte
	run := false
	end := func() {
		switch {
		case !run || utf8.Valid(part):
			out.WriteString(validUTF8(part))
		case t.lenientRuns:
			text, done := eachByte(part)
			out.WriteString(text + strings.Repeat("\ufffd", len(part)-done))
		default:
			out.WriteString(strings.Repeat("\ufffd", len(part)))
		}
		part = part[:0]
	}
	err := t.decode(ids, skipSpecial, func(c chunk) {
		if c.isByte != run {
			end()
			run = c.isByte
		}
		part = append(part, c.b...)
	})
	if err != nil {
		return "", err
	}
	end()
	return out.String(), nil
}

// eachByte returns the text of b, one U+FFFD for each byte that is in no character, without the beginning
// of a character at its end; done is its length in b.
func eachByte(b []byte) (text string, done int) {
	var out strings.Builder
	for done < len(b) && utf8.FullRune(b[done:]) {
		r, n := utf8.DecodeRune(b[done:])
		out.WriteRune(r)
		done += n
	}
	return out.String(), done
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
