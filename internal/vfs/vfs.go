// Package vfs reads files past the page cache, into off-heap aligned memory, so that what a file
// costs is what was leased for it. Where a file system refuses direct I/O the reads are buffered and
// the cache is dropped behind them.
package vfs

import (
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
	// The offset, the address and the length of p must be multiples of Align; see Span.
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
