package vfs

import (
	"io"
	"os"
)

// sinkPiece is how much a Sink leaves in the page cache.
const sinkPiece = 1 << 20

// A Sink writes to a file and keeps what was written out of the page cache, which a group's limit
// counts: after every MiB it waits until the drive has it. Where the operating system offers no way
// to do that it only writes.
type Sink struct {
	file    *os.File
	pending int
}

// NewSink returns a writer to f, which stays the caller's to close.
func NewSink(f *os.File) *Sink { return &Sink{file: f} }

// Write is that of io.Writer.
func (s *Sink) Write(p []byte) (done int, err error) {
	for done < len(p) && err == nil {
		n := 0
		n, err = s.file.Write(p[done:min(len(p), done+sinkPiece-s.pending)])
		done += n
		if s.pending += n; s.pending >= sinkPiece {
			s.Flush()
		}
	}
	return done, err
}

// Pending is how many bytes were written since the last Flush.
func (s *Sink) Pending() int { return s.pending }

// Flush takes what was written out of the page cache.
func (s *Sink) Flush() {
	if s.pending > 0 {
		dropWritten(s.file)
	}
	s.pending = 0
}

// NewDrain returns a reader of f from its start that leaves nothing behind in the page cache.
func NewDrain(f *os.File) io.Reader {
	adviseRandom(f)
	return &drain{file: f}
}

type drain struct {
	file *os.File
	at   int64
}

func (d *drain) Read(p []byte) (int, error) {
	n, err := d.file.ReadAt(p[:min(len(p), cachedPiece)], d.at)
	dropBehind(d.file, d.at, n)
	d.at += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}
