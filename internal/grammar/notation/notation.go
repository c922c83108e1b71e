// Package notation is what readers of grammars have in common: a place in a text, errors that name it, names
// that are used before they are defined, numbers, escapes and tokens.
package notation

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spillway/spillway/internal/grammar/cfg"
)

// Lookup is the id of a token by its text, such as <think>; nil: there are no tokens.
type Lookup func(text string) (id int32, ok bool)

// Error says where a grammar is wrong.
type Error struct {
	Line, Column int // from 1; columns are characters
	Problem      string
	cause        error
}

func (e *Error) Error() string {
	return fmt.Sprintf("grammar: line %d, column %d: %s", e.Line, e.Column, e.Problem)
}

func (e *Error) Unwrap() error { return e.cause }

const (
	maxDepth = 200     // of groups in groups
	maxCount = 1 << 30 // of numbers
)

// Reader is at a byte of a grammar's text. Its first error is kept: who reads on after one finds out at the end.
type Reader struct {
	B    *cfg.Builder
	Text string
	At   int
	Err  error

	lookup Lookup
	names  map[string]*Name
	order  []*Name
	depth  int
}

// New begins to read a text, which adds rules to b.
func New(b *cfg.Builder, text string, lookup Lookup) Reader {
	r := Reader{B: b, Text: text, lookup: lookup, names: map[string]*Name{}}
	if !utf8.ValidString(text) {
		r.Failf("it is not UTF-8")
	}
	return r
}

// Failf keeps an error at the present place, unless there is one.
func (r *Reader) Failf(format string, args ...any) {
	if r.Err != nil {
		return
	}
	err := fmt.Errorf(format, args...)
	before := r.Text[:min(r.At, len(r.Text))]
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	r.Err = &Error{line, column, err.Error(), errors.Unwrap(err)}
}

// FailAt is Failf at another place.
func (r *Reader) FailAt(at int, format string, args ...any) {
	r.At = at
	r.Failf(format, args...)
}

// Peek is the next byte, 0 at the end.
func (r *Reader) Peek() byte {
	if r.At < len(r.Text) {
		return r.Text[r.At]
	}
	return 0
}

// Take goes over s if it is next.
func (r *Reader) Take(s string) bool {
	if strings.HasPrefix(r.Text[r.At:], s) {
		r.At += len(s)
		return true
	}
	return false
}

// While goes over the bytes that are of a kind, and returns them.
func (r *Reader) While(is func(c byte) bool) string {
	begin := r.At
	for r.At < len(r.Text) && is(r.Text[r.At]) {
		r.At++
	}
	return r.Text[begin:r.At]
}

// Rest is the beginning of what is left, for errors.
func (r *Reader) Rest() string {
	s, _, _ := strings.Cut(r.Text[r.At:], "\n")
	if len(s) > 20 {
		s = strings.ToValidUTF8(s[:20], "") + "..."
	}
	return s
}

// Number goes over digits, if there are any.
func (r *Reader) Number() (n int, ok bool) {
	begin := r.At
	for r.At < len(r.Text) && r.Text[r.At] >= '0' && r.Text[r.At] <= '9' {
		if n = 10*n + int(r.Text[r.At]-'0'); n > maxCount {
			r.Failf("a number over %d", maxCount)
			return 0, false
		}
		r.At++
	}
	return n, r.At > begin
}

// Escaped reads a character written as x41, u0041 or U00000041, which stands behind a backslash, if one is next.
func (r *Reader) Escaped() (c rune, ok bool) {
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[r.Peek()]
	if digits == 0 {
		return 0, false
	}
	if end := r.At + 1 + digits; end <= len(r.Text) {
		v, err := strconv.ParseUint(r.Text[r.At+1:end], 16, 32)
		if err == nil && utf8.ValidRune(rune(v)) {
			r.At = end
			return rune(v), true
		}
	}
	r.Failf("an escape of %d hexadecimal digits, of a character, is expected", digits)
	return 0, true
}

// Token reads <[id]> or <text>, where the text with the angle brackets is a token's.
func (r *Reader) Token() int32 {
	if r.Take("<[") {
		id, ok := r.Number()
		if !ok || !r.Take("]>") {
			r.Failf("a token is <[id]> or <text>")
			return 0
		}
		return int32(id)
	}
	end := strings.IndexAny(r.Text[r.At:], ">\n")
	if end < 0 || r.Text[r.At+end] != '>' {
		r.Failf("a token's > is missing")
		return 0
	}
	text := r.Text[r.At : r.At+end+1]
	if r.lookup != nil {
		if id, ok := r.lookup(text); ok {
			r.At += len(text)
			return id
		}
	}
	r.Failf("%s is not one token of the model", text)
	return 0
}
