package jsonscan

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Text reads a string; it is valid until the next value is read.
func (s *Scanner) Text() ([]byte, error) {
	if err := s.expect('"'); err != nil {
		return nil, err
	}
	s.text = s.text[:0]
	for {
		if err := s.need(); err != nil {
			return nil, err
		}
		i := s.pos
		for i < s.n && s.buf[i] != '"' && s.buf[i] != '\\' && s.buf[i] >= ' ' {
			i++
		}
		s.text = append(s.text, s.buf[s.pos:i]...)
		s.pos = i
		if len(s.text) > s.maxText {
			return nil, s.fail("a string is longer than %d bytes", s.maxText)
		}
		if i == s.n {
			continue
		}
		s.pos++
		switch s.buf[i] {
		case '"':
			if !utf8.Valid(s.text) {
				return nil, s.fail("a string is not UTF-8")
			}
			return s.text, nil
		case '\\':
			if err := s.escape(); err != nil {
				return nil, err
			}
		default:
			return nil, s.fail("a control character in a string")
		}
	}
}

// next returns the next byte of a string.
func (s *Scanner) next() (byte, error) {
	if err := s.need(); err != nil {
		return 0, err
	}
	s.pos++
	return s.buf[s.pos-1], nil
}

func (s *Scanner) escape() error {
	c, err := s.next()
	if err != nil {
		return err
	}
	switch c {
	case '"', '\\', '/':
		s.text = append(s.text, c)
	case 'b':
		s.text = append(s.text, '\b')
	case 'f':
		s.text = append(s.text, '\f')
	case 'n':
		s.text = append(s.text, '\n')
	case 'r':
		s.text = append(s.text, '\r')
	case 't':
		s.text = append(s.text, '\t')
	case 'u':
		return s.unicode()
	default:
		return s.fail("unknown escape \\%c", c)
	}
	return nil
}

// unicode reads what follows \u, with the second half of a surrogate pair.
func (s *Scanner) unicode() error {
	r, err := s.hex()
	if err != nil {
		return err
	}
	if utf16.IsSurrogate(r) {
		for _, want := range []byte(`\u`) {
			c, err := s.next()
			if err != nil {
				return err
			}
			if c != want {
				return s.fail("half a surrogate pair")
			}
		}
		low, err := s.hex()
		if err != nil {
			return err
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return s.fail("half a surrogate pair")
		}
	}
	s.text = utf8.AppendRune(s.text, r)
	return nil
}

func (s *Scanner) hex() (rune, error) {
	var r rune
	for range 4 {
		c, err := s.next()
		if err != nil {
			return 0, err
		}
		digit, err := strconv.ParseUint(string(rune(c)), 16, 8)
		if err != nil {
			return 0, s.fail("%q is not hexadecimal", c)
		}
		r = r<<4 | rune(digit)
	}
	return r, nil
}
