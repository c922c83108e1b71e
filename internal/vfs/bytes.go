package vfs

import (
	"fmt"
	"hash/fnv"
	"io"
)

// Bytes is a file in memory, such as an embedded model. It needs no alignment and no direct I/O.
func Bytes[T ~string | ~[]byte](name string, data T) File {
	h := fnv.New64a()
	io.WriteString(h, name)
	return &bytesFile[T]{name: name, data: data, id: ID{Inode: h.Sum64(), Size: int64(len(data))}}
}

type bytesFile[T ~string | ~[]byte] struct {
	name string
	data T
	id   ID
}

func (f *bytesFile[T]) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read %s at %d: negative offset", f.name, off)
	}
	n := copy(p, f.data[min(off, int64(len(f.data))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *bytesFile[T]) Size() int64  { return int64(len(f.data)) }
func (f *bytesFile[T]) Align() int   { return 1 }
func (f *bytesFile[T]) Direct() bool { return false }
func (f *bytesFile[T]) Why() string  { return "" }
func (f *bytesFile[T]) Name() string { return f.name }
func (f *bytesFile[T]) ID() ID       { return f.id }
func (f *bytesFile[T]) Close() error { return nil }
