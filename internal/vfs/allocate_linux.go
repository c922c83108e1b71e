package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Allocate gives a file its size, and the space on the drive for it where the file system can do that: writing
// cannot fail for want of space then. What the file holds stays.
func Allocate(f *os.File, size int64) error {
	err := control(f, func(fd uintptr) error { return unix.Fallocate(int(fd), 0, 0, size) })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return f.Truncate(size)
	}
	if err != nil {
		return &os.PathError{Op: "allocate", Path: f.Name(), Err: err}
	}
	return f.Truncate(size) // it may have been longer
}
