// Package vfstest helps tests of what reads files.
package vfstest

import (
	"sync/atomic"

	"github.com/spillway/spillway/internal/vfs"
)

// Switched is the system's files, in which things go wrong only while On is true.
type Switched struct {
	vfs.FS
	On    atomic.Bool
	fault *vfs.FaultFS
}

// NewSwitched makes files whose reads go wrong as the plan says, once they are switched on.
func NewSwitched(p vfs.Plan) *Switched { return &Switched{FS: vfs.OS(), fault: vfs.Fault(vfs.OS(), p)} }

// Open opens a file, always well.
func (s *Switched) Open(path string) (vfs.File, error) {
	f, err := s.FS.Open(path)
	if err != nil {
		return nil, err
	}
	return &switchedFile{File: f, bad: s.fault.Wrap(f), on: &s.On}, nil
}

type switchedFile struct {
	vfs.File
	bad vfs.File
	on  *atomic.Bool
}

func (f *switchedFile) ReadAt(p []byte, off int64) (int, error) {
	if f.on.Load() {
		return f.bad.ReadAt(p, off)
	}
	return f.File.ReadAt(p, off)
}
