// Package vfs reads files past the page cache, into off-heap aligned memory, so that what a file
// costs is what was leased for it. Where a file system refuses direct I/O the reads are buffered and
// the cache is dropped behind them.
package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"
)

// FS opens files.
type FS interface {
	Open(path string) (File, error)
	Stat(path string) (fs.FileInfo, error)
	ReadDir(path string) ([]fs.DirEntry, error)
}

// File is an open regular file. Its methods may be called concurrently, apart from Close.
type File interface {
	// ReadAt is that of io.ReaderAt: n < len(p) comes with an error, io.EOF at the end of the file.
	// The offset, the address and the length of p must be multiples of Align; see ReadRange.
	ReadAt(p []byte, off int64) (n int, err error)
	Size() int64  // bytes, when it was opened
	Align() int   // power of two; constant
	Direct() bool // reads pass by the page cache
	Why() string  // why reads are not direct, for people; "" if they are, or need not be
	Name() string
	ID() ID
	Close() error
}

// ID tells whether a file is the one that was seen before, without reading it.
type ID struct {
	Dev, Inode uint64
	MTime      int64 // nanoseconds since 1970
	Size       int64
}

// Span returns the smallest aligned range that encloses n bytes at off. Align is a power of two.
func Span(off int64, n, align int) (start int64, size int) {
	a := int64(align)
	start = off &^ (a - 1)
	end := (off + int64(n) + a - 1) &^ (a - 1)
	return start, int(end - start)
}

// SpanSize is the most bytes that Span needs for n bytes at any offset.
func SpanSize(n, align int) int {
	_, size := Span(int64(align)-1, n, align)
	return size
}

// ReadRange reads n bytes at off into buf and returns them as a view of it. It reads the enclosing
// aligned range, so buf must be aligned and as large as Span says (SpanSize is always enough). A
// file that ends before off+n gives io.ErrUnexpectedEOF.
func ReadRange(f File, buf []byte, off int64, n int) ([]byte, error) {
	if off < 0 || n < 0 || off > f.Size()-int64(n) {
		return nil, fmt.Errorf("%s: read %d bytes at %d of %d: %w", f.Name(), n, off, f.Size(), io.ErrUnexpectedEOF)
	}
	start, size := Span(off, n, f.Align())
	if size > len(buf) {
		return nil, fmt.Errorf("%s: a read of %d bytes needs a buffer of %d, not %d", f.Name(), n, size, len(buf))
	}
	lead := int(off - start)
	got, err := f.ReadAt(buf[:size], start)
	switch {
	case got >= lead+n:
		return buf[lead : lead+n : lead+n], nil
	case err == nil || errors.Is(err, io.EOF):
		err = fmt.Errorf("%s: ends at %d, in a read of %d bytes at %d: %w",
			f.Name(), start+int64(got), n, off, io.ErrUnexpectedEOF)
	}
	return nil, err
}

// Counts is what was asked of the operating system.
type Counts struct {
	Requests int64 // read calls
	Bytes    int64 // bytes that they returned
}

var requests, bytesRead atomic.Int64

// Count returns the sums over all files since the process began.
func Count() Counts { return Counts{requests.Load(), bytesRead.Load()} }

// Sub returns what was added since an earlier count.
func (c Counts) Sub(earlier Counts) Counts {
	return Counts{c.Requests - earlier.Requests, c.Bytes - earlier.Bytes}
}

func count(n int) {
	requests.Add(1)
	bytesRead.Add(int64(n))
}
