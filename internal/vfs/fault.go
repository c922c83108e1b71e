package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Plan says what goes wrong in a Fault file system. The zero value is a healthy one. Reads count
// from 1, over all files that match.
type Plan struct {
	Match      string                         // only files whose name contains it
	OpenErr    error                          // of every Open
	FailRead   int64                          // this read fails with Err
	FailFor    int64                          // so many reads fail from FailRead on; 0 is one
	Err        error                          // nil is an input/output error
	TruncateAt int64                          // files end here, whatever Size says; 0 is never
	Flip       []int64                        // the bytes at these offsets are inverted
	Delay      func(read int64) time.Duration // before each read; nil is none
}

// FaultFS is a file system in which things go wrong, for tests.
type FaultFS struct {
	inner FS
	plan  Plan
	reads atomic.Int64
}

// Fault makes things go wrong in the files of inner.
func Fault(inner FS, plan Plan) *FaultFS { return &FaultFS{inner: inner, plan: plan} }

// Reads is how many reads of matching files there were.
func (s *FaultFS) Reads() int64 { return s.reads.Load() }

// Stat is the inner file system's.
func (s *FaultFS) Stat(path string) (fs.FileInfo, error) { return s.inner.Stat(path) }

// ReadDir is the inner file system's.
func (s *FaultFS) ReadDir(path string) ([]fs.DirEntry, error) { return s.inner.ReadDir(path) }

// Open opens a file that fails as planned if its name matches.
func (s *FaultFS) Open(path string) (File, error) {
	if s.matches(path) && s.plan.OpenErr != nil {
		return nil, fmt.Errorf("open %s: %w", path, s.plan.OpenErr)
	}
	f, err := s.inner.Open(path)
	if err != nil {
		return nil, err
	}
	return s.Wrap(f), nil
}

// Wrap makes an open file fail as planned if its name matches.
func (s *FaultFS) Wrap(f File) File {
	if !s.matches(f.Name()) {
		return f
	}
	return &faultFile{File: f, fs: s}
}

func (s *FaultFS) matches(name string) bool { return strings.Contains(name, s.plan.Match) }

type faultFile struct {
	File
	fs *FaultFS
}

func (f *faultFile) ReadAt(p []byte, off int64) (int, error) {
	plan, read := &f.fs.plan, f.fs.reads.Add(1)
	if plan.Delay != nil {
		time.Sleep(plan.Delay(read))
	}
	if plan.FailRead > 0 && read >= plan.FailRead && read < plan.FailRead+max(1, plan.FailFor) {
		err := plan.Err
		if err == nil {
			err = syscall.EIO
		}
		return 0, fmt.Errorf("read %s at %d: %w", f.Name(), off, err)
	}
	n, err := f.File.ReadAt(p, off)
	if plan.TruncateAt > 0 && off+int64(n) > plan.TruncateAt {
		n, err = int(max(0, plan.TruncateAt-off)), io.EOF
	}
	for _, at := range plan.Flip {
		if at >= off && at < off+int64(n) {
			p[at-off] ^= 0xFF
		}
	}
	return n, err
}
