package container

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON reads a JSON text token by token, without building a tree: headers of safetensors can have
// tens of megabytes.
type JSON struct {
	r     *Reader
	text  []byte
	depth int
}

// NewJSON reads JSON from r's position to its end.
func NewJSON(r *Reader) *JSON { return &JSON{r: r} }

// maxJSONText bounds a string, so that a hostile one allocates little.
const maxJSONText = 64 << 10

func (j *JSON) errorf(format string, args ...any) error {
	return fmt.Errorf("JSON at byte %d: %s", j.r.Offset(), fmt.Sprintf(format, args...))
}

// ended makes the end of the range an error of the JSON text.
func (j *JSON) ended(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return j.errorf("it ends too early")
	}
	return err
}

// space passes white space and returns the byte after it.
func (j *JSON) space() (byte, error) {
	for {
		c, err := j.r.Peek()
		if err != nil {
			return 0, j.ended(err)
		}
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c, nil
		}
		j.r.pos++
	}
}

// expect passes one byte.
func (j *JSON) expect(want byte) error {
	c, err := j.space()
	if err != nil {
		return err
	}
	if c != want {
		return j.errorf("%q where %q should be", c, want)
	}
	j.r.pos++
	return nil
}

// End reports an error if anything but white space is left.
func (j *JSON) End() error {
	for {
		c, err := j.r.Peek()
		switch {
		case Truncated(err):
			return nil
		case err != nil:
			return err
		case c != ' ' && c != '\n' && c != '\t' && c != '\r':
			return j.errorf("%q after its end", c)
		}
		j.r.pos++
	}
}

// Object reads an object; member is called for each key and reads the value. The key is valid until
// it does.
func (j *JSON) Object(member func(key []byte) error) error {
	return j.list('{', '}', func() error {
		if err := j.passString(); err != nil {
			return err
		}
		if err := j.expect(':'); err != nil {
			return err
		}
		return member(j.text)
	})
}

// Array reads an array; element reads each value.
func (j *JSON) Array(element func() error) error { return j.list('[', ']', element) }

func (j *JSON) list(open, end byte, item func() error) error {
	if err := j.expect(open); err != nil {
		return err
	}
	if j.depth++; j.depth > 64 {
		return j.errorf("it nests too deep")
	}
	defer func() { j.depth-- }()
	if c, err := j.space(); err != nil {
		return err
	} else if c == end {
		j.r.pos++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		c, err := j.space()
		if err != nil {
			return err
		}
		j.r.pos++
		switch c {
		case ',':
		case end:
			return nil
		default:
			return j.errorf("%q where ',' or %q should be", c, end)
		}
	}
}

// Text reads a string; it is valid until the next read.
func (j *JSON) Text() ([]byte, error) {
	err := j.passString()
	return j.text, err
}

// passString reads a string into j.text.
func (j *JSON) passString() error {
	if err := j.expect('"'); err != nil {
		return err
	}
	j.text = j.text[:0]
	for {
		j.plain()
		b, err := j.r.Next(1)
		if err != nil {
			return j.ended(err)
		}
		switch c := b[0]; {
		case c == '"':
			if !utf8.Valid(j.text) {
				return j.errorf("a string is not UTF-8")
			}
			return nil
		case c < 0x20:
			return j.errorf("a control character in a string")
		case len(j.text) >= maxJSONText:
			return j.errorf("a string is longer than %d bytes", maxJSONText)
		case c == '\\':
			if err := j.escape(); err != nil {
				return err
			}
		default:
			j.text = append(j.text, c)
		}
	}
}

// plain passes the buffered part of a string that needs no care.
func (j *JSON) plain() {
	b := j.r.buf[j.r.pos:j.r.len]
	b = b[:min(len(b), maxJSONText-len(j.text))]
	n := 0
	for n < len(b) && b[n] != '"' && b[n] != '\\' && b[n] >= 0x20 {
		n++
	}
	j.text = append(j.text, b[:n]...)
	j.r.pos += n
}

func (j *JSON) escape() error {
	b, err := j.r.Next(1)
	if err != nil {
		return j.ended(err)
	}
	switch c := b[0]; c {
	case '"', '\\', '/':
		j.text = append(j.text, c)
	case 'b':
		j.text = append(j.text, '\b')
	case 'f':
		j.text = append(j.text, '\f')
	case 'n':
		j.text = append(j.text, '\n')
	case 'r':
		j.text = append(j.text, '\r')
	case 't':
		j.text = append(j.text, '\t')
	case 'u':
		return j.unicode()
	default:
		return j.errorf("unknown escape \\%c", c)
	}
	return nil
}

// unicode reads \uXXXX, or a pair of them, after the u.
func (j *JSON) unicode() error {
	c, err := j.hex()
	if err != nil {
		return err
	}
	if utf16.IsSurrogate(c) {
		b, err := j.r.Next(2)
		if err != nil {
			return j.ended(err)
		}
		if string(b) != `\u` {
			return j.errorf("half a surrogate pair")
		}
		low, err := j.hex()
		if err != nil {
			return err
		}
		if c = utf16.DecodeRune(c, low); c == utf8.RuneError {
			return j.errorf("half a surrogate pair")
		}
	}
	j.text = utf8.AppendRune(j.text, c)
	return nil
}

func (j *JSON) hex() (rune, error) {
	b, err := j.r.Next(4)
	if err != nil {
		return 0, j.ended(err)
	}
	n, err := strconv.ParseUint(string(b), 16, 16)
	if err != nil || b[0] == '+' {
		return 0, j.errorf("%q is not hexadecimal", b)
	}
	return rune(n), nil
}

// Uint reads an integer that is not negative.
func (j *JSON) Uint() (uint64, error) {
	if _, err := j.space(); err != nil {
		return 0, err
	}
	s, err := j.word()
	if err != nil {
		return 0, err
	}
	if len(s) == 0 || s[0] < '0' || s[0] > '9' || s[0] == '0' && len(s) > 1 {
		return 0, j.errorf("%q is not a natural number", s)
	}
	n, err := strconv.ParseUint(string(s), 10, 64)
	if err != nil {
		return 0, j.errorf("%q is not a natural number below 2^64", s)
	}
	return n, nil
}

// word reads a number or literal.
func (j *JSON) word() ([]byte, error) {
	j.text = j.text[:0]
	for len(j.text) < 64 {
		c, err := j.r.Peek()
		if Truncated(err) {
			break
		}
		if err != nil {
			return nil, err
		}
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == 'E' || c == '+' || c == '-' || c == '.') {
			break
		}
		j.text = append(j.text, c)
		j.r.pos++
	}
	return j.text, nil
}

// Skip passes a value of any kind.
func (j *JSON) Skip() error {
	c, err := j.space()
	if err != nil {
		return err
	}
	switch c {
	case '"':
		return j.passString()
	case '{':
		return j.Object(func([]byte) error { return j.Skip() })
	case '[':
		return j.Array(j.Skip)
	}
	w, err := j.word()
	if err != nil {
		return err
	}
	switch string(w) {
	case "true", "false", "null":
		return nil
	}
	if _, err := strconv.ParseFloat(string(w), 64); err != nil && !errors.Is(err, strconv.ErrRange) {
		return j.errorf("%q is not a value", w)
	}
	return nil
}
