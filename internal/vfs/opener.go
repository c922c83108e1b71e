package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spillway/spillway/internal/mem"
)

// Opener opens a file of a folder by its name.
type Opener func(name string) (File, error)

const streamBuffer = 48 << 10

// Stream calls read with the content of a file. It reports whether the file is there.
func (open Opener) Stream(name string, read func(io.Reader) error) (bool, error) {
	file, err := open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	r, err := NewReader(file, 0, file.Size(), mem.AlignUp(make([]byte, streamBuffer+file.Align()), file.Align()))
	if err != nil {
		return false, err
	}
	if err := read(r); err != nil {
		return false, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return true, nil
}
