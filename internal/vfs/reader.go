package vfs

import (
	"errors"
	"fmt"
	"io"
)

// Reader reads a range of a file in order, through a buffer of the caller. It is for headers: it
// leaves nothing in the page cache and nothing on the Go heap.
type Reader struct {
	file File
	buf  []byte
	off  int64 // of the next byte
	end  int64 // of the range

	have      []byte // bytes of the file that are in buf
	haveStart int64
}

// NewReader reads n bytes from off on. The buffer must be aligned as file.Align says and hold at
// least that many bytes; larger ones read in larger requests.
func NewReader(file File, off, n int64, buf []byte) (*Reader, error) {
	if off < 0 || n < 0 || off > file.Size()-n {
		return nil, fmt.Errorf("%s: %d bytes at %d are not within its %d", file.Name(), n, off, file.Size())
	}
	buf = buf[:len(buf)&^(file.Align()-1)]
	if len(buf) == 0 {
		return nil, fmt.Errorf("%s: a reader needs a buffer of %d bytes", file.Name(), file.Align())
	}
	return &Reader{file: file, buf: buf, off: off, end: off + n}, nil
}

// Left is the bytes of the range that are still to come.
func (r *Reader) Left() int64 { return r.end - r.off }

// Read fills p with what the buffer has, reading the file when it has nothing.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	b, err := r.peek()
	if err != nil {
		return 0, err
	}
	n := copy(p, b)
	r.off += int64(n)
	return n, nil
}

// peek returns at least one byte from off on, or an error.
func (r *Reader) peek() ([]byte, error) {
	if r.off >= r.end {
		return nil, io.EOF
	}
	if r.off-r.haveStart >= int64(len(r.have)) {
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
	b := r.have[r.off-r.haveStart:]
	return b[:min(int64(len(b)), r.Left())], nil
}

func (r *Reader) fill() error {
	align := r.file.Align()
	start, _ := Span(r.off, 0, align)
	_, size := Span(start, int(min(int64(len(r.buf)), r.end-start)), align)
	n, err := r.file.ReadAt(r.buf[:size], start)
	r.have, r.haveStart = r.buf[:n], start
	switch {
	case start+int64(n) > r.off:
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fmt.Errorf("%s: ends at %d: %w", r.file.Name(), start+int64(n), io.ErrUnexpectedEOF)
	}
	return err
}
