package tokenizer

import (
	"errors"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonScanner reads JSON as a stream: tokenizer.json has up to 30 MB, of which no large part may be held
// at once. Callbacks get the members of objects and the elements of arrays and must read each value.
type jsonScanner struct {
	r      io.Reader
	buf    []byte
	pos, n int
	read   int64 // bytes before buf
	text   []byte
	depth  int
}

const (
	jsonBuffer = 32 << 10
	maxDepth   = 64
	maxString  = 1 << 20
)

func newJSONScanner(r io.Reader) *jsonScanner {
	return &jsonScanner{r: r, buf: make([]byte, jsonBuffer)}
}

func (s *jsonScanner) fail(what string) error {
	return formatError("damaged JSON at byte %d: %s", s.read+int64(s.pos), what)
}

// fill reads more; at the end it returns io.EOF.
func (s *jsonScanner) fill() error {
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

// peek returns the next byte that is not white space.
func (s *jsonScanner) peek() (byte, error) {
	for {
		for ; s.pos < s.n; s.pos++ {
			switch c := s.buf[s.pos]; c {
			case ' ', '\t', '\r', '\n':
			default:
				return c, nil
			}
		}
		if err := s.fill(); err != nil {
			return 0, s.ended(err)
		}
	}
}

// next returns the next byte, white space or not.
func (s *jsonScanner) next() (byte, error) {
	if s.pos == s.n {
		if err := s.fill(); err != nil {
			return 0, s.ended(err)
		}
	}
	s.pos++
	return s.buf[s.pos-1], nil
}

func (s *jsonScanner) ended(err error) error {
	if errors.Is(err, io.EOF) {
		return s.fail("it ends too early")
	}
	return err
}

// expect reads one punctuation mark.
func (s *jsonScanner) expect(want byte) error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	if c != want {
		return s.fail("found " + strconv.Quote(string(rune(c))) + " where " + strconv.Quote(string(rune(want))) + " belongs")
	}
	s.pos++
	return nil
}

// end checks that nothing follows the value.
func (s *jsonScanner) end() error {
	for {
		for ; s.pos < s.n; s.pos++ {
			switch s.buf[s.pos] {
			case ' ', '\t', '\r', '\n':
			default:
				return s.fail("something follows the end")
			}
		}
		if err := s.fill(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// list reads open, items separated by commas, and end.
func (s *jsonScanner) list(open, end byte, item func() error) error {
	if err := s.expect(open); err != nil {
		return err
	}
	if s.depth++; s.depth > maxDepth {
		return s.fail("it is nested too deeply")
	}
	defer func() { s.depth-- }()
	c, err := s.peek()
	if err == nil && c == end {
		s.pos++
		return nil
	}
	for err == nil {
		if err = item(); err != nil {
			return err
		}
		if c, err = s.peek(); err != nil {
			return err
		}
		if c == end {
			s.pos++
			return nil
		}
		err = s.expect(',')
	}
	return err
}

// object calls member for each member. key is valid until member reads a string.
func (s *jsonScanner) object(member func(key []byte) error) error {
	return s.list('{', '}', func() error {
		key, err := s.str()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		return member(key)
	})
}

// array calls item for each element.
func (s *jsonScanner) array(item func() error) error { return s.list('[', ']', item) }

// str reads a string; it is valid until the next one is read.
func (s *jsonScanner) str() ([]byte, error) {
	if err := s.expect('"'); err != nil {
		return nil, err
	}
	s.text = s.text[:0]
	for {
		if s.pos == s.n {
			if err := s.fill(); err != nil {
				return nil, s.ended(err)
			}
		}
		i := s.pos
		for i < s.n && s.buf[i] != '"' && s.buf[i] != '\\' && s.buf[i] >= ' ' {
			i++
		}
		s.text = append(s.text, s.buf[s.pos:i]...)
		s.pos = i
		if len(s.text) > maxString {
			return nil, s.fail("a string is longer than 1 MiB")
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
			return nil, s.fail("a string contains a control character")
		}
	}
}

func (s *jsonScanner) escape() error {
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
		return s.fail("a string has an unknown escape")
	}
	return nil
}

// unicode reads what follows \u, with the second half of a surrogate pair.
func (s *jsonScanner) unicode() error {
	r, err := s.hex4()
	if err != nil {
		return err
	}
	if utf16.IsSurrogate(r) {
		for _, want := range []byte(`\u`) {
			if c, err := s.next(); err != nil || c != want {
				return s.fail("a string has half a surrogate pair")
			}
		}
		low, err := s.hex4()
		if err != nil {
			return err
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return s.fail("a string has half a surrogate pair")
		}
	}
	s.text = utf8.AppendRune(s.text, r)
	return nil
}

func (s *jsonScanner) hex4() (rune, error) {
	var r rune
	for range 4 {
		c, err := s.next()
		if err != nil {
			return 0, err
		}
		digit, err := strconv.ParseUint(string(rune(c)), 16, 8)
		if err != nil {
			return 0, s.fail("a string has an unknown escape")
		}
		r = r<<4 | rune(digit)
	}
	return r, nil
}

// uint32 reads a whole number.
func (s *jsonScanner) uint32() (uint32, error) {
	if _, err := s.peek(); err != nil {
		return 0, err
	}
	var v uint64
	digits := 0
	for {
		if s.pos == s.n {
			if err := s.fill(); err != nil {
				return 0, s.ended(err)
			}
		}
		c := s.buf[s.pos]
		if c < '0' || c > '9' {
			break
		}
		s.pos++
		digits++
		if v = v*10 + uint64(c-'0'); v >= 1<<32 {
			return 0, s.fail("an id is too large")
		}
	}
	if c := s.buf[s.pos]; digits == 0 || c == '.' || c == 'e' || c == 'E' {
		return 0, s.fail("a whole number is missing")
	}
	return uint32(v), nil
}

// skip reads a value of any kind.
func (s *jsonScanner) skip() error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	switch c {
	case '{':
		return s.object(func([]byte) error { return s.skip() })
	case '[':
		return s.array(s.skip)
	case '"':
		_, err := s.str()
		return err
	}
	return s.word(nil)
}

// word reads a number, true, false or null, and appends it to into if that is not nil.
func (s *jsonScanner) word(into *[]byte) error {
	var own [64]byte
	text := own[:0]
	for {
		if s.pos == s.n {
			if err := s.fill(); err != nil {
				if errors.Is(err, io.EOF) {
					break
				}
				return err
			}
		}
		c := s.buf[s.pos]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E') {
			break
		}
		if s.pos++; len(text) == len(own) {
			return s.fail("a number is too long")
		}
		text = append(text, c)
	}
	switch string(text) {
	case "true", "false", "null":
	default:
		_, err := strconv.ParseFloat(string(text), 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) || text[len(text)-1] > '9' {
			return s.fail("it has no value where one belongs")
		}
	}
	if into != nil {
		*into = append(*into, text...)
	}
	return nil
}

// raw returns a value of any kind as JSON, of at most limit bytes.
func (s *jsonScanner) raw(limit int) ([]byte, error) {
	var out []byte
	err := s.copyValue(&out, limit)
	return out, err
}

func (s *jsonScanner) copyValue(out *[]byte, limit int) error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	if len(*out) > limit {
		return s.fail("a part of the configuration is longer than " + strconv.Itoa(limit) + " bytes")
	}
	comma := func() {
		if last := (*out)[len(*out)-1]; last != '{' && last != '[' {
			*out = append(*out, ',')
		}
	}
	switch c {
	case '{':
		*out = append(*out, '{')
		err = s.object(func(key []byte) error {
			comma()
			*out = appendJSONString(*out, key)
			*out = append(*out, ':')
			return s.copyValue(out, limit)
		})
		*out = append(*out, '}')
	case '[':
		*out = append(*out, '[')
		err = s.array(func() error {
			comma()
			return s.copyValue(out, limit)
		})
		*out = append(*out, ']')
	case '"':
		text, err := s.str()
		if err != nil {
			return err
		}
		*out = appendJSONString(*out, text)
		return nil
	default:
		return s.word(out)
	}
	return err
}

func appendJSONString(out, text []byte) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ':
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
