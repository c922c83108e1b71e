// Package jsonscan reads JSON as a stream, without building a tree: tokenizer.json has up to 30 MB and
// a header of safetensors up to 100, of which no large part may be held at once.
package jsonscan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spillway/spillway/internal/checkpoint/container"
)

// Scanner reads one JSON value. Callbacks get the members of objects and the elements of arrays and
// must read each value. Damaged JSON gives a *container.Error without a path; errors of the
// underlying reader are returned as they are.
type Scanner struct {
	r       io.Reader
	buf     []byte
	pos, n  int   // unread: buf[pos:n]
	read    int64 // bytes before buf
	text    []byte
	maxText int
	depth   int
}

const (
	bufferSize = 32 << 10
	maxDepth   = 64
)

// New reads from r, and refuses strings of more than maxText bytes.
func New(r io.Reader, maxText int) *Scanner {
	return &Scanner{r: r, buf: make([]byte, bufferSize), maxText: maxText}
}

func (s *Scanner) fail(format string, args ...any) error {
	return &container.Error{What: fmt.Sprintf("damaged JSON at byte %d: ", s.read+int64(s.pos)) + fmt.Sprintf(format, args...)}
}

// fill reads more; at the end it returns io.EOF.
func (s *Scanner) fill() error {
	s.read += int64(s.n)
	s.pos, s.n = 0, 0
	for range 100 {
		n, err := s.r.Read(s.buf)
		if n > 0 {
			s.n = n
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// more makes the next byte buf[pos]; false at the end.
func (s *Scanner) more() (bool, error) {
	if s.pos < s.n {
		return true, nil
	}
	err := s.fill()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, err
}

// need is more where the end is an error.
func (s *Scanner) need() error {
	ok, err := s.more()
	if err == nil && !ok {
		err = s.fail("it ends too early")
	}
	return err
}

// space passes white space; false at the end.
func (s *Scanner) space() (bool, error) {
	for {
		for ; s.pos < s.n; s.pos++ {
			switch s.buf[s.pos] {
			case ' ', '\t', '\r', '\n':
			default:
				return true, nil
			}
		}
		if ok, err := s.more(); !ok {
			return false, err
		}
	}
}

// Peek returns the first byte of the next value or mark, without passing it.
func (s *Scanner) Peek() (byte, error) {
	ok, err := s.space()
	switch {
	case err != nil:
		return 0, err
	case !ok:
		return 0, s.fail("it ends too early")
	}
	return s.buf[s.pos], nil
}

// End reports an error if anything but white space is left.
func (s *Scanner) End() error {
	ok, err := s.space()
	if err == nil && ok {
		err = s.fail("%q after its end", s.buf[s.pos])
	}
	return err
}

// expect passes one mark.
func (s *Scanner) expect(want byte) error {
	c, err := s.Peek()
	if err != nil {
		return err
	}
	if c != want {
		return s.fail("%q where %q should be", c, want)
	}
	s.pos++
	return nil
}

// list reads open, items separated by commas, and end.
func (s *Scanner) list(open, end byte, item func() error) error {
	if err := s.expect(open); err != nil {
		return err
	}
	if s.depth++; s.depth > maxDepth {
		return s.fail("it nests too deep")
	}
	defer func() { s.depth-- }()
	c, err := s.Peek()
	if err != nil {
		return err
	}
	if c == end {
		s.pos++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if c, err = s.Peek(); err != nil {
			return err
		}
		s.pos++
		switch c {
		case ',':
		case end:
			return nil
		default:
			return s.fail("%q where ',' or %q should be", c, end)
		}
	}
}

// Object reads an object; member is called for each key and reads the value. The key is valid until
// it does.
func (s *Scanner) Object(member func(key []byte) error) error {
	return s.list('{', '}', func() error {
		key, err := s.Text()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		return member(key)
	})
}

// Array reads an array; element reads each value.
func (s *Scanner) Array(element func() error) error { return s.list('[', ']', element) }

// Uint reads a natural number below 2^64.
func (s *Scanner) Uint() (uint64, error) {
	if _, err := s.Peek(); err != nil {
		return 0, err
	}
	var v uint64
	s.text = s.text[:0]
	for {
		ok, err := s.more()
		if err != nil {
			return 0, err
		}
		if !ok || !ofWord(s.buf[s.pos]) {
			break
		}
		c := s.buf[s.pos]
		d := uint64(c - '0')
		if d > 9 || v == 0 && len(s.text) > 0 || v > (math.MaxUint64-d)/10 {
			return 0, s.notNatural()
		}
		v = v*10 + d
		s.text = append(s.text, c)
		s.pos++
	}
	if len(s.text) == 0 {
		return 0, s.notNatural()
	}
	return v, nil
}

// notNatural reads on to show the whole word.
func (s *Scanner) notNatural() error {
	if err := s.wordOn(); err != nil {
		return err
	}
	if len(s.text) == 0 {
		return s.fail("a natural number should be there")
	}
	return s.fail("%q is not a natural number below 2^64", s.text)
}

// Skip passes a value of any kind.
func (s *Scanner) Skip() error {
	c, err := s.Peek()
	if err != nil {
		return err
	}
	switch c {
	case '{':
		return s.Object(func([]byte) error { return s.Skip() })
	case '[':
		return s.Array(s.Skip)
	case '"':
		_, err := s.Text()
		return err
	}
	_, err = s.word()
	return err
}

// ofWord reports whether c can be in a number, true, false or null.
func ofWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E'
}

// wordOn appends the rest of a word to s.text.
func (s *Scanner) wordOn() error {
	const most = 64
	for {
		ok, err := s.more()
		if err != nil || !ok || !ofWord(s.buf[s.pos]) {
			return err
		}
		if len(s.text) == most {
			return s.fail("a number is longer than %d bytes", most)
		}
		s.text = append(s.text, s.buf[s.pos])
		s.pos++
	}
}

// word reads a number, true, false or null.
func (s *Scanner) word() ([]byte, error) {
	s.text = s.text[:0]
	if err := s.wordOn(); err != nil {
		return nil, err
	}
	if !json.Valid(s.text) {
		return nil, s.fail("%q is not a value", s.text)
	}
	return s.text, nil
}

// Decode reads a value of any kind, of not much more than limit bytes, into what json.Unmarshal takes.
func (s *Scanner) Decode(into any, limit int) error {
	raw, err := s.Raw(limit)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return s.fail("%v", err)
	}
	return nil
}

// Raw returns a value of any kind as JSON without white space, of not much more than limit bytes.
func (s *Scanner) Raw(limit int) ([]byte, error) {
	var out bytes.Buffer
	err := s.copyValue(&out, limit)
	return out.Bytes(), err
}

func (s *Scanner) copyValue(out *bytes.Buffer, limit int) error {
	c, err := s.Peek()
	if err != nil {
		return err
	}
	if out.Len() > limit {
		return s.fail("a part of it is longer than %d bytes", limit)
	}
	comma := ""
	switch c {
	case '{':
		out.WriteByte('{')
		err = s.Object(func(key []byte) error {
			out.WriteString(comma)
			comma = ","
			writeText(out, key)
			out.WriteByte(':')
			return s.copyValue(out, limit)
		})
		out.WriteByte('}')
	case '[':
		out.WriteByte('[')
		err = s.Array(func() error {
			out.WriteString(comma)
			comma = ","
			return s.copyValue(out, limit)
		})
		out.WriteByte(']')
	case '"':
		var text []byte
		if text, err = s.Text(); err == nil {
			writeText(out, text)
		}
	default:
		var word []byte
		word, err = s.word()
		out.Write(word)
	}
	return err
}

// writeText writes a string that is known to be UTF-8.
func writeText(out *bytes.Buffer, text []byte) {
	out.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
		case c < ' ':
			fmt.Fprintf(out, `\u%04x`, c)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
}
