package container

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/spillway/spillway/internal/mem"
	"github.com/spillway/spillway/internal/vfs"
)

// Reader reads a range of a file in order through one small buffer. What would pass the end of the
// range is io.ErrUnexpectedEOF, known before anything is read or allocated; what the drive refuses
// is a *ReadError.
type Reader struct {
	src  vfs.File
	end  int64
	base int64 // file offset of buf[0]
	buf  []byte
	pos  int // unread: buf[pos:len]
	len  int
}

const (
	bufferSize = 64 << 10
	// MaxNext is the most that Next returns at once.
	MaxNext = 16 << 10
)

// NewReader reads from offset start to before end, which is at most the file's size.
func NewReader(src vfs.File, start, end int64) *Reader {
	align, end := src.Align(), min(end, src.Size())
	size := max(min(bufferSize, int(min(end-start, bufferSize))+3*align), MaxNext+3*align)
	buf := mem.AlignUp(make([]byte, size), align)
	return &Reader{src: src, end: end, base: start, buf: buf[:len(buf)/align*align]}
}

// Offset is the position in the file.
func (r *Reader) Offset() int64 { return r.base + int64(r.pos) }

// Left is the number of bytes up to the end of the range.
func (r *Reader) Left() int64 { return max(r.end-r.Offset(), 0) }

// seek makes offset the position and drops the buffer.
func (r *Reader) seek(offset int64) { r.base, r.pos, r.len = offset, 0, 0 }

// fill reads as much as the buffer holds, from the aligned block of the position on.
func (r *Reader) fill() error {
	at := r.Offset()
	base, size := vfs.Span(at, int(min(int64(len(r.buf)), r.end-at)), r.src.Align())
	size = min(size, len(r.buf))
	n, err := r.src.ReadAt(r.buf[:size], base)
	if n < size && base+int64(n) < r.end {
		r.seek(at)
		if err == nil || errors.Is(err, io.EOF) {
			err = fmt.Errorf("the file ends before its size of %d", r.end)
		}
		return &ReadError{base + int64(n), err}
	}
	r.base, r.pos, r.len = base, int(at-base), int(min(int64(n), r.end-base))
	return nil
}

// Next returns the next n ≤ MaxNext bytes; they are valid until the next call.
func (r *Reader) Next(n int) ([]byte, error) {
	if int64(n) > r.Left() {
		return nil, io.ErrUnexpectedEOF
	}
	if n > r.len-r.pos {
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
	b := r.buf[r.pos : r.pos+n]
	r.pos += n
	return b, nil
}

// Read reads what is buffered, or fills the buffer first; io.EOF is the end of the range.
func (r *Reader) Read(p []byte) (int, error) {
	if r.Left() == 0 {
		return 0, io.EOF
	}
	if r.pos == r.len {
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.buf[r.pos:r.len])
	r.pos += n
	return n, nil
}

// Skip passes n bytes without reading those that are not buffered.
func (r *Reader) Skip(n int64) error {
	if n < 0 || n > r.Left() {
		return io.ErrUnexpectedEOF
	}
	if n <= int64(r.len-r.pos) {
		r.pos += int(n)
		return nil
	}
	r.seek(r.Offset() + n)
	return nil
}

// Append appends the next n bytes to dst. The caller has bounded n.
func (r *Reader) Append(dst []byte, n int) ([]byte, error) {
	if int64(n) > r.Left() {
		return dst, io.ErrUnexpectedEOF
	}
	if cap(dst)-len(dst) < n {
		grown := make([]byte, len(dst), len(dst)+n)
		copy(grown, dst)
		dst = grown
	}
	for n > 0 {
		part := min(n, MaxNext)
		b, err := r.Next(part)
		if err != nil {
			return dst, err
		}
		dst, n = append(dst, b...), n-part
	}
	return dst, nil
}

// Uint32 reads a little-endian number.
func (r *Reader) Uint32() (uint32, error) {
	b, err := r.Next(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

// Uint64 reads a little-endian number.
func (r *Reader) Uint64() (uint64, error) {
	b, err := r.Next(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// ReadError says that the drive, not the file's content, is at fault.
type ReadError struct {
	Offset int64
	Err    error
}

func (e *ReadError) Error() string { return fmt.Sprintf("reading at byte %d: %v", e.Offset, e.Err) }

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }
