package pack

import (
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/spillway/spillway/internal/vfs"
)

// OpenInner opens a file that is carried inside. An absent one is an error that wraps fs.ErrNotExist.
func (p *File) OpenInner(name string) (vfs.File, error) {
	i := slices.IndexFunc(p.Inner, func(f Inner) bool { return f.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%s has no %s inside: %w", p.f.Name(), name, fs.ErrNotExist)
	}
	return p.section(&p.Inner[i]), nil
}

func (p *File) section(f *Inner) *section {
	return &section{File: p.f, name: p.f.Name() + ": " + f.Name, offset: f.Offset, size: f.Bytes}
}

// section is a part of a file as a file. Closing it does nothing.
type section struct {
	vfs.File
	name         string
	offset, size int64
}

func (s *section) Name() string { return s.name }
func (s *section) Size() int64  { return s.size }
func (s *section) Close() error { return nil }

func (s *section) ID() vfs.ID {
	id := s.File.ID()
	id.Inode, id.Size = id.Inode^uint64(s.offset)<<20, s.size
	return id
}

func (s *section) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 || off >= s.size {
		if off < 0 {
			return 0, fmt.Errorf("read %s at %d: negative offset", s.name, off)
		}
		if len(b) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	n, err := s.File.ReadAt(b, s.offset+off)
	if left := s.size - off; int64(n) >= left && int64(len(b)) > left {
		return int(left), io.EOF
	}
	return n, err
}
